package progress

import (
	"math"
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control"
)

// Reasons, beside those of campaigns/plan and the limits of admission, why the end of the calls is not known.
const (
	NoContacts = "no_contacts" // no contact waits for a call
	NoPace     = "no_pace"     // too few calls to know the pace
	Stalled    = "stalled"     // contacts are ready, but no call began in the last minutes
)

// Recent has the attempts in the hour before the last attempt, which included.
type Recent struct {
	Calls       int
	First, Last time.Time
}

// A Forecast says when the contacts that wait now will have been called.
type Forecast struct {
	At        time.Time // zero if it is not known
	PerMinute float64   // pace of the last hour of dialing; 0 if it is not known
	Why       string    // reason why At is not known
	// Later means that the calls end after At, at a time that is not known.
	Later bool
	// Missed contacts are not called before the campaign's end, which is At.
	Missed int
}

// Bounds of a forecast.
const (
	horizon    = 14 * 24 * time.Hour
	maxLookups = 10_000 // slots of the calendar
	minCalls   = 5      // for a pace
	stallAfter = 10 * time.Minute
	maxRedial  = 0.95 // largest share of calls that are assumed to lead to another call
)

// Forecast computes the end of the calls from the pace of the last hour of dialing and the legal and working hours.
// p is the progress for the same facts.
func (f Facts) Forecast(p Progress) Forecast {
	x := Forecast{PerMinute: f.pace(p.Ready > 0)}
	if x.Why = f.unknown(p, x.PerMinute); x.Why != "" {
		return x
	}
	each := f.callsPerContact()
	var all []load
	for _, g := range f.Waiting {
		if !g.Late {
			all = append(all, load{key: g.Key, calls: float64(g.N) * each, from: g.Next})
		}
	}
	var left float64
	x.At, left = f.walk(all, x.PerMinute)
	if left > 0 {
		x.Later = x.At.Before(f.Campaign.EndsAt) || f.Campaign.EndsAt.IsZero()
		if !x.Later {
			x.Missed = int(math.Ceil(left / each))
		}
		return x
	}
	for _, g := range f.Waiting { // the last retry may be due after the others are called
		if g.Late || !g.Last.After(x.At) {
			continue
		}
		if at, ok := f.Calendar.NextOpen(g.Last, g.Key, time.Time{}); ok && at.After(x.At) {
			x.At = at
		}
	}
	return x
}

// pace returns the calls per minute in the last hour of dialing, 0 if they are too few.
func (f Facts) pace(ready bool) float64 {
	until := f.Recent.Last
	if ready { // a campaign that could dial, and does not, becomes slower
		until = f.Now
	}
	span := until.Sub(f.Recent.First).Minutes()
	if f.Recent.Calls < minCalls || span <= 0 {
		return 0
	}
	return min(float64(f.Recent.Calls-1)/span, float64(f.Campaign.CallsPerMinute))
}

// unknown returns why the end cannot be computed; empty if it can.
func (f Facts) unknown(p Progress, pace float64) string {
	if f.Campaign.Status != campaigns.Running {
		return plan.NotRunning
	}
	if f.Counts.ByState[campaigns.Pending] == 0 {
		return NoContacts
	}
	for _, reason := range []string{
		plan.NoMarket, plan.ScreenStale, plan.CarrierPaused, plan.RouteUnavailable, plan.ProviderUnavailable, plan.TooManyFailures,
		plan.RecordingUnavailable, plan.DatabaseFailover,
	} {
		if p.HeldReasons[reason] > 0 {
			return reason
		}
	}
	for _, limit := range []control.Code{control.CodeCampaignBudget, control.CodeOrganizationBudget, control.CodeOrganizationLimit} {
		if slices.Contains(p.Pace.LimitedBy, limit) {
			return string(limit)
		}
	}
	switch {
	case p.Ready > 0 && !f.Recent.Last.IsZero() && f.Now.Sub(f.Recent.Last) > stallAfter:
		return Stalled
	case pace == 0:
		return NoPace
	default:
		return ""
	}
}

// callsPerContact estimates the further calls to a waiting contact from the share of ended calls that led to another
// call.
func (f Facts) callsPerContact() float64 {
	ended := 0
	for _, n := range f.Outcomes {
		ended += n
	}
	redialed := f.Counts.Redials
	if ended == 0 || f.Campaign.Retry.Attempts <= 1 {
		return 1
	}
	finished := f.Tried - redialed - f.InProgress
	again := min(max(0, float64(ended-finished)/float64(ended)), maxRedial)
	series := func(attempts int) float64 { return (1 - math.Pow(again, float64(attempts))) / (1 - again) }
	waiting := max(f.Counts.ByState[campaigns.Pending], 1)
	fresh := series(f.Campaign.Retry.Attempts) * float64(waiting-redialed)
	return max(1, (fresh+series(f.Campaign.Retry.Attempts-1)*float64(redialed))/float64(waiting))
}

// A load is the calls to one group of contacts, from a time on.
type load struct {
	key   string
	calls float64
	from  time.Time
}

// walk goes through the calling hours until all calls are made, and returns when that is. left is not 0 if the end of
// the campaign or a bound comes first, at that time. All groups that may be called share the pace.
func (f Facts) walk(all []load, perMinute float64) (at time.Time, left float64) {
	end := f.Now.Add(horizon)
	if last := f.Campaign.EndsAt; !last.IsZero() && last.Before(end) {
		end = last
	}
	at = f.Now
	for lookups := 0; ; {
		all = slices.DeleteFunc(all, func(l load) bool { return l.calls <= 0 })
		if len(all) == 0 {
			return at, 0
		}
		if lookups > maxLookups || !at.Before(end) {
			for _, l := range all {
				left += l.calls
			}
			return at, left
		}
		open, edge, due := f.openAt(at, end, all)
		lookups += len(all)
		needed := time.Duration(due / perMinute * float64(time.Minute))
		done := 1.0
		if step := edge.Sub(at); needed > step {
			done = float64(step) / float64(needed)
		} else if due > 0 {
			edge = at.Add(needed)
		}
		for i := range all {
			if open[i] {
				all[i].calls *= 1 - done
			}
		}
		at = edge
	}
}

// openAt returns which groups may be called, the calls to them, and when the next group opens or closes, or end.
func (f Facts) openAt(at, end time.Time, all []load) (open []bool, edge time.Time, due float64) {
	open, edge = make([]bool, len(all)), end
	for i, l := range all {
		change := l.from
		if !l.from.After(at) {
			slot := f.Calendar.Slot(at, l.key)
			change, open[i] = slot.Until, slot.IsOpen()
		}
		if change.Before(edge) {
			edge = change
		}
		if open[i] {
			due += l.calls
		}
	}
	return open, edge, due
}
