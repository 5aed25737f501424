// Package turnlog writes and replays logs of the events and actions of a turn machine.
package turnlog

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/parley-voice/parley/pipeline/turn"
)

// A Log writes the log of one call: a line with the machine's settings, and one line for
// each event and its actions, all JSON objects. The zero value writes nothing.
type Log struct {
	to  io.WriteCloser
	buf *bufio.Writer
	log *slog.Logger
}

// Dir returns a function that opens the log file of a call in dir.
func Dir(dir string) func(callID string) (io.WriteCloser, error) {
	return func(callID string) (io.WriteCloser, error) {
		name := filepath.Join(dir, filepath.Base(callID)+".jsonl")
		return os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the operator names the folder
	}
}

// New starts a log. Errors go to log.
func New(to io.WriteCloser, log *slog.Logger, p turn.Policy, greeting bool) Log {
	l := Log{to: to, buf: bufio.NewWriter(to), log: log}
	l.encode(turn.Opening{Policy: p, Greeting: greeting})
	return l
}

// Write adds an event and its actions.
func (l *Log) Write(e turn.Event, acts []turn.Action) {
	if l.to != nil {
		l.encode(turn.Entry{Event: e, Actions: acts})
	}
}

func (l *Log) encode(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, _ = l.buf.Write(append(b, '\n')) // Close reports the error
	} else {
		l.log.Warn("failed to write the turn log", "err", err)
	}
}

// Close flushes and closes the log.
func (l *Log) Close() {
	if l.to == nil {
		return
	}
	err := l.buf.Flush()
	if closing := l.to.Close(); err == nil {
		err = closing
	}
	if err != nil {
		l.log.Warn("failed to write the turn log", "err", err)
	}
}
