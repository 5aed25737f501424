// Package gateway is the measured process of a turn bench: it dials calls, talks
// on them as the server does, and reports them as it measured them itself. The
// providers that it asks are a process of their own, too.
package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/scene"
	"github.com/parley-voice/parley/bench/wait"
	"github.com/parley-voice/parley/bench/wording"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/converse"
	"github.com/parley-voice/parley/pipeline/egress"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/pipeline/tts"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/turnlog"
	"github.com/parley-voice/parley/sip"
)

// A Job is what a gateway is asked to do.
type Job struct {
	Proxy   string        `json:"proxy"`
	Fakes   string        `json:"fakes"` // host:port
	AtATime int           `json:"at_a_time"`
	Stagger time.Duration `json:"stagger"` // between two of the first calls
	Calls   []Order       `json:"calls"`
	Warm    *Order        `json:"warm,omitempty"` // is placed before them, and told of no more
	// Policy changes turn.DefaultPolicy: a JSON object with some of its fields.
	Policy json.RawMessage `json:"policy,omitempty"`
	Logs   string          `json:"logs,omitempty"` // folder of the turn logs; empty for none
	Plant  Plant           `json:"plant,omitempty"`
	Agent  scene.Agent     `json:"agent"`
}

// An Order is one call that a gateway is to place.
type Order struct {
	ID     string `json:"id"`
	Prompt string `json:"prompt"`
}

// A Result is the outcome of one of a gateway's calls, as the server tells it.
type Result struct {
	ID     string            `json:"id"`
	Err    string            `json:"err,omitempty"`
	Reason pipeline.Reason   `json:"reason"`
	Party  string            `json:"party,omitempty"` // who answered, where that was asked
	Turns  []json.RawMessage `json:"turns"`           // as GET /v1/calls/{id}/turns has them
	Lines  []pipeline.Line   `json:"lines"`
}

// Without switches parts of the turn machine off.
func Without(parts []string) (json.RawMessage, error) {
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

// policy is the default with what the job changes.
func (j Job) policy() (turn.Policy, error) {
	p := turn.DefaultPolicy()
	if len(j.Policy) == 0 {
		return p, nil
	}
	d := json.NewDecoder(bytes.NewReader(j.Policy))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("policy %s: this turn machine has no such part: %w", j.Policy, err)
	}
	return p, nil
}

