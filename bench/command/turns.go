package command

import (
	"cmp"
	"context"
	"os/exec"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
)

// Turns measures how long callers wait for an answer.
type Turns struct {
	Calls    int             `help:"Calls at a time (36; with --target 1)."`
	Pauses   int             `help:"Pauses that callers make, at least; the other scenarios are in proportion." default:"600"`
	Seed     uint64          `help:"What callers say follows from it. Published figures are of the default, which nothing was tuned on." default:"20261121"`
	Without  []string        `help:"Run all again with these switched off, and show it beside: speculation, merging."`
	Only     []scenario.Name `help:"Only these scenarios: plain, pauses, barge-in, backchannel, cough, resume, echo, hang-up."`
	JSON     string          `help:"Write the result to this file." placeholder:"FILE"`
	Worst    string          `help:"Write recordings of the 10 worst turns to this folder." placeholder:"DIR"`
	Other    Other           `embed:""`
	Scenario []string        `help:"Play these scenarios instead, each a file or the name of one that parley bench scenarios lists, and say whether what they expect was seen." placeholder:"NAME|FILE"`
	Plant    gateway.Plant   `hidden:"" help:"A fault that the measured process has, and the run must show: late, stale, doubled, wrong."`
	Logs     string          `help:"Write the turn log of each call to this folder, for parley replay." type:"existingdir" placeholder:"DIR"`
}

// Run measures turns at the caller's end.
func (c Turns) Run(ctx context.Context, t *Terminal) error {
	if c.Other.Target != "" {
		return t.measure(ctx, "target", c, c.JSON, func(f *result.File) error {
			return c.Other.run(ctx, t, cmp.Or(c.Calls, 1), c.Seed, f)
		})
	}
	if len(c.Scenario) > 0 {
		return c.play(ctx, t)
	}
	c.Calls = cmp.Or(c.Calls, 36)
	return t.measure(ctx, "turns", c, c.JSON, func(f *result.File) error {
		err := scenario.Bench(ctx, t.Out, scenario.Options{
			Calls: c.Calls, Pauses: c.Pauses, Seed: c.Seed, Without: c.Without, Only: c.Only, Logs: c.Logs, Plant: c.Plant, Progress: t.Bar("lines"),
			Child: func(ctx context.Context, name string) *exec.Cmd { return t.Child(ctx, "bench", name) },
		}, f, c.Worst)
		if err != nil {
			return err
		}
		return f.Table(t.Out)
	})
}

// Gateway is the measured process of a turn bench.
type Gateway struct{}

// Run places calls and talks on them.
func (Gateway) Run(ctx context.Context, t *Terminal) error { return gateway.Run(ctx, t.In, t.Out) }
