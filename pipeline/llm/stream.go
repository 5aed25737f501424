package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// Limits of one answer.
const (
	maxEvent   = 1 << 20   // bytes of one event
	maxText    = 256 << 10 // bytes of text per answer
	maxRefusal = 2000      // bytes of a refusal's text; the rest is dropped
)

var errBroken = errors.New("stream ended before the answer was complete")

// An answer yields the text of a streamed answer at once and collects the other parts.
type answer struct {
	endpoint

	yield     func(pipeline.Delta, error) bool
	stopped   bool // the consumer has stopped reading
	size      int  // bytes of text so far
	spoken    byte // last byte of the text; 0 if there is none
	separated bool // the next text begins a new part
	calls     calls
	usage     *pipeline.Usage // newest report; each report of a server contains the earlier ones
	refusal   strings.Builder
	end       error // why the model ended the answer early; nil if it ended normally
	complete  bool  // the model has ended the answer
	last      bool  // the rest of the stream is not needed
}

// A decoder adds the data of a server-sent event to an answer.
type decoder interface {
	decode(data []byte, a *answer) error
}

// stream yields the deltas of a server-sent event stream. The last delta contains the tool calls and
// the usage. A broken connection is no error once the answer is complete.
func (a *answer) stream(body io.Reader, d decoder) {
	err := a.read(body, d)
	if a.stopped {
		return
	}
	last := pipeline.Delta{Usage: a.usage}
	if err == nil {
		err = a.end
	}
	if refusal := strings.TrimSpace(strings.ToValidUTF8(a.refusal.String(), "")); err == nil && refusal != "" {
		err = &pipeline.RefusalError{Text: refusal}
	}
	if err == nil {
		last.Calls, err = a.calls.assemble()
	}
	if (len(last.Calls) > 0 || last.Usage != nil) && !a.yield(last, nil) {
		return
	}
	if err != nil {
		a.yield(pipeline.Delta{}, fmt.Errorf("%s: %w", a.name, err))
	}
}

// read reads events until the last one. It skips comments and fields other than data.
func (a *answer) read(body io.Reader, d decoder) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			a.complete = true
			return nil
		}
		if err := d.decode(data, a); err != nil {
			return err
		}
		if a.stopped || a.last {
			return nil
		}
	}
	if a.complete {
		return nil
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errBroken
}

// separate begins a new part of the text. A space will separate it from the part before.
func (a *answer) separate() { a.separated = true }

func (a *answer) text(s string) {
	if s == "" || a.stopped {
		return
	}
	if a.separated && a.spoken > ' ' && s[0] > ' ' {
		s = " " + s
	}
	a.separated, a.spoken = false, s[len(s)-1]
	a.stopped = !a.yield(pipeline.Delta{Text: s}, nil)
	if a.size += len(s); a.size > maxText { // a model that repeats itself endlessly
		a.last, a.complete, a.end = true, true, pipeline.ErrLength
	}
}

// refuse adds to the text with which the model declines to answer.
func (a *answer) refuse(s string) {
	a.refusal.WriteString(s[:min(len(s), maxRefusal-a.refusal.Len())])
}

// fault returns the error for an error event. A status that is no HTTP error, such as 0, counts as
// 500, a fault of the provider.
func (a *answer) fault(status int, text string) error {
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	return &pipeline.RefusedError{Status: status, Text: a.redact(text)}
}

func errNotJSON(err error) error { return fmt.Errorf("not JSON: %w", err) }
