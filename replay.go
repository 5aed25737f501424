package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/turnlog"
)

type replayCmd struct {
	File string `arg:"" help:"Turn log of a call, as PARLEY_TURN_LOGS keeps it." type:"existingfile"`
}

// Run shows what happened and what the machine made of it. Where today's
// machine does something else, it says where and fails.
func (c replayCmd) Run(w *world) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var r turn.Replay
	n := 0
	for ; lines.Scan(); n++ {
		e, state, err := r.Line(lines.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		if n > 0 {
			fmt.Fprintln(w.out, replayed(e, state))
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	fmt.Fprintf(w.out, "%d events, the same actions\n", max(0, n-1))
	return nil
}

func replayed(e turn.Entry, state turn.State) string {
	var did []string
	for _, a := range e.Actions {
		if a.Do != turn.SetTimer {
			did = append(did, strings.TrimSpace(string(a.Do)+" "+a.Reason))
		}
	}
	text := e.Event.Text
	if e.Event.Final {
		text += " (final)"
	}
	return fmt.Sprintf("%9.3fs  %-9s  %-9s  %-40s  %s", e.Event.At.Seconds(), e.Event.Kind, state, text, strings.Join(did, ", "))
}

// openTurnLogs has the agent keep turn logs, where the operator asked for them.
func (h *house) openTurnLogs(context.Context) error {
	if h.config.TurnLogs == "" {
		return nil
	}
	h.agent.Journal = turnlog.Logs(h.config.TurnLogs)
	return os.MkdirAll(h.config.TurnLogs, 0o700)
}
