package plan

import "time"

// Facts describe a waiting contact. Zero times mean not set.
type Facts struct {
	Running bool      // the campaign of the contact runs
	Ends    time.Time // end of the campaign
	Slot    Slot      // slot of the contact's calendar now
	Hold    Hold      // hold of the contact's number now
	RetryAt time.Time // when the next attempt is due
	// NotBefore and NotAfter are times from the contact's row.
	NotBefore, NotAfter time.Time
	Engaged             bool // the contact's number is in another call of the organization
	ScreenStale         bool // the registry copy is too old
	CarrierPaused       bool
	RouteDown           bool
	AgentDown           bool // no node can run the campaign's agent
	Failing             bool // the campaign's breaker is open
	FailedOver          bool // the database failed over, and not all nodes have reported the calls that they sent
	DiskFull            bool // the campaign's calls are recorded, and disk space is low
}

// A Decision is what the gate decides about a contact.
type Decision uint8

// Decisions.
const (
	Go Decision = iota // call the contact now
	Wait
	Later  // decide again soon, because only an active call to the number prevents the call
	Capped // a frequency cap holds until the campaign ends, so the contact is suppressed
	Missed // NotAfter has passed, so the contact is exhausted
)

// A Verdict is a gate's decision.
type Verdict struct {
	Decision Decision
	Reason   string // only for Wait: one of Reasons
	// Until is when to decide again or, if Decision is Go, the latest time of the INVITE. Zero means unknown.
	Until time.Time
	Cap   string // kind of the frequency cap; only for Wait and Capped
	Rule  string // the statute that forbids the call, if one does
}

// Gate decides about a contact. If several reasons apply, the verdict has the first in Reasons.
func Gate(at time.Time, f Facts) Verdict {
	ended := !f.Ends.IsZero() && !at.Before(f.Ends)
	switch {
	case !f.NotAfter.IsZero() && !at.Before(f.NotAfter):
		return Verdict{Decision: Missed}
	case !f.Running || ended:
		return Verdict{Decision: Wait, Reason: NotRunning}
	case f.Hold.Cap != "":
		return capVerdict(f)
	case !f.Slot.IsOpen():
		return Verdict{Decision: Wait, Reason: f.Slot.Reason, Until: f.Slot.Until, Rule: f.Slot.Rule}
	case at.Before(f.RetryAt):
		return Verdict{Decision: Wait, Reason: RetryWait, Until: f.RetryAt}
	case at.Before(f.NotBefore):
		return Verdict{Decision: Wait, Reason: NotBefore, Until: f.NotBefore}
	case f.obstacle() != "":
		return Verdict{Decision: Wait, Reason: f.obstacle()}
	case f.Engaged:
		return Verdict{Decision: Later, Until: at.Add(engagedRetry)}
	default:
		return Verdict{Until: f.until()}
	}
}

// obstacle returns the first reason that holds all calls of the campaign; empty for none.
func (f Facts) obstacle() string {
	switch {
	case f.ScreenStale:
		return ScreenStale
	case f.CarrierPaused:
		return CarrierPaused
	case f.RouteDown:
		return RouteUnavailable
	case f.AgentDown:
		return ProviderUnavailable
	case f.Failing:
		return TooManyFailures
	case f.DiskFull:
		return RecordingUnavailable
	case f.FailedOver:
		return DatabaseFailover
	default:
		return ""
	}
}

// until returns when the permission to call ends; zero means never.
func (f Facts) until() (first time.Time) {
	for _, end := range []time.Time{f.Slot.Until, f.Ends, f.NotAfter} {
		if first.IsZero() || !end.IsZero() && end.Before(first) {
			first = end
		}
	}
	return first
}

// capVerdict decides about a contact whose number a cap holds.
func capVerdict(f Facts) Verdict {
	v := Verdict{Decision: Wait, Reason: FrequencyCap, Until: f.Hold.Until, Cap: f.Hold.Cap, Rule: f.Hold.Rule}
	if f.Hold.Until.IsZero() || !f.Ends.IsZero() && !f.Hold.Until.Before(f.Ends) {
		v = Verdict{Decision: Capped, Cap: v.Cap, Rule: v.Rule}
	}
	return v
}

// engagedRetry is the pause before a number in a call is checked again.
const engagedRetry = 15 * time.Second
