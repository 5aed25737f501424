package book

import (
	"cmp"
	"sync/atomic"

	"github.com/parley-voice/parley/pipeline"
)

// Limits are what the agent may do in a call, and has done.
type Limits struct {
	most  pipeline.Limits
	calls atomic.Int64 // of tools
	meter *Meter

	// Answers is how many the agent gave. It belongs to the mind.
	Answers int
}

// NewLimits returns the limits of a call; what most does not name is bounded all
// the same.
func NewLimits(most pipeline.Limits, meter *Meter) *Limits {
	return &Limits{meter: meter, most: pipeline.Limits{
		Turns: cmp.Or(most.Turns, 200), ToolCalls: cmp.Or(most.ToolCalls, 50), Tokens: cmp.Or(most.Tokens, 1_000_000),
	}}
}

// Call takes one tool call of those left.
func (l *Limits) Call() bool { return l.calls.Add(1) <= int64(l.most.ToolCalls) }

// Reached tells that another answer would be one too many. Made tells that it is
// made already: its tokens are spent.
func (l *Limits) Reached(made bool) bool {
	return l.Answers >= l.most.Turns || l.calls.Load() >= int64(l.most.ToolCalls) || !made && l.meter.Tokens() >= int64(l.most.Tokens)
}
