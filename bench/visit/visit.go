// Package visit has visitors join web calls of a parley serve of its own. Their
// tokens, and what the server says of each call, come over HTTP alone.
package visit

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
	"github.com/parley-voice/parley/bench/served"
	"github.com/parley-voice/parley/bench/visitor"
	"github.com/parley-voice/parley/bench/wait"
	"github.com/parley-voice/parley/bench/wording"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/pipeline"
)

// A Visit is one call that is to be held.
type Visit struct {
	ID    string // for whoever asked for it
	Words int    // of each answer
	// Codecs are offered; none for all that a visitor has.
	Codecs []string
	// Talk does what the visitor does there.
	Talk func(ctx context.Context, leg media.Leg)
}

// A House holds visits.
type House struct {
	// Child makes a command of this program.
	Child   func(ctx context.Context, args ...string) *exec.Cmd
	Fakes   string // host:port of the providers
	AtATime int
	Stagger time.Duration // between two of the first calls
	Logs    string        // folder for the turn logs; empty for none
	// Warm, where set, is held before all others, and told of no more.
	Warm *Visit
	Late pace.Stream // keeps how late the visitors' clock is
	Log  io.Writer   // of the server

	server *served.Server
	clock  *pace.Clock
}

// Hold holds all visits, and returns what the server says of each, in no order.
func (h House) Hold(ctx context.Context, all []Visit) (results []gateway.Result, err error) {
	settings := []string{"PARLEY_FAKE_URL=" + h.Fakes}
	if h.Logs != "" {
		settings = append(settings, "PARLEY_TURN_LOGS="+h.Logs)
	}
	h.server = &served.Server{Child: h.Child, Log: h.Log, Settings: settings}
	defer func() { err = errors.Join(err, h.server.Stop()) }()
	if err = h.server.Start(ctx); err != nil {
		return nil, err
	}
	known := all
	if h.Warm != nil {
		known = append(slices.Clone(all), *h.Warm)
	}
	if err = h.server.Furnish(ctx, "bench", operator(known)); err != nil {
		return nil, err
	}
	stop := h.tick(ctx)
	defer stop()
	if h.Warm != nil {
		if r := h.visit(ctx, *h.Warm); r.Err != "" {
			return nil, fmt.Errorf("warm-up: %s", r.Err)
		}
	}
	return h.lines(ctx, all), ctx.Err()
}

// tick runs the visitors' clock until stop.
func (h *House) tick(ctx context.Context) (stop func()) {
	h.clock = &pace.Clock{Precise: true}
	if h.Late != nil {
		h.clock.Hook(h.Late)
	}
	ctx, cancel := context.WithCancel(ctx)
	var ticking sync.WaitGroup
	ticking.Go(func() { h.clock.Run(ctx) })
	return func() { cancel(); ticking.Wait() }
}

// lines holds so many visits at a time.
func (h House) lines(ctx context.Context, all []Visit) []gateway.Result {
	waiting, done := make(chan Visit, len(all)), make(chan gateway.Result, len(all))
	for _, v := range all {
		waiting <- v
	}
	close(waiting)
	var lines sync.WaitGroup
	for i := range min(h.AtATime, len(all)) {
		lines.Go(func() {
			wait.For(ctx, time.Duration(i)*h.Stagger)
			for v := range waiting {
				if ctx.Err() == nil {
					done <- h.visit(ctx, v)
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

// visit holds one call.
func (h House) visit(ctx context.Context, v Visit) gateway.Result {
	var ticket struct {
		CallID string `json:"call_id"`
		Token  string `json:"access_token"`
		URL    string `json:"url"`
	}
	err := h.server.Ask(ctx, http.MethodPost, "/v1/calls/web", map[string]any{"agent_id": agent(v.Words), "client": "sdk"}, &ticket)
	if err != nil {
		return gateway.Result{ID: v.ID, Err: err.Error()}
	}
	leg, err := visitor.Visitor{URL: ticket.URL, Token: ticket.Token, Codecs: v.Codecs, Clock: h.clock}.Join(ctx)
	if err != nil {
		return gateway.Result{ID: v.ID, Err: err.Error()}
	}
	v.Talk(ctx, leg)
	err = leg.Hangup(media.LocalHangup)
	r := gateway.Result{ID: v.ID}
	if err = errors.Join(err, h.told(ctx, ticket.CallID, &r)); err != nil {
		r.Err = err.Error()
	}
	return r
}

// ending is how long the server may take to write a call down.
const ending = 10 * time.Second

// told is what the server says of a call that is over.
func (h House) told(ctx context.Context, id string, r *gateway.Result) error {
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
		if err := h.server.Ask(ctx, http.MethodGet, "/v1/calls/"+id, nil, &call); err != nil {
			return err
		}
		if call.Status != "ended" && time.Now().After(late) {
			return fmt.Errorf("it has ended, and the server says %s", call.Status)
		}
		if call.Status != "ended" {
			wait.For(ctx, 50*time.Millisecond)
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
	err := h.server.Ask(ctx, http.MethodGet, "/v1/calls/"+id+"/turns", nil, &turns)
	r.Turns = turns
	return err
}

// operator is what the server's operator wrote down: as it ships, but for the
// analysis, which comes after the call. Agents differ by how much they say.
func operator(all []Visit) string {
	var b strings.Builder
	b.WriteString("organizations:\n- name: bench\n  agents:\n")
	var lengths []int
	for _, v := range all {
		lengths = append(lengths, v.Words)
	}
	slices.Sort(lengths)
	for _, n := range slices.Compact(lengths) {
		fmt.Fprintf(&b, "  - {name: %s, published: true, greeting: %q, prompt: %q, analysis: {summary: false, success: false},\n"+
			"     speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}\n", agent(n), greeting, wording.Instructions(n))
	}
	return b.String()
}

// agent is the name of the one whose answers have so many words.
func agent(words int) string { return fmt.Sprintf("words-%d", words) }

// greeting is what agents say first.
const greeting = "hello this is parley how may i help you"
