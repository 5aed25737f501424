package webcaller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/server"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/pipeline"
)

// A Call is one web call to place.
type Call struct {
	ID    string // any name that the caller of Run chooses
	Words int    // words per answer
	// Codecs are the offered ones; none means all.
	Codecs []string
	// Talk plays the caller on the leg.
	Talk func(ctx context.Context, leg media.Leg)
}

// A Runner runs web calls on its own server.
type Runner struct {
	// Child returns a command that runs this program.
	Child   func(ctx context.Context, args ...string) *exec.Cmd
	Fakes   string // address of the providers, host:port
	AtATime int
	Stagger time.Duration // time between the starts of the first calls
	Logs    string        // folder for turn logs; "" for none
	// Warm is a warm-up call without a result; nil disables it.
	Warm *Call
	Late mediaclock.Stream // receives the ticks of the callers' clock; nil disables it
	Log  io.Writer         // log of the server

	server *server.Server
	clock  *mediaclock.Clock
}

// Run places all calls and returns the server's report of each call, in any order.
func (h Runner) Run(ctx context.Context, all []Call) (results []gateway.Result, err error) {
	settings := []string{"PARLEY_FAKE_URL=" + h.Fakes}
	if h.Logs != "" {
		settings = append(settings, "PARLEY_TURN_LOGS="+h.Logs)
	}
	h.server = &server.Server{Child: h.Child, Log: h.Log, Settings: settings}
	defer func() { err = errors.Join(err, h.server.Stop()) }()
	if err = h.server.Start(ctx); err != nil {
		return nil, err
	}
	known := all
	if h.Warm != nil {
		known = append(slices.Clone(all), *h.Warm)
	}
	if err = h.server.Configure(ctx, "bench", operator(known)); err != nil {
		return nil, err
	}
	stop := h.tick(ctx)
	defer stop()
	if h.Warm != nil {
		if r := h.place(ctx, *h.Warm); r.Err != "" {
			return nil, fmt.Errorf("warm-up: %s", r.Err)
		}
	}
	return h.lines(ctx, all), ctx.Err()
}

// tick runs the callers' clock until stop is called.
func (h *Runner) tick(ctx context.Context) (stop func()) {
	h.clock = &mediaclock.Clock{Precise: true, Scatter: true}
	if h.Late != nil {
		h.clock.Hook(h.Late)
	}
	ctx, cancel := context.WithCancel(ctx)
	var ticking sync.WaitGroup
	ticking.Go(func() { h.clock.Run(ctx) })
	return func() { cancel(); ticking.Wait() }
}

// lines runs all calls, at most AtATime of them concurrently.
func (h Runner) lines(ctx context.Context, all []Call) []gateway.Result {
	waiting, done := make(chan Call, len(all)), make(chan gateway.Result, len(all))
	for _, v := range all {
		waiting <- v
	}
	close(waiting)
	var lines sync.WaitGroup
	for i := range min(h.AtATime, len(all)) {
		lines.Go(func() {
			machine.Sleep(ctx, time.Duration(i)*h.Stagger)
			for v := range waiting {
				if ctx.Err() == nil {
					done <- h.place(ctx, v)
				}
			}
		})
	}
	lines.Wait()
	close(done)
	var results []gateway.Result
	for r := range done {
		results = append(results, r)
	}
	return results
}

// place places one call.
func (h Runner) place(ctx context.Context, v Call) gateway.Result {
	var ticket struct {
		CallID string `json:"call_id"`
		Token  string `json:"access_token"`
		URL    string `json:"url"`
	}
	err := h.server.Request(ctx, http.MethodPost, "/v1/calls/web", map[string]any{"agent_id": agent(v.Words), "client": "sdk"}, &ticket)
	if err != nil {
		return gateway.Result{ID: v.ID, Err: err.Error()}
	}
	leg, err := Caller{URL: ticket.URL, Token: ticket.Token, Codecs: v.Codecs, Clock: h.clock}.Join(ctx)
	if err != nil {
		return gateway.Result{ID: v.ID, Err: err.Error()}
	}
	v.Talk(ctx, leg)
	err = leg.Hangup(media.LocalHangup)
	r := gateway.Result{ID: v.ID}
	if err = errors.Join(err, h.readReport(ctx, ticket.CallID, &r)); err != nil {
		r.Err = err.Error()
	}
	return r
}

// ending is how long Run waits until the server has stored a finished call.
const ending = 10 * time.Second

// readReport reads the server's report of a finished call.
func (h Runner) readReport(ctx context.Context, id string, r *gateway.Result) error {
	var call struct {
		Status     string          `json:"status"`
		Reason     pipeline.Reason `json:"disconnection_reason"`
		Party      *string         `json:"answered_by"`
		Transcript []struct {
			Role  pipeline.Role `json:"role"`
			Text  string        `json:"text"`
			Start float64       `json:"start_s"`
			Turn  int           `json:"turn"`
		} `json:"transcript"`
	}
	for late := time.Now().Add(ending); call.Status != "ended"; {
		if err := h.server.Request(ctx, http.MethodGet, "/v1/calls/"+id, nil, &call); err != nil {
			return err
		}
		if call.Status != "ended" && time.Now().After(late) {
			return fmt.Errorf("call still %s after hangup", call.Status)
		}
		if call.Status != "ended" {
			machine.Sleep(ctx, 50*time.Millisecond)
		}
	}
	r.Reason = call.Reason
	if call.Party != nil {
		r.Party = *call.Party
	}
	for _, l := range call.Transcript {
		r.Lines = append(r.Lines, pipeline.Line{Role: l.Role, Text: l.Text, Start: time.Duration(l.Start * float64(time.Second)), Turn: l.Turn})
	}
	var turns []json.RawMessage
	err := h.server.Request(ctx, http.MethodGet, "/v1/calls/"+id+"/turns", nil, &turns)
	r.Turns = turns
	return err
}

// operator returns the operator's file: default settings, without the analysis after calls, and
// one agent per reply length.
func operator(all []Call) string {
	var b strings.Builder
	b.WriteString("organizations:\n- name: bench\n  agents:\n")
	var lengths []int
	for _, v := range all {
		lengths = append(lengths, v.Words)
	}
	slices.Sort(lengths)
	for _, n := range slices.Compact(lengths) {
		fmt.Fprintf(&b, "  - {name: %s, published: true, greeting: %q, prompt: %q, analysis: {summary: false, success: false},\n"+
			"     speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}\n", agent(n), greeting, providers.Prompt(n))
	}
	return b.String()
}

// agent returns the name of the agent whose replies have words words.
func agent(words int) string { return fmt.Sprintf("words-%d", words) }

// greeting is the agent's first line.
const greeting = "hello this is parley how may i help you"
