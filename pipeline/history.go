package pipeline

import "slices"

// history is what was said, by both sides, as far as it was heard.
type history struct{ said []Line }

// lines returns a copy for the model.
func (h *history) lines() []Line { return slices.Clone(h.said) }

func (h *history) add(l Line) { h.said = append(h.said, l) }

// retract takes back the caller's last line, which is to be glued to the next.
// It returns false where the last line is not the caller's.
func (h *history) retract() bool {
	n := len(h.said)
	if n == 0 || h.said[n-1].Role != RoleCaller {
		return false
	}
	h.said = h.said[:n-1]
	return true
}
