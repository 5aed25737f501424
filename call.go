package main

import (
	"fmt"

	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trace"
)

type callCmd struct {
	Trace callTraceCmd `cmd:"" help:"Print the signalling of a call that is over."`
}

type callTraceCmd struct {
	ID   string `arg:"" help:"The call's id."`
	JSON bool   `help:"Print JSON."`
}

// Run prints the ladder of a call.
func (c callTraceCmd) Run(w *world) error {
	d, err := w.open()
	if err != nil {
		return err
	}
	defer d.Close()
	ladder, err := (&store.Store{Pool: d.Pool}).Signalling(w, c.ID)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.ID, err)
	case c.JSON:
		return trace.WriteJSON(w.out, ladder)
	case len(ladder) == 0:
		return fmt.Errorf("%s: no signalling is kept of this call", c.ID)
	default:
		return trace.Write(w.out, ladder)
	}
}
