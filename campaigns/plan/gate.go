package plan

import "time"

// Facts are what is known of a waiting contact when it is asked whether it may
// be called. Zero times say nothing.
type Facts struct {
	Running bool      // its campaign dials
	Ends    time.Time // its campaign does
	Slot    Slot      // of its schedule, now
	Hold    Hold      // of its number, now
	RetryAt time.Time // of its next attempt
	// NotBefore and NotAfter are its row's.
	NotBefore, NotAfter time.Time
	Engaged             bool // its number is on another call of the organization's
	ScreenStale         bool // its registry is too old to be relied on
	RouteDown           bool
}

// A Fate is what a gate does with a contact.
type Fate uint8

// Fates.
const (
	Go     Fate = iota // call it
	Wait               // not now
	Later              // in a moment: nothing but a call that is on keeps it
	Capped             // no cap frees before its campaign ends: suppress it
	Missed             // its time is over: it is exhausted
)

// A Verdict is a gate's decision.
type Verdict struct {
	Fate   Fate
	Reason string // of Wait, one of Reasons
	// Until is when it is worth asking again, and of Go until when the request may
	// leave; zero where that is not known.
	Until time.Time
	Cap   string // that holds, of Wait and Capped
	Rule  string // the statute, where one decides
}

// Gate decides about a contact. Of several reasons the first of Reasons counts.
func Gate(at time.Time, f Facts) Verdict {
	ended := !f.Ends.IsZero() && !at.Before(f.Ends)
	switch {
	case !f.NotAfter.IsZero() && !at.Before(f.NotAfter):
		return Verdict{Fate: Missed}
	case !f.Running || ended:
		return Verdict{Fate: Wait, Reason: NotRunning}
	case f.Hold.Cap != "":
		return capped(f)
	case !f.Slot.Open():
		return Verdict{Fate: Wait, Reason: f.Slot.Reason, Until: f.Slot.Until, Rule: f.Slot.Rule}
	case at.Before(f.RetryAt):
		return Verdict{Fate: Wait, Reason: RetryWait, Until: f.RetryAt}
	case at.Before(f.NotBefore):
		return Verdict{Fate: Wait, Reason: NotBefore, Until: f.NotBefore}
	case f.ScreenStale:
		return Verdict{Fate: Wait, Reason: ScreenStale}
	case f.RouteDown:
		return Verdict{Fate: Wait, Reason: RouteUnavailable}
	case f.Engaged:
		return Verdict{Fate: Later, Until: at.Add(engagedFor)}
	default:
		return Verdict{Until: f.until()}
	}
}

// until is the first of the instants at which who may be called may not any more;
// zero where there is none.
func (f Facts) until() (first time.Time) {
	for _, end := range []time.Time{f.Slot.Until, f.Ends, f.NotAfter} {
		if first.IsZero() || !end.IsZero() && end.Before(first) {
			first = end
		}
	}
	return first
}

// capped decides about a contact whose number a cap holds.
func capped(f Facts) Verdict {
	v := Verdict{Fate: Wait, Reason: FrequencyCap, Until: f.Hold.Frees, Cap: f.Hold.Cap, Rule: f.Hold.Rule}
	if f.Hold.Frees.IsZero() || !f.Ends.IsZero() && !f.Hold.Frees.Before(f.Ends) {
		v = Verdict{Fate: Capped, Cap: v.Cap, Rule: v.Rule}
	}
	return v
}

// engagedFor is when a number that was on a call is looked at again.
const engagedFor = 15 * time.Second
