package benchcli

import (
	"context"
	"io"
	"time"

	"github.com/parley-voice/parley/bench/load"
	"github.com/parley-voice/parley/bench/result"
)

// Campaigns measures how evenly campaigns place calls.
type Campaigns struct {
	Pace      int           `help:"Calls per minute of each campaign: 1, 2, 5, 10, 20, 30, 60, 100 or 200." default:"200"`
	Campaigns int           `help:"Concurrent campaigns." default:"1"`
	Length    time.Duration `help:"Duration of the measurement, from the first call." default:"3m"`
	JSON      string        `help:"Write the result to this file." placeholder:"FILE"`
}

// Run lets campaigns call a scripted carrier.
func (c Campaigns) Run(ctx context.Context, t *Terminal) error {
	return t.measure(ctx, "campaigns", c, c.JSON, func(out io.Writer, f *result.File) error {
		return load.RunPacing(ctx, load.PacingOptions{
			Pace: c.Pace, Campaigns: c.Campaigns, Length: c.Length, Child: t.Child, Progress: t.Bar("s"), Out: out, Log: t.Errs,
		}, f)
	})
}
