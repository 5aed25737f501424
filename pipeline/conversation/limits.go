package conversation

import (
	"cmp"
	"sync/atomic"

	"github.com/parley-voice/parley/pipeline"
)

// callLimits counts what the agent does in a call, up to its limits.
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

// Call counts one tool call. It reports false at the limit.
func (l *callLimits) Call() bool { return l.calls.Add(1) <= int64(l.most.ToolCalls) }

// Reached reports whether another answer would exceed a limit. The tokens of a prepared answer
// are already counted.
func (l *callLimits) Reached(prepared bool) bool {
	return l.Answers >= l.most.Turns || l.calls.Load() >= int64(l.most.ToolCalls) || !prepared && l.meter.Tokens() >= l.most.Tokens
}
