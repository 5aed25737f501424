package benchcli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/bench/turns"
	"github.com/parley-voice/parley/pipeline"
)

// Turns measures the response time that callers hear.
type Turns struct {
	Peer     scenario.Peer     `help:"Transport of the callers: sip, or web (WebRTC, with a full server). Overrides that of a scenario (sip)."`
	Calls    int               `help:"Concurrent calls (36; 1 with --target or --order)."`
	Pauses   int               `help:"Minimum number of pauses in the pauses scenario (600). The other scenarios have a sixth, a twelfth or a 24th as many exchanges."`
	Seed     uint64            `help:"Seed of the callers' speech. Published figures use the default, on which nothing was tuned." default:"20261121"`
	Without  []string          `help:"Repeat the run with these switched off, for comparison: speculation, merging."`
	Patience pipeline.Patience `help:"Patience of the agent: quick, balanced or careful."`
	Only     []scenario.Name   `help:"Run only these scenarios: plain, pauses, barge-in, backchannel, cough, resume, echo, hang-up."`
	JSON     string            `help:"Write the result to this file." placeholder:"FILE"`
	Worst    string            `help:"Write recordings of the 10 worst turns to this folder." placeholder:"DIR"`
	Other    Other             `embed:""`
	Scenario []string          `help:"Run this scenario instead of the default ones and check its expectations: a name that bench scenarios prints, or a file. Repeatable." placeholder:"NAME|FILE"`
	Plant    gateway.Plant     `hidden:"" help:"Fault of the measured process, which the run must detect: late, stale, doubled, wrong."`
	Logs     string            `help:"Write the turn log of each call to this folder, for parley replay." type:"existingdir" placeholder:"DIR"`
}

// Run implements the command.
func (c Turns) Run(ctx context.Context, t *Terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Other.given() {
		return t.measure(ctx, "target", c, c.JSON, func(out io.Writer, f *result.File) error {
			return c.Other.run(ctx, t, out, cmp.Or(c.Calls, 1), c.Seed, f)
		})
	}
	if len(c.Scenario) > 0 {
		return c.play(ctx, t)
	}
	c.Calls, c.Pauses = cmp.Or(c.Calls, 36), cmp.Or(c.Pauses, 600)
	command := "turns"
	if c.Peer == scenario.Web {
		command = "turns --peer web"
	}
	return t.measure(ctx, command, c, c.JSON, func(out io.Writer, f *result.File) error {
		o := c.options(t)
		o.Peer, o.Calls, o.Pauses, o.Without, o.Patience, o.Only = c.Peer, c.Calls, c.Pauses, c.Without, c.Patience, c.Only
		if err := turns.Bench(ctx, out, o, f, c.Worst); err != nil {
			return err
		}
		return f.Table(out)
	})
}

// options returns the options common to all runs.
func (c Turns) options(t *Terminal) turns.Options {
	return turns.Options{Seed: c.Seed, Plant: c.Plant, Logs: c.Logs, Progress: t.Bar("utterances"), Child: t.Child, Warm: true, Log: t.Errs}
}

// check rejects combinations in which an option would have no effect.
func (c Turns) check() error {
	other, target := "--scenario", c.Other.given()
	switch {
	case c.Other.Order != "":
		other = "--order"
	case target:
		other = "--target"
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
		{"--patience", c.Patience != ""},
		{"--worst", c.Worst != ""},
		{"--scenario", target && len(c.Scenario) > 0},
		{"--target", c.Other.Target != "" && c.Other.Order != ""},
		{"--peer", target && c.Peer != ""},
		{"--logs", target && c.Logs != ""},
		{"--plant", target && c.Plant != gateway.Healthy},
	} {
		if o.given {
			return fmt.Errorf("%s cannot be combined with %s", o.name, other)
		}
	}
	return nil
}

// Gateway is the measured process of the turns benchmark.
type Gateway struct{}

// Run implements the command.
func (Gateway) Run(ctx context.Context, t *Terminal) error { return gateway.Run(ctx, t.In, t.Out) }
