package campaigns

import (
	"time"

	"github.com/parley-voice/parley/campaigns/retry"
)

// A Next is where a contact goes after a call.
type Next struct {
	State State
	At    time.Time // of the next attempt, where it is Pending
	// Reason is that of a suppression.
	Reason string
	Rule   int // of the retry configuration, that brings the attempt; -1 for none
}

// After decides where a contact goes after a call that ended at an instant.
// Where the campaign is over nobody is called again.
func (c Campaign) After(t retry.Tried, ended time.Time) Next {
	d := c.Retry.Next(t, ended)
	switch {
	case d.Redial && !c.Status.Over():
		return Next{State: Pending, At: d.At, Rule: d.Rule}
	case d.Redial, d.Rule >= 0 && !d.Stopped: // it would be, and no attempt is left
		return Next{State: Exhausted, Rule: -1}
	case d.Stopped, t.Outcome.Conversation():
		return Next{State: Done, Rule: -1}
	default:
		return Next{State: Exhausted, Rule: -1}
	}
}

// Unless has a contact that asked not to be called again go nowhere else.
func (n Next) Unless(optedOut bool) Next {
	if optedOut {
		return Next{State: Suppressed, Reason: OptedOut, Rule: -1}
	}
	return n
}
