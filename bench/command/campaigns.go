package command

import (
	"context"
	"time"

	"github.com/parley-voice/parley/bench/pacing"
	"github.com/parley-voice/parley/bench/result"
)

// Campaigns measures how evenly campaigns call.
type Campaigns struct {
	Pace      int           `help:"Calls a minute of each: 1, 2, 5, 10, 20, 30, 60, 100 or 200." default:"200"`
	Campaigns int           `help:"Campaigns at a time." default:"1"`
	Length    time.Duration `help:"How long it is measured, from the first call on." default:"3m"`
	JSON      string        `help:"Write the result to this file." placeholder:"FILE"`
}

// Run has campaigns call a scripted carrier.
func (c Campaigns) Run(ctx context.Context, t *Terminal) error {
	return t.measure(ctx, "campaigns", c, c.JSON, func(f *result.File) error {
		return pacing.Run(ctx, pacing.Options{
			Pace: c.Pace, Campaigns: c.Campaigns, Length: c.Length, Child: t.Child, Progress: t.Bar("s"), Out: t.Out, Log: t.Errs,
		}, f)
	})
}
