package conversation

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

func TestFrom(t *testing.T) {
	zero := time.Unix(1000, 0)
	old, last := pipeline.Word{Text: "two", Start: 1500 * time.Millisecond}, pipeline.Word{Text: "three", Start: 2500 * time.Millisecond}
	for name, c := range map[string]struct {
		words []pipeline.Word
		text  string
		from  time.Duration
		ok    bool
	}{
		"old and new":                        {[]pipeline.Word{old, last, last}, "three three", 2500 * time.Millisecond, true},
		"new, in a stretch that began early": {[]pipeline.Word{last}, "as told", 2500 * time.Millisecond, true},
		"old":                                {[]pipeline.Word{old}, "", 0, false},
		"no words":                           {nil, "", 0, false},
	} {
		h := transcript{Zero: zero, Result: pipeline.Result{Text: "as told", Words: c.words}}
		text, from, ok := h.From(zero.Add(2 * time.Second))
		if text != c.text || ok != c.ok || ok && from.Sub(zero) != c.from {
			t.Errorf("%s: %q from %v, %v", name, text, from.Sub(zero), ok)
		}
	}
}
