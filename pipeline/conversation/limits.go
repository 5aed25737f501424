package conversation

import (
	"cmp"
	"context"
	"iter"
	"sync/atomic"

	"github.com/parley-voice/parley/pipeline"
)

// callLimits counts what the agent does in a call, up to its limits.
type callLimits struct {
	most  pipeline.Limits
	calls atomic.Int64 // tool calls
	meter *tokenMeter

	// Answers counts the answers. It belongs to the session loop.
	Answers int
}

// newCallLimits returns the limits of a call. Zero fields of most get defaults.
func newCallLimits(most pipeline.Limits, meter *tokenMeter) *callLimits {
	return &callLimits{meter: meter, most: pipeline.Limits{
		Turns: cmp.Or(most.Turns, 200), ToolCalls: cmp.Or(most.ToolCalls, 50), Tokens: cmp.Or(most.Tokens, 1_000_000),
	}}
}

// Call uses one tool call. It reports false at the limit.
func (l *callLimits) Call() bool { return l.calls.Add(1) <= int64(l.most.ToolCalls) }

// Reached reports whether another answer would exceed a limit. The tokens of a prepared
// answer are counted already.
func (l *callLimits) Reached(prepared bool) bool {
	return l.Answers >= l.most.Turns || l.calls.Load() >= int64(l.most.ToolCalls) || !prepared && l.meter.Tokens() >= int64(l.most.Tokens)
}

// bytesPerToken estimates tokens if the provider does not report them.
const bytesPerToken = 4

// A tokenMeter counts the tokens of all requests to a model in a call, including canceled
// ones.
type tokenMeter struct {
	pipeline.Model
	tokens atomic.Int64
}

// Tokens returns the tokens of the finished requests.
func (m *tokenMeter) Tokens() int64 { return m.tokens.Load() }

// Reply implements pipeline.Model. It estimates the tokens of an answer that ends before
// the provider reports them.
func (m *tokenMeter) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		var reported *pipeline.Usage
		answered := 0
		defer func() {
			if reported == nil {
				reported = &pipeline.Usage{PromptTokens: promptSize(p) / bytesPerToken, CompletionTokens: answered / bytesPerToken}
			}
			m.tokens.Add(int64(reported.PromptTokens) + int64(reported.CompletionTokens))
		}()
		for d, err := range m.Model.Reply(ctx, p) {
			if answered += len(d.Text); d.Usage != nil {
				reported = d.Usage
			}
			if err != nil && answered == 0 && reported == nil && ctx.Err() == nil {
				reported = &pipeline.Usage{} // the request failed
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func promptSize(p pipeline.Prompt) int {
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
