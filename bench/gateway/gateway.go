// Package gateway is the measured process of the turns benchmark. It places calls, runs the agent
// like the server, and reports the agent's own measurements. The fake providers run in another
// process.
package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/pipeline/tts"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/turn/turnlog"
	"github.com/parley-voice/parley/sip"
)

// A Job is the input of a gateway: the calls to place.
type Job struct {
	Proxy   string        `json:"proxy"`
	Fakes   string        `json:"fakes"` // address of the providers, host:port
	AtATime int           `json:"at_a_time"`
	Stagger time.Duration `json:"stagger"` // time between the starts of the first calls
	Calls   []Call        `json:"calls"`
	Warm    *Call         `json:"warm,omitempty"` // warm-up call; its result is not reported
	// Policy overrides fields of turn.DefaultPolicy: a JSON object.
	Policy json.RawMessage `json:"policy,omitempty"`
	Logs   string          `json:"logs,omitempty"` // folder for turn logs; "" for none
	Plant  Plant           `json:"plant,omitempty"`
	Agent  scenario.Agent  `json:"agent"`
}

// A Call is one call to place.
type Call struct {
	ID     string `json:"id"`
	Prompt string `json:"prompt"`
}

// A Result is the outcome of a call as the server reports it.
type Result struct {
	ID     string            `json:"id"`
	Err    string            `json:"err,omitempty"`
	Reason pipeline.Reason   `json:"reason"`
	Party  string            `json:"party,omitempty"` // who answered, if detection ran
	Turns  []json.RawMessage `json:"turns"`           // items of GET /v1/calls/{id}/turns
	Lines  []pipeline.Line   `json:"lines"`
}

// PolicyWithout returns a Job.Policy that switches the parts off.
func PolicyWithout(parts []string) (json.RawMessage, error) {
	policy := map[string]any{}
	for _, p := range parts {
		switch p {
		case "speculation":
			policy["Speculations"] = 0
		case "merging":
			policy["NoMerge"] = true
		default:
			return nil, fmt.Errorf("without %q: accepted are speculation and merging", p)
		}
	}
	return json.Marshal(policy)
}

// policy returns the default policy with the job's overrides.
func (j Job) policy() (turn.Policy, error) {
	p := turn.DefaultPolicy()
	if len(j.Policy) == 0 {
		return p, nil
	}
	d := json.NewDecoder(bytes.NewReader(j.Policy))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("policy %s: the turn machine does not support it: %w", j.Policy, err)
	}
	return p, nil
}

