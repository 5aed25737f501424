package admincli

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/store"
)

// Call groups the call commands.
type Call struct {
	Trace TraceCall `cmd:"" help:"Print the SIP messages of an ended call."`
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
