package converse

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/parley-voice/parley/pipeline/turn"
)

// A journal is the log of a conversation's turns: first how the machine was
// set, then every event and what the machine made of it, one JSON object a
// line. Its zero value keeps none.
type journal struct {
	to  io.WriteCloser
	buf *bufio.Writer
	log *slog.Logger
}

// Logs keeps turn logs in a folder, one file a call.
func Logs(dir string) func(callID string) (io.WriteCloser, error) {
	return func(callID string) (io.WriteCloser, error) {
		return os.OpenFile(filepath.Join(dir, filepath.Base(callID)+".jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // a folder of the operator's
	}
}

func newJournal(to io.WriteCloser, log *slog.Logger, p turn.Policy, greeting bool) journal {
	j := journal{to: to, buf: bufio.NewWriter(to), log: log}
	j.encode(turn.Opening{Policy: p, Greeting: greeting})
	return j
}

func (j *journal) write(e turn.Event, acts []turn.Action) {
	if j.to != nil {
		j.encode(turn.Entry{Event: e, Actions: acts})
	}
}

func (j *journal) encode(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, _ = j.buf.Write(append(b, '\n')) // the error stays with the writer until it is closed
	} else {
		j.log.Warn("turn log", "err", err)
	}
}

func (j *journal) close() {
	if j.to == nil {
		return
	}
	err := j.buf.Flush()
	if closing := j.to.Close(); err == nil {
		err = closing
	}
	if err != nil {
		j.log.Warn("turn log", "err", err)
	}
}
