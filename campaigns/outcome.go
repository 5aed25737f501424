package campaigns

import (
	"time"

	"github.com/parley-voice/parley/campaigns/retry"
)

// A Next is the state of a contact after a call.
type Next struct {
	State  State
	At     time.Time // when the next attempt is due; only if State is Pending
	Reason string    // reason of the suppression; only if State is Suppressed
	Fault  string    // fault of the last attempt; only if no attempt is left
	Rule   int       // index of the retry rule of the attempt; -1 for none
}

// NextAfter decides the next state after a call. A campaign that is over calls no
// contact again.
func (c Campaign) NextAfter(t retry.History, ended time.Time) Next {
	d := c.Retry.Next(t, ended)
	switch {
	case d.Redial && !c.Status.IsOver():
		return Next{State: Pending, At: d.At, Rule: d.Rule}
	case d.Redial, d.Rule >= 0 && !d.Stopped: // a redial is due, but no attempt is left
		return Next{State: Exhausted, Rule: -1}
	case d.Stopped, t.Outcome.IsConversation():
		return Next{State: Done, Rule: -1}
	default:
		return Next{State: Exhausted, Rule: -1}
	}
}

// WithFault sets the fault of a contact that has no attempt left.
func (n Next) WithFault(fault string) Next {
	if n.State == Exhausted {
		n.Fault = fault
	}
	return n
}

// UnlessOptedOut suppresses a contact that opted out.
func (n Next) UnlessOptedOut(optedOut bool) Next {
	if optedOut {
		return Next{State: Suppressed, Reason: OptedOut, Rule: -1}
	}
	return n
}
