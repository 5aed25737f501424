package desk

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trace"
)

// Call holds the commands of calls.
type Call struct {
	Trace TraceCall `cmd:"" help:"Print the signalling of a call that is over."`
}

// TraceCall prints the signalling of a call.
type TraceCall struct {
	ID   string `arg:"" help:"The call's id."`
	JSON bool   `help:"Print JSON."`
}

// Run prints the ladder of a call.
func (c TraceCall) Run(ctx context.Context, d *Desk) error {
	ladder, err := (&store.Store{Pool: d.Pool}).Signalling(ctx, c.ID)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.ID, err)
	case c.JSON:
		return trace.WriteJSON(d.Out, ladder)
	case len(ladder) == 0:
		return fmt.Errorf("%s: no signalling is kept of this call", c.ID)
	default:
		return trace.Write(d.Out, ladder)
	}
}
