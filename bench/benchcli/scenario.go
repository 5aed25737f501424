package benchcli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/bench/turns"
)

// Scenarios lists the shipped scenarios.
type Scenarios struct{}

// Run implements the command.
func (Scenarios) Run(t *Terminal) error {
	w := tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0)
	for _, name := range scenario.Names() {
		s, err := scenario.Find(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\n", s.Name, s.About)
	}
	return w.Flush()
}

// play runs scenarios one after the other.
func (c Turns) play(ctx context.Context, t *Terminal) error {
	var all []*scenario.Scenario
	for _, name := range c.Scenario {
		s, err := scenario.Find(name)
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
	err := t.measure(ctx, "scenario", c, c.JSON, func(out io.Writer, f *result.File) error {
		for _, s := range all {
			if c.Calls > 0 {
				s.Calls = c.Calls
			}
			n, err := turns.Play(ctx, out, c.options(t), s, f)
			if err != nil {
				return err
			}
			missed += n
		}
		return nil
	})
	if err == nil && missed > 0 {
		err = fmt.Errorf("%d expectations not met", missed)
	}
	return err
}
