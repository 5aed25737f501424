// Package history keeps what was said in a call, by both sides, as far as it was
// heard: it is what the model is asked with. It is pure.
package history

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/keypad"
)

// A History is one call's. Its zero value is empty. It belongs to one goroutine.
type History struct {
	said []pipeline.Message
	turn int // messages before the caller's turn that is being answered
}

// Messages returns a copy for the model.
func (h *History) Messages() []pipeline.Message { return slices.Clone(h.said) }

// Add adds what was said.
func (h *History) Add(m ...pipeline.Message) { h.said = append(h.said, m...) }

// Commit adds what the caller said in a turn.
func (h *History) Commit(m ...pipeline.Message) {
	h.turn = len(h.said)
	h.Add(m...)
}

// Retract takes back the caller's last turn, which is to be glued to the next.
func (h *History) Retract() { h.said = h.said[:min(h.turn, len(h.said))] }

// Said are what the model is told of a caller's turn: its words, and the keys that
// were pressed in it.
func Said(text, keys string) []pipeline.Message {
	var all []pipeline.Message
	if text != "" {
		all = append(all, pipeline.Message{Role: pipeline.RoleCaller, Text: text})
	}
	if keys != "" {
		all = append(all, pipeline.Message{Role: pipeline.RoleNote, Text: "the caller pressed " + keys})
	}
	return all
}

// Spoken is the caller's line of a turn, with the keys that were pressed, or how
// many.
func Spoken(text, keys string) string {
	if keys == "" {
		return text
	}
	return strings.TrimSpace(text + " [pressed " + keypad.Keys(keys) + "]")
}

// Heard is what was heard of what the agent said: where the party cut it off is
// marked for the model.
func Heard(text string, whole bool) string {
	if whole {
		return text
	}
	return text + " …"
}
