package conversation

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

func TestRetract(t *testing.T) {
	var h history
	h.Retract() // the caller said nothing
	say := func(text string) pipeline.Message { return pipeline.Message{Role: pipeline.RoleCaller, Text: text} }
	h.Add(say("a"))
	h.Commit(say("b"), say("c"))
	kept := h.Messages()
	h.Retract()
	h.Retract()
	h.Commit(say("d"))
	h.Add(say("e"))
	texts := func(all []pipeline.Message) string {
		var s strings.Builder
		for _, m := range all {
			s.WriteString(m.Text)
		}
		return s.String()
	}
	if got := texts(h.Messages()); got != "ade" {
		t.Errorf("got history %q, want ade", got)
	}
	if got := texts(kept); got != "abc" {
		t.Errorf("got copy %q, want abc", got)
	}
}
