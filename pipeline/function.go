package pipeline

import (
	"context"
	"encoding/json"
)

// A Function is a tool of a call. It is safe for concurrent use.
type Function interface {
	Spec() Tool
	// Filler returns the phrase to say while the function runs; empty for the default phrase.
	Filler() string
	// Run executes the function. The arguments match the Spec. The model gets the text of an error,
	// so it must contain nothing that the caller may not hear.
	Run(ctx context.Context, arguments json.RawMessage) (ToolResult, error)
}

// A ToolResult is the result of a function.
type ToolResult struct {
	Text     string // result for the model
	FollowUp FollowUp
}

// A FollowUp is the action after the caller has heard the answer. The zero value does
// nothing.
type FollowUp struct {
	Step   Step
	Say    string // text to say first, in addition to the model's own words
	Number string // only of a Transfer
	Keys   string // only of a Press: 0-9 * # A-D, and commas for pauses of 2 seconds
	Reason Reason // only of a Hangup
}

// A Step is the kind of a FollowUp.
type Step string

// Steps.
const (
	Hangup   Step = "hangup"
	Transfer Step = "transfer"
	Press    Step = "press"
)

// Limits bounds the agent's actions in one call. 0 means the default.
type Limits struct {
	Turns     int `json:"turns,omitempty"      yaml:"turns"`      // maximum number of answers; default 200
	ToolCalls int `json:"tool_calls,omitempty" yaml:"tool_calls"` // maximum number of tool calls; default 50
	Tokens    int `json:"tokens,omitempty"     yaml:"tokens"`     // maximum number of tokens, prompts included; default 1,000,000
}
