package converse

import (
	"slices"

	"github.com/parley-voice/parley/pipeline/keypad"
	"github.com/parley-voice/parley/pipeline/turn"
)

// hush makes an event, and what the machine made of it, such as may be written
// down: the digits of keys, and of numbers that were pressed, are 0. The machine
// does the same with them, so that a log can be replayed.
func (s *talk) hush(e turn.Event, acts []turn.Action) (turn.Event, []turn.Action) {
	if e.Kind == turn.Key {
		e.Text = keypad.Mask(e.Text)
	}
	if s.pressed.None() {
		return e, acts
	}
	e.Text, e.Saying = s.pressed.Zero(e.Text), s.pressed.Zero(e.Saying)
	acts = slices.Clone(acts)
	for i := range acts {
		acts[i].Text, acts[i].Keys = s.pressed.Zero(acts[i].Text), keypad.Mask(acts[i].Keys)
	}
	return e, acts
}
