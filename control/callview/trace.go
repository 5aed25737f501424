package callview

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/parley-voice/parley/media"
)

// Rung is one signaling message of a call, in the form that is stored and written as JSON.
type Rung struct {
	At   time.Time `json:"at"`
	Out  bool      `json:"out"`
	Peer string    `json:"peer"`
	Line string    `json:"line"`
	Note string    `json:"note"`
}

// Rungs converts a ladder, the list of a call's signaling messages, to its stored form.
func Rungs(ladder []media.Message) []Rung {
	rungs := make([]Rung, len(ladder))
	for i, m := range ladder {
		rungs[i] = Rung(m)
	}
	return rungs
}

// Ladder is the inverse of Rungs.
func Ladder(rungs []Rung) []media.Message {
	ladder := make([]media.Message, len(rungs))
	for i, m := range rungs {
		ladder[i] = media.Message(m)
	}
	return ladder
}

// WriteTraceJSON writes a ladder as a JSON list of Rung objects.
func WriteTraceJSON(w io.Writer, ladder []media.Message) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(Rungs(ladder))
}

// WriteTrace writes a ladder as text with one line per message: seconds since the first message, an arrow that
// shows the direction, the start line, and the note.
func WriteTrace(w io.Writer, ladder []media.Message) error {
	if len(ladder) == 0 {
		return nil
	}
	first := ladder[0].At
	if _, err := fmt.Fprintln(w, first.UTC().Format("2006-01-02 15:04:05.000 UTC")); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, m := range ladder {
		arrow := "←"
		if m.Out {
			arrow = "→"
		}
		fmt.Fprintf(t, "%+9.3f\t%s\t%s\t%s", m.At.Sub(first).Seconds(), arrow, printable(m.Peer), printable(m.Line))
		if m.Note != "" {
			fmt.Fprintf(t, "\t%s", printable(m.Note))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// printable replaces control characters in text that a peer sent.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != ' ' && !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, text)
}
