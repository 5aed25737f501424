package command

import (
	"cmp"
	"context"
	"fmt"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/bench/scene"
	"github.com/parley-voice/parley/bench/script"
)

// Turns measures how long callers wait for an answer.
type Turns struct {
	Peer     scene.Peer    `help:"By what callers talk: sip, or web, which is WebRTC with a whole server; with --scenario, instead of what it says (sip)."`
	Calls    int           `help:"Calls at a time (36; with --target 1)."`
	Pauses   int           `help:"Pauses that callers make, at least; the other scenarios are in proportion (600)."`
	Seed     uint64        `help:"What callers say follows from it. Published figures are of the default, which nothing was tuned on." default:"20261121"`
	Without  []string      `help:"Run all again with these switched off, and show it beside: speculation, merging."`
	Only     []script.Name `help:"Only these scenarios: plain, pauses, barge-in, backchannel, cough, resume, echo, hang-up."`
	JSON     string        `help:"Write the result to this file." placeholder:"FILE"`
	Worst    string        `help:"Write recordings of the 10 worst turns to this folder." placeholder:"DIR"`
	Other    Other         `embed:""`
	Scenario []string      `help:"Play these scenarios instead, each a file or the name of one that parley bench scenarios lists, and say whether what they expect was seen." placeholder:"NAME|FILE"`
	Plant    gateway.Plant `hidden:"" help:"A fault that the measured process has, and the run must show: late, stale, doubled, wrong."`
	Logs     string        `help:"Write the turn log of each call to this folder, for parley replay." type:"existingdir" placeholder:"DIR"`
}

// Run measures turns at the caller's end.
func (c Turns) Run(ctx context.Context, t *Terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Other.Target != "" {
		return t.measure(ctx, "target", c, c.JSON, func(f *result.File) error {
			return c.Other.run(ctx, t, cmp.Or(c.Calls, 1), c.Seed, f)
		})
	}
	if len(c.Scenario) > 0 {
		return c.play(ctx, t)
	}
	c.Calls, c.Pauses = cmp.Or(c.Calls, 36), cmp.Or(c.Pauses, 600)
	command := "turns"
	if c.Peer == scene.Web {
		command = "turns --peer web"
	}
	return t.measure(ctx, command, c, c.JSON, func(f *result.File) error {
		o := c.options(t)
		o.Peer, o.Calls, o.Pauses, o.Without, o.Only = c.Peer, c.Calls, c.Pauses, c.Without, c.Only
		if err := scenario.Bench(ctx, t.Out, o, f, c.Worst); err != nil {
			return err
		}
		return f.Table(t.Out)
	})
}

// options are those of every run.
func (c Turns) options(t *Terminal) scenario.Options {
	return scenario.Options{Seed: c.Seed, Plant: c.Plant, Logs: c.Logs, Progress: t.Bar("lines"), Child: t.Child, Warm: true, Log: t.Errs}
}

// check says which options are of no use beside others: they are not left aside
// without a word.
func (c Turns) check() error {
	beside, target := "--scenario", c.Other.Target != ""
	if target {
		beside = "--target"
	}
	if c.Peer != "" {
		if err := c.Peer.Check(); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	if !target && len(c.Scenario) == 0 {
		return nil
	}
	for _, o := range []struct {
		name  string
		given bool
	}{
		{"--only", len(c.Only) > 0},
		{"--pauses", c.Pauses != 0},
		{"--without", len(c.Without) > 0},
		{"--worst", c.Worst != ""},
		{"--scenario", target && len(c.Scenario) > 0},
		{"--peer", target && c.Peer != ""},
		{"--logs", target && c.Logs != ""},
		{"--plant", target && c.Plant != gateway.Healthy},
	} {
		if o.given {
			return fmt.Errorf("%s: of no use beside %s; leave one of them out", o.name, beside)
		}
	}
	return nil
}

// Gateway is the measured process of a turn bench.
type Gateway struct{}

// Run places calls and talks on them.
func (Gateway) Run(ctx context.Context, t *Terminal) error { return gateway.Run(ctx, t.In, t.Out) }
