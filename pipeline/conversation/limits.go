package conversation

import (
	"cmp"
	"sync/atomic"

	"github.com/parley-voice/parley/pipeline"
)

// callLimits counts the agent's answers, tool calls and tokens in a call and checks their limits.
type callLimits struct {
	most  pipeline.Limits
	calls atomic.Int64 // tool calls
	meter *pipeline.UsageMeter

	// Answers counts the answers. It belongs to the session loop.
	Answers int
}

// newCallLimits returns the limits of a call. Zero fields of most get defaults.
func newCallLimits(most pipeline.Limits, meter *pipeline.UsageMeter) *callLimits {
	return &callLimits{meter: meter, most: pipeline.Limits{
		Turns: cmp.Or(most.Turns, 200), ToolCalls: cmp.Or(most.ToolCalls, 50), Tokens: cmp.Or(most.Tokens, 1_000_000),
	}}
}

// Call counts one tool call and reports whether it is within the limit.
func (l *callLimits) Call() bool { return l.calls.Add(1) <= int64(l.most.ToolCalls) }

// Reached reports whether another answer would exceed a limit. prepared means that the answer already exists, so that
// its tokens are counted and cannot exceed the limit.
func (l *callLimits) Reached(prepared bool) bool {
	return l.Answers >= l.most.Turns || l.calls.Load() >= int64(l.most.ToolCalls) || !prepared && l.meter.Tokens() >= l.most.Tokens
}
