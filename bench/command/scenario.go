package command

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/bench/scene"
)

// Scenarios lists the shipped scenarios.
type Scenarios struct{}

// Run prints a line of each.
func (Scenarios) Run(t *Terminal) error {
	w := tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0)
	for _, name := range scene.Names() {
		s, err := scene.Find(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\n", s.Name, s.About)
	}
	return w.Flush()
}

// play plays scenarios one after the other.
func (c Turns) play(ctx context.Context, t *Terminal) error {
	var all []*scene.Scene
	for _, name := range c.Scenario {
		s, err := scene.Find(name)
		if err != nil {
			return err
		}
		if c.Peer != "" {
			if s, err = s.By(c.Peer); err != nil {
				return err
			}
		}
		all = append(all, s)
	}
	missed := 0
	err := t.measure(ctx, "scenario", c, c.JSON, func(f *result.File) error {
		for _, s := range all {
			if c.Calls > 0 {
				s.Calls = c.Calls
			}
			n, err := scenario.Play(ctx, t.Out, c.options(t), s, f)
			if err != nil {
				return err
			}
			missed += n
		}
		return nil
	})
	if err == nil && missed > 0 {
		err = fmt.Errorf("%d expectations were not met", missed)
	}
	return err
}
