package turnlog

import (
	"slices"

	"github.com/parley-voice/parley/pipeline/redact"
	"github.com/parley-voice/parley/pipeline/turn"
)

// Redact replaces digits that the caller pressed by 0 in copies of e and acts, so that they can be logged. The log
// still replays to the same actions.
func Redact(pressed *redact.PressedKeys, e turn.Event, acts []turn.Action) (turn.Event, []turn.Action) {
	if e.Kind == turn.Key {
		e.Text = redact.Mask(e.Text)
	}
	if pressed.IsEmpty() {
		return e, acts
	}
	e.Text, e.AgentText = pressed.Mask(e.Text), pressed.Mask(e.AgentText)
	acts = slices.Clone(acts)
	for i := range acts {
		acts[i].Text, acts[i].Keys = pressed.Mask(acts[i].Text), redact.Mask(acts[i].Keys)
	}
	return e, acts
}