// Run does the job that it reads, and writes the result of each call as it ends.
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
	agent := &converse.Agent{
		Recognizers: map[string]pipeline.Recognizer{"fake": asr.Deepgram{URL: "ws://" + j.Fakes + "/v1/listen"}},
		Models:      map[string]pipeline.Model{"fake": llm.OpenAI{URL: "http://" + j.Fakes + "/v1"}},
		Voices:      map[string]pipeline.Voice{"fake": tts.ElevenLabs{URL: "ws://" + j.Fakes}},
		Policy:      policy,
	}
	if j.Logs != "" {
		agent.Journal = turnlog.Logs(j.Logs)
	}
	orders, results := make(chan Order, len(j.Calls)), make(chan Result)
	if err = j.warm(ctx, ua, agent); err == nil {
		for _, o := range j.Calls {
			orders <- o
		}
	}
	close(orders)
	var lines sync.WaitGroup
	for i := range min(j.AtATime, len(j.Calls)) {
		lines.Go(func() {
			wait.For(ctx, time.Duration(i)*j.Stagger)
			for o := range orders {
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
	_ = ua.Close(closing) // loopback only
	return err
}

// Loopback is where calls within one machine are held.
func Loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

// OpenMedia opens RTP on an address, on a clock of its own that stop ends. Where
// late is not nil it keeps how late the clock is.
func OpenMedia(ctx context.Context, ip netip.Addr, late pace.Stream) (transport *rtp.Transport, stop func(), err error) {
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		return nil, nil, err
	}
	clock := &pace.Clock{Precise: true}
	if transport, err = rtp.NewTransport(clock, ports, ip, netip.Addr{}); err != nil {
		return nil, nil, err
	}
	if late != nil {
		clock.Hook(late)
	}
	ctx, cancel := context.WithCancel(ctx)
	var ticking sync.WaitGroup
	ticking.Go(func() { clock.Run(ctx) })
	return transport, sync.OnceFunc(func() { transport.Close(); cancel(); ticking.Wait() }), nil
}

// warm places the call that none is told of.
func (j Job) warm(ctx context.Context, ua *sip.UA, agent *converse.Agent) error {
	if j.Warm == nil {
		return nil
	}
	if r := j.place(ctx, ua, agent, *j.Warm); r.Err != "" {
		return fmt.Errorf("warm-up: %s", r.Err)
	}
	return nil
}

// place makes one call and talks on it to its end.
func (j Job) place(ctx context.Context, ua *sip.UA, agent *converse.Agent, o Order) Result {
	leg, err := ua.Dial(ctx, media.Target{ID: o.ID, To: "12025550199", From: "12025550100", Trunk: media.Trunk{Proxy: j.Proxy}},
		func(media.Progress) {})
	if err != nil {
		return Result{ID: o.ID, Err: err.Error()}
	}
	if leg, err = j.Plant.on(leg); err != nil {
		return Result{ID: o.ID, Err: err.Error()}
	}
	engine := pipeline.Engine{Provider: "fake"}
	brief := pipeline.Brief{
		CallID: o.ID, Greeting: greeting, Prompt: o.Prompt, AnsweredAt: time.Now(),
		Engines:   pipeline.Engines{ASR: engine, LLM: engine, TTS: engine},
		Voicemail: pipeline.Voicemail(j.Agent.Voicemail), VoicemailMessage: j.Agent.Message,
	}
	if j.Agent.Transfer {
		if err = j.handsOver(ua, o, &brief); err != nil {
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
			item, err = j.Plant.tells(item)
		}
		if err != nil {
			return Result{ID: o.ID, Err: err.Error()}
		}
		r.Turns = append(r.Turns, item)
	}
	return r
}

// Whom callers are handed over to, and what has the fake model do it.
const (
	Colleague = "12025550111"
	asksFor   = "with a colleague"
)

// handsOver lets the agent hand the caller over, by a call of its own.
func (j Job) handsOver(ua *sip.UA, o Order, brief *pipeline.Brief) error {
	var err error
	brief.Tools, err = tools.Build([]tools.Definition{{
		Type: tools.TransferCall, Destinations: []tools.Destination{{Label: "colleague", Number: Colleague}},
	}}, egress.Rules{}, nil)
	brief.Bridge = func(ctx context.Context, number string) (media.Leg, error) {
		return ua.Dial(ctx, media.Target{ID: o.ID + "-colleague", To: number, From: "12025550100", Trunk: media.Trunk{Proxy: j.Proxy}}, nil)
	}
	return err
}

// calls is the tool call that the fake model makes of messages.
func calls(messages []fake.Message) (name, arguments string) {
	if n := len(messages); n > 0 && messages[n-1].Role == "user" && strings.Contains(messages[n-1].Content, asksFor) {
		return tools.TransferCall, `{"to":"colleague"}`
	}
	return "", ""
}

// greeting is what the agent says first.
const greeting = "hello this is parley how may i help you"

// Fakes plays the providers that a gateway asks, by the script that in begins
// with, tells their address, and ends with in.
func Fakes(ctx context.Context, in io.Reader, out io.Writer) error {
	var told providers.Script
	if err := json.NewDecoder(in).Decode(&told); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	script := told.Fake()
	script.Reply, script.Call = wording.Reply, calls
	fakes, err := fake.Start(ctx, "127.0.0.1:0", script)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(out, fakes.Addr()); err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	if closing := fakes.Close(); err == nil {
		err = closing
	}
	return err
}
