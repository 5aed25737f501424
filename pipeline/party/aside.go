package party

import (
	"strings"

	"github.com/parley-voice/parley/pipeline/turn"
)

// An Aside is what a party says and does while the agent says what it must, and
// listens to nobody. It belongs to one goroutine.
type Aside struct {
	finals, partial string
	keys            bool
}

// Keys tells that keys were pressed: they want an answer.
func (a *Aside) Keys() bool { return a.keys }

// Hear is told what the turn machine was told.
func (a *Aside) Hear(e turn.Event, state turn.State) {
	switch {
	case state != turn.Held:
	case e.Kind == turn.Key:
		a.keys = true
	case e.Kind == turn.Heard && e.Final:
		a.finals, a.partial = strings.TrimSpace(a.finals+" "+e.Text), ""
	case e.Kind == turn.Heard:
		a.partial = e.Text
	}
}

// Take returns the words, once.
func (a *Aside) Take() string {
	text := strings.TrimSpace(a.finals + " " + a.partial)
	a.finals, a.partial = "", ""
	return text
}