// Run reads a job, places its calls, and writes the result of each when it ends.
func Run(ctx context.Context, in io.Reader, out io.Writer) error {
	var j Job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	policy, err := j.policy()
	if err = errors.Join(err, j.Plant.check()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	transport, stop, err := OpenMedia(ctx, Loopback(), nil)
	if err != nil {
		return err
	}
	defer stop()
	ua := &sip.UA{Listen: "127.0.0.1:0", Media: transport}
	if err = ua.Start(); err != nil {
		return err
	}
	agent := &conversation.Agent{
		Clients: &provider.Clients{
			Recognizers: map[string]pipeline.Recognizer{"fake": asr.Deepgram{URL: "ws://" + j.Fakes + "/v1/listen"}},
			Models:      map[string]pipeline.Model{"fake": llm.OpenAI{URL: "http://" + j.Fakes + "/v1"}},
			Voices:      map[string]pipeline.Voice{"fake": tts.ElevenLabs{URL: "ws://" + j.Fakes}},
		},
		Policy: policy,
	}
	if j.Logs != "" {
		agent.OpenTurnLog = turnlog.Dir(j.Logs)
	}
	waiting, results := make(chan Call, len(j.Calls)), make(chan Result)
	if err = j.warm(ctx, ua, agent); err == nil {
		for _, o := range j.Calls {
			waiting <- o
		}
	}
	close(waiting)
	var lines sync.WaitGroup
	for i := range min(j.AtATime, len(j.Calls)) {
		lines.Go(func() {
			machine.Sleep(ctx, time.Duration(i)*j.Stagger)
			for o := range waiting {
				results <- j.place(ctx, ua, agent, o)
			}
		})
	}
	go func() { lines.Wait(); close(results) }()
	answer := json.NewEncoder(out)
	for r := range results {
		if err == nil {
			err = answer.Encode(r)
		}
	}
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	_ = ua.Close(closing) // only loopback addresses
	return err
}

// Loopback returns the address for calls within one machine.
func Loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

// OpenMedia opens RTP on ip, with its own media clock. stop stops the clock. late receives the clock's ticks; it is nil for
// a server under test. Otherwise streams send at random moments of a frame, as phones do.
func OpenMedia(ctx context.Context, ip netip.Addr, late mediaclock.Stream) (transport *rtp.Transport, stop func(), err error) {
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		return nil, nil, err
	}
	clock := &mediaclock.Clock{Precise: true}
	if transport, err = rtp.NewTransport(clock, ports, ip, netip.Addr{}); err != nil {
		return nil, nil, err
	}
	if late != nil {
		clock.Hook(late)
		clock.Scatter = true
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // legs need the clock until they are closed
	var ticking sync.WaitGroup
	ticking.Go(func() { clock.Run(ctx) })
	return transport, sync.OnceFunc(func() { transport.Close(); cancel(); ticking.Wait() }), nil
}

// warm places the warm-up call.
func (j Job) warm(ctx context.Context, ua *sip.UA, agent *conversation.Agent) error {
	if j.Warm == nil {
		return nil
	}
	if r := j.place(ctx, ua, agent, *j.Warm); r.Err != "" {
		return fmt.Errorf("warm-up: %s", r.Err)
	}
	return nil
}

// place makes one call and runs the agent until it ends.
func (j Job) place(ctx context.Context, ua *sip.UA, agent *conversation.Agent, o Call) Result {
	leg, err := ua.Dial(ctx, media.Target{ID: o.ID, To: "12025550199", From: "12025550100", Trunk: media.Trunk{Proxy: j.Proxy}},
		func(media.Progress) {})
	if err != nil {
		return Result{ID: o.ID, Err: err.Error()}
	}
	if leg, err = j.Plant.wrap(leg); err != nil {
		return Result{ID: o.ID, Err: err.Error()}
	}
	engine := pipeline.Engine{Provider: "fake"}
	brief := pipeline.SessionConfig{
		CallID: o.ID, Greeting: greeting, Prompt: o.Prompt, AnsweredAt: time.Now(),
		Engines:   pipeline.Engines{ASR: engine, LLM: engine, TTS: engine},
		Voicemail: pipeline.Voicemail(j.Agent.Voicemail), VoicemailMessage: j.Agent.Message, Patience: j.Agent.Patience,
	}
	if j.Agent.Transfer {
		if err = j.enableTransfer(ua, o, &brief); err != nil {
			return Result{ID: o.ID, Err: err.Error()}
		}
	}
	out, err := agent.Talk(ctx, leg, brief)
	if err != nil {
		return Result{ID: o.ID, Err: err.Error()}
	}
	r := Result{ID: o.ID, Reason: out.Reason, Lines: out.Lines}
	if out.AnsweredBy != nil {
		r.Party = out.AnsweredBy.Party
	}
	for _, t := range out.Turns {
		item, err := json.Marshal(t)
		if err == nil {
			item, err = j.Plant.alterTurn(item)
		}
		if err != nil {
			return Result{ID: o.ID, Err: err.Error()}
		}
		r.Turns = append(r.Turns, item)
	}
	return r
}

// Colleague is the number to which the agent transfers a call. asksFor are the words after which
// the fake model transfers.
const (
	Colleague = "12025550111"
	asksFor   = "with a colleague"
)

// enableTransfer lets the agent transfer the caller. A transfer places a second call and connects both calls.
func (j Job) enableTransfer(ua *sip.UA, o Call, brief *pipeline.SessionConfig) error {
	var err error
	brief.Tools, err = tools.Build([]tools.Definition{{
		Type: tools.TransferCall, Destinations: []tools.Destination{{Label: "colleague", Number: Colleague}},
	}}, safedial.Rules{}, nil)
	brief.Bridge = func(ctx context.Context, number string) (media.Leg, error) {
		return ua.Dial(ctx, media.Target{ID: o.ID + "-colleague", To: number, From: "12025550100", Trunk: media.Trunk{Proxy: j.Proxy}}, nil)
	}
	return err
}

// calls returns the tool call with which the fake model replies to messages; name is empty if there is none.
func calls(messages []fakeprovider.Message) (name, arguments string) {
	if n := len(messages); n > 0 && messages[n-1].Role == "user" && strings.Contains(messages[n-1].Content, asksFor) {
		return tools.TransferCall, `{"to":"colleague"}`
	}
	return "", ""
}

// greeting is the agent's first line.
const greeting = "hello this is parley how may i help you"

// StartFakes starts cmd, which must run Fakes, and sends it the script. addr is the address of
// the providers; end stops them.
func StartFakes(cmd *exec.Cmd, script providers.Script) (addr string, end func(), err error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err = cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait() // the process writes its errors to stderr
	}
	if err = json.NewEncoder(in).Encode(script); err == nil {
		addr, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		end()
		return "", nil, fmt.Errorf("fake providers: %w", err)
	}
	return strings.TrimSpace(addr), end, nil
}

// Fakes runs the fake providers. It reads their script from in, writes their address to out, and
// returns when in ends.
func Fakes(ctx context.Context, in io.Reader, out io.Writer) error {
	var spec providers.Script
	if err := json.NewDecoder(in).Decode(&spec); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	script := spec.Fake()
	script.Reply, script.Call = providers.Reply, calls
	fakes, err := fakeprovider.Start(ctx, "127.0.0.1:0", script)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(out, fakes.Addr()); err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	return errors.Join(err, fakes.Close())
}
