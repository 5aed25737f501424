package pipeline

import (
	"context"
	"encoding/json"
)

// A Function is a tool of a call. It may be asked by several goroutines.
type Function interface {
	Spec() Tool
	// Filler is said while the function takes its time; empty for the usual one.
	Filler() string
	// Run does it. The arguments were checked against the Spec. An error is told
	// to the model, so it must hold nothing that the caller may not hear.
	Run(ctx context.Context, arguments json.RawMessage) (Done, error)
}

// Done is what a function did.
type Done struct {
	Text string // told to the model
	Then Then
}

// Then is what is to happen once the caller has heard the answer. Its zero value
// is nothing.
type Then struct {
	Step   Step
	Say    string // said first, beside the model's own words
	Number string // of a Transfer
	Keys   string // of a Press: 0-9 * # A-D, and commas for pauses of half a second
	Reason Reason // of a Hangup
}

// A Step is what happens after an answer.
type Step string

// Steps.
const (
	Hangup   Step = "hangup"
	Transfer Step = "transfer"
	Press    Step = "press"
)

// Limits bound what the agent does in one call; 0 is the default.
type Limits struct {
	Turns     int `json:"turns,omitempty"      yaml:"turns"`      // answers; 200
	ToolCalls int `json:"tool_calls,omitempty" yaml:"tool_calls"` // 50
	Tokens    int `json:"tokens,omitempty"     yaml:"tokens"`     // of the model, read and written; 1,000,000
}
