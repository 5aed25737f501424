package benchcli

import (
	"context"
	"io"
	"time"

	"github.com/parley-voice/parley/bench/load"
	"github.com/parley-voice/parley/bench/result"
)

// Load finds how many concurrent calls a server carries.
type Load struct {
	Steps    []int         `help:"Concurrent calls, ascending. The run stops at the first step that fails." default:"1,25,50,100,200,300,500"`
	Length   time.Duration `help:"Duration of each step; up to three times as long with few calls." default:"20s"`
	Hold     time.Duration `help:"Length of a call; after it the call is placed again." default:"40s"`
	Ramp     time.Duration `help:"Minimum time over which the calls of a step start." default:"5s"`
	Settle   time.Duration `help:"Time after the ramp that is not counted." default:"5s"`
	Overload int           `help:"Instead of the steps, request this many times the calls that the server has room for, within --ramp." placeholder:"N"`
	JSON     string        `help:"Write the result to this file." placeholder:"FILE"`
	Profile  string        `help:"Repeat the last step and write a CPU profile of the server to this file." placeholder:"FILE"`
}

// Run implements the command.
func (c Load) Run(ctx context.Context, t *Terminal) error {
	return t.measure(ctx, "load", c, c.JSON, func(out io.Writer, f *result.File) error {
		o := load.Options{
			Steps: c.Steps, Length: c.Length, Hold: c.Hold, Ramp: c.Ramp, Settle: c.Settle, Profile: c.Profile,
			Child: t.Child, Bar: t.Bar, Out: out, Log: t.Errs,
		}
		if c.Overload > 0 {
			return load.RunOverload(ctx, o, c.Overload, f)
		}
		return load.Run(ctx, o, f)
	})
}
