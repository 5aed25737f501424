package main

import (
	"context"
	"fmt"
	"os"

	"github.com/parley-voice/parley/pipeline/turn/turnlog"
)

type replayCmd struct {
	File string `arg:"" help:"Turn log of a call, from the folder PARLEY_TURN_LOGS." type:"existingfile"`
}

// Run prints the events and the actions of the machine.
func (c replayCmd) Run(e *env) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := turnlog.Replay(f, e.out); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return nil
}

func (srv *server) openTurnLogs(context.Context) error {
	if srv.config.TurnLogs == "" {
		return nil
	}
	srv.agent.OpenTurnLog = turnlog.Dir(srv.config.TurnLogs)
	return os.MkdirAll(srv.config.TurnLogs, 0o700)
}
