package turnlog

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/parley-voice/parley/pipeline/turn"
)

// Replay prints the events and actions of a log. It fails at the first line at which the
// machine's actions differ.
func Replay(from io.Reader, to io.Writer) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var r turn.Replay
	n := 0
	for ; lines.Scan(); n++ {
		e, state, err := r.Line(lines.Bytes())
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if _, err := fmt.Fprintln(to, describe(e, state)); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "%d events, the same actions\n", max(0, n-1))
	return err
}

func describe(e turn.Entry, state turn.State) string {
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
