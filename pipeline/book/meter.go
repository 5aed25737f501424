package book

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/parley-voice/parley/pipeline"
)

// perToken is how many bytes of text count as a token where no provider tells.
const perToken = 4

// A Meter counts the tokens of all that a model is asked in a call, answers that
// are broken off included. Its exported field is its wiring.
type Meter struct {
	pipeline.Model
	tokens atomic.Int64
}

// Tokens is how many were used by the requests that are over.
func (m *Meter) Tokens() int64 { return m.tokens.Load() }

// Reply implements pipeline.Model. Of an answer that is broken off before its
// cost is told, what was asked and answered is estimated.
func (m *Meter) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		var told *pipeline.Usage
		answered := 0
		defer func() {
			if told == nil {
				told = &pipeline.Usage{PromptTokens: size(p) / perToken, CompletionTokens: answered / perToken}
			}
			m.tokens.Add(int64(told.PromptTokens) + int64(told.CompletionTokens))
		}()
		for d, err := range m.Model.Reply(ctx, p) {
			if answered += len(d.Text); d.Usage != nil {
				told = d.Usage
			}
			if err != nil && answered == 0 && told == nil && ctx.Err() == nil {
				told = &pipeline.Usage{} // refused, or never reached
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// size is how much text a prompt is, in bytes.
func size(p pipeline.Prompt) int {
	n := len(p.Instructions)
	for _, m := range p.Messages {
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range p.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return n
}
