package control

import "context"

// Purpose is the reason for calling a number.
type Purpose string

// Purposes of calling a number.
const (
	ForCall     Purpose = "call"     // for an outbound call
	ForTransfer Purpose = "transfer" // for a transfer to the number
)

// Number is a number that an organization is about to call.
type Number struct{ OrgID, Digits string }

// A ScreenResult is the result of screening a number. The zero value allows the call.
type ScreenResult struct {
	List string // the list that forbids the call: "org_suppression" or the name of a registry
}

// Screener checks whether a number is on a list of numbers that must not be called.
type Screener interface {
	Screen(ctx context.Context, n Number, p Purpose) (ScreenResult, error)
}
