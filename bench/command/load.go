package command

import (
	"context"
	"time"

	"github.com/parley-voice/parley/bench/load"
	"github.com/parley-voice/parley/bench/result"
)

// Load finds how many calls a server holds at a time.
type Load struct {
	Steps   []int         `help:"Calls at a time, from few to many; it ends at the first number that is too many." default:"1,25,50,100,200,300,500"`
	Length  time.Duration `help:"How long each step is measured; few calls for up to three times as long." default:"20s"`
	Hold    time.Duration `help:"How long a call is; then it is placed again." default:"40s"`
	Ramp    time.Duration `help:"How long the calls of a step take to begin, at least." default:"5s"`
	Settle  time.Duration `help:"Of a step after that, before anything is counted." default:"5s"`
	JSON    string        `help:"Write the result to this file." placeholder:"FILE"`
	Profile string        `help:"Have the last step's load on again, and write a CPU profile of the server to this file." placeholder:"FILE"`
}

// Run climbs to the knee.
func (c Load) Run(ctx context.Context, t *Terminal) error {
	return t.measure(ctx, "load", c, c.JSON, func(f *result.File) error {
		return load.Run(ctx, load.Options{
			Steps: c.Steps, Length: c.Length, Hold: c.Hold, Ramp: c.Ramp, Settle: c.Settle, Profile: c.Profile,
			Child: t.Child, Bar: t.Bar, Out: t.Out, Log: t.Errs,
		}, f)
	})
}
