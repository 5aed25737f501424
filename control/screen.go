package control

import "context"

// A Purpose is what a number is to be called for.
type Purpose string

// Purposes.
const (
	ForCall     Purpose = "call"     // a call of its own
	ForTransfer Purpose = "transfer" // to hand a party over
)

// A Number is one that an organization wants to call.
type Number struct{ OrgID, Digits string }

// A Verdict says on which list a number is that forbids to call it; the zero
// value allows it.
type Verdict struct {
	List string // "org_suppression", or a registry's name
}

// A Screen knows the numbers that must not be called.
type Screen interface {
	Allowed(ctx context.Context, n Number, p Purpose) (Verdict, error)
}
