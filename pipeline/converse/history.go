package converse

import (
	"slices"

	"github.com/parley-voice/parley/pipeline"
)

// history is what was said, by both sides, as far as it was heard.
type history struct {
	said []pipeline.Message
	turn int // messages before the caller's turn that is being answered
}

// messages returns a copy for the model.
func (h *history) messages() []pipeline.Message { return slices.Clone(h.said) }

func (h *history) add(m ...pipeline.Message) { h.said = append(h.said, m...) }

// commit adds what the caller said in a turn.
func (h *history) commit(m ...pipeline.Message) {
	h.turn = len(h.said)
	h.add(m...)
}

// retract takes back the caller's last turn, which is to be glued to the next.
func (h *history) retract() { h.said = h.said[:min(h.turn, len(h.said))] }
