package answering

import (
	"strings"

	"github.com/parley-voice/parley/pipeline/turn"
)

// A HeldInput collects the callee's words, spoken or typed, and keys during a disclosure, which they do not interrupt. It belongs to
// one goroutine.
type HeldInput struct {
	finals, partial string
	keys            bool
}

// HasKeys reports whether keys were pressed; they need an answer.
func (a *HeldInput) HasKeys() bool { return a.keys }

// OnEvent receives the events of the turn machine.
func (a *HeldInput) OnEvent(e turn.Event, state turn.State) {
	switch {
	case state != turn.Held:
	case e.Kind == turn.Key:
		a.keys = true
	case e.Kind == turn.Transcript && e.Final, e.Kind == turn.Typed:
		a.finals, a.partial = strings.TrimSpace(a.finals+" "+e.Text), ""
	case e.Kind == turn.Transcript:
		a.partial = e.Text
	}
}

// Take returns the words collected since the last call.
func (a *HeldInput) Take() string {
	text := strings.TrimSpace(a.finals + " " + a.partial)
	a.finals, a.partial = "", ""
	return text
}
