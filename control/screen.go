package control

import "context"

// Purpose is why a number is to be called.
type Purpose string

// Purposes.
const (
	ForCall     Purpose = "call"     // an outbound call
	ForTransfer Purpose = "transfer" // the target of a transfer
)

// Number is a number that an organization wants to call.
type Number struct{ OrgID, Digits string }

// Verdict names the list that forbids a call; the zero value allows it.
type Verdict struct {
	List string // "org_suppression", or a registry's name
}

// Screener checks numbers against lists of numbers that must not be called.
type Screener interface {
	Screen(ctx context.Context, n Number, p Purpose) (Verdict, error)
}
