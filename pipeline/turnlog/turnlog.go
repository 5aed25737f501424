// Package turnlog writes down what the turn machine of a call was told and did.
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

// A Log is the log of a conversation's turns: first how the machine was
// set, then every event and what the machine made of it, one JSON object a
// line. Its zero value keeps none.
type Log struct {
	to  io.WriteCloser
	buf *bufio.Writer
	log *slog.Logger
}

// Logs keeps turn logs in a folder, one file a call.
func Logs(dir string) func(callID string) (io.WriteCloser, error) {
	return func(callID string) (io.WriteCloser, error) {
		return os.OpenFile(filepath.Join(dir, filepath.Base(callID)+".jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the operator names the folder
	}
}

// New begins the log of a machine that is set so. What goes wrong is told to log.
func New(to io.WriteCloser, log *slog.Logger, p turn.Policy, greeting bool) Log {
	l := Log{to: to, buf: bufio.NewWriter(to), log: log}
	l.encode(turn.Opening{Policy: p, Greeting: greeting})
	return l
}

// Write adds an event and what the machine made of it.
func (l *Log) Write(e turn.Event, acts []turn.Action) {
	if l.to != nil {
		l.encode(turn.Entry{Event: e, Actions: acts})
	}
}

func (l *Log) encode(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, _ = l.buf.Write(append(b, '\n')) // the error stays with the writer until it is closed
	} else {
		l.log.Warn("turn log", "err", err)
	}
}

// Close ends the log.
func (l *Log) Close() {
	if l.to == nil {
		return
	}
	err := l.buf.Flush()
	if closing := l.to.Close(); err == nil {
		err = closing
	}
	if err != nil {
		l.log.Warn("turn log", "err", err)
	}
}
