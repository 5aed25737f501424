package main

import (
	"context"
	"fmt"
	"os"

	"github.com/parley-voice/parley/pipeline/turnlog"
)

type replayCmd struct {
	File string `arg:"" help:"Turn log of a call, as PARLEY_TURN_LOGS keeps it." type:"existingfile"`
}

// Run shows what happened and what the machine made of it.
func (c replayCmd) Run(w *world) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := turnlog.Replay(f, w.out); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return nil
}

// openTurnLogs has the agent keep turn logs, where the operator asked for them.
func (h *house) openTurnLogs(context.Context) error {
	if h.config.TurnLogs == "" {
		return nil
	}
	h.agent.Journal = turnlog.Logs(h.config.TurnLogs)
	return os.MkdirAll(h.config.TurnLogs, 0o700)
}
