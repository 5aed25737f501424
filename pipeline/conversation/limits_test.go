package conversation

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

type model struct {
	deltas []pipeline.Delta
	err    error
}

func (m model) Reply(context.Context, pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		for _, d := range m.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if m.err != nil {
			yield(pipeline.Delta{}, m.err)
		}
	}
}

func TestTokenMeter(t *testing.T) {
	text := pipeline.Delta{Text: strings.Repeat("x", 40)}
	cost := pipeline.Delta{Usage: &pipeline.Usage{PromptTokens: 7, CompletionTokens: 5}}
	prompt := pipeline.Prompt{
		Instructions: strings.Repeat("i", 100), Tools: []pipeline.Tool{{Name: "a", Description: "b", Parameters: []byte("{}")}},
		Messages: []pipeline.Message{{Text: strings.Repeat("m", 90)}, {Calls: []pipeline.ToolCall{{Name: "abcd", Arguments: []byte("{}")}}}},
	}
	for name, tt := range map[string]struct {
		model
		take int // number of deltas before the cancellation; 0 for none
		want int64
	}{
		"told":                     {model{deltas: []pipeline.Delta{text, cost}}, 0, 12},
		"broken off":               {model{deltas: []pipeline.Delta{text, text, cost}}, 1, 60},
		"broken off before a word": {model{deltas: []pipeline.Delta{{}, text, cost}}, 1, 50},
		"not told":                 {model{deltas: []pipeline.Delta{text, text}}, 0, 70},
		"broke":                    {model{deltas: []pipeline.Delta{text}, err: errors.New("x")}, 0, 60},
		"refused":                  {model{err: errors.New("x")}, 0, 0},
	} {
		m := &tokenMeter{Model: tt.model}
		n := 0
		for _, err := range m.Reply(t.Context(), prompt) {
			if err != nil && tt.err == nil {
				t.Errorf("%s: %v", name, err)
			}
			if n++; n == tt.take {
				break
			}
		}
		if got := m.Tokens(); got != tt.want {
			t.Errorf("%s: %d tokens, want %d", name, got, tt.want)
		}
	}
}
