package converse

import (
	"slices"

	"github.com/parley-voice/parley/pipeline"
)

// history is what was said, by both sides, as far as it was heard.
type history struct{ said []pipeline.Message }

// messages returns a copy for the model.
func (h *history) messages() []pipeline.Message { return slices.Clone(h.said) }

func (h *history) add(m pipeline.Message) { h.said = append(h.said, m) }

// retract takes back the caller's last line, which is to be glued to the next.
// It returns false where the last line is not the caller's.
func (h *history) retract() bool {
	n := len(h.said)
	if n == 0 || h.said[n-1].Role != pipeline.RoleCaller {
		return false
	}
	h.said = h.said[:n-1]
	return true
}
