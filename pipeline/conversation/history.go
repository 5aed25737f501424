package conversation

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/redact"
)

// A history holds what each side of a call said, as far as the other side heard it. It is sent
// to the model with each request. The zero value is empty. It belongs to one goroutine.
type history struct {
	said []pipeline.Message
	turn int // number of messages before the caller's last turn
}

// Messages returns a copy for the model.
func (h *history) Messages() []pipeline.Message { return slices.Clone(h.said) }

func (h *history) Add(m ...pipeline.Message) { h.said = append(h.said, m...) }

// Commit adds the messages of a caller's turn.
func (h *history) Commit(m ...pipeline.Message) {
	h.turn = len(h.said)
	h.Add(m...)
}

// Retract removes the caller's last turn and everything after it. The next Commit must include the caller's words
// again.
func (h *history) Retract() { h.said = h.said[:min(h.turn, len(h.said))] }

// callerMessages returns the messages for the words and the pressed keys of a caller's turn.
func callerMessages(text, keys string) []pipeline.Message {
	var all []pipeline.Message
	if text != "" {
		all = append(all, pipeline.Message{Role: pipeline.RoleCaller, Text: text})
	}
	if keys != "" {
		all = append(all, pipeline.Message{Role: pipeline.RoleNote, Text: "the caller pressed " + keys})
	}
	return all
}

// CallerLine returns the transcript line of a caller's turn with its keys, redacted as in
// redact.Keys.
func CallerLine(text, keys string) string {
	if keys == "" {
		return text
	}
	return strings.TrimSpace(text + " [pressed " + redact.Keys(keys) + "]")
}

// heardText returns text for the history. whole means that the agent was not interrupted; otherwise an ellipsis
// follows.
func heardText(text string, whole bool) string {
	if whole {
		return text
	}
	return text + " …"
}
