package turnlog

import (
	"slices"

	"github.com/parley-voice/parley/pipeline/keypad"
	"github.com/parley-voice/parley/pipeline/turn"
)

// Hush makes an event, and what the machine made of it, such as may be written
// down: the digits of keys, and of numbers that were pressed, are 0. The machine
// does the same with them, so that a log can be replayed.
func Hush(pressed *keypad.Pressed, e turn.Event, acts []turn.Action) (turn.Event, []turn.Action) {
	if e.Kind == turn.Key {
		e.Text = keypad.Mask(e.Text)
	}
	if pressed.None() {
		return e, acts
	}
	e.Text, e.Saying = pressed.Zero(e.Text), pressed.Zero(e.Saying)
	acts = slices.Clone(acts)
	for i := range acts {
		acts[i].Text, acts[i].Keys = pressed.Zero(acts[i].Text), keypad.Mask(acts[i].Keys)
	}
	return e, acts
}
