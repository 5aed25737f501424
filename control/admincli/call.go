package admincli

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/store"
)

// Call groups the call commands.
type Call struct {
	Trace   TraceCall    `cmd:"" help:"Print the SIP messages of an ended call."`
	Recount RecountCalls `cmd:"" help:"Rebuild the statistics of the Overview page from the calls."`
}

// TraceCall prints the SIP messages of a call.
type TraceCall struct {
	ID   string `arg:"" help:"The call's id."`
	JSON bool   `help:"Print JSON."`
}

// Run prints the SIP messages of a call.
func (c TraceCall) Run(ctx context.Context, d *Env) error {
	ladder, err := (&store.Store{Pool: d.Pool}).Signaling(ctx, c.ID)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.ID, err)
	case c.JSON:
		return callview.WriteTraceJSON(d.Out, ladder)
	case len(ladder) == 0:
		return fmt.Errorf("%s: no SIP messages are stored for this call", c.ID)
	default:
		return callview.WriteTrace(d.Out, ladder)
	}
}

// RecountCalls rebuilds the statistics of calls.
type RecountCalls struct {
	Org string    `required:"" help:"Name of the organization."`
	Day time.Time `format:"2006-01-02" required:"" help:"First day, in UTC."`
	For int       `default:"1" help:"Number of days, 1 to 400."`
}

// Run rebuilds the statistics and prints how many rows were wrong.
func (c RecountCalls) Run(ctx context.Context, d *Env) error {
	if c.For < 1 || c.For > 400 {
		return fmt.Errorf("--for: %d: use 1 to 400 days", c.For)
	}
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	f := &overview.Follower{Pool: d.Pool, Locate: d.NumberZone}
	calls, wrong, err := f.Recount(ctx, org, c.Day, c.Day.AddDate(0, 0, c.For))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%d calls counted, %d rows corrected\n", calls, wrong)
	return err
}
