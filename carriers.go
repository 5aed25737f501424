package main

import (
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/sip"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/leg"
)

// meter passes measurements of SIP calls to the metrics.
type meter struct{ *metrics.Metrics }

// ObserveEnd implements sip.Meter.
func (m meter) ObserveEnd(end leg.Ending) {
	m.LegEnded(metrics.Leg{Cause: end.Cause, Lasted: end.Duration, Bye: end.ByeDelay, Unanswered: end.IsByeUnanswered, Quality: end.Quality})
}

func carriers(ua *sip.UA) metrics.Carriers {
	in := ua.Ingress()
	c := metrics.Carriers{
		Addresses:     map[string]int64{"up": 0, "down": 0, "barred": 0},
		Registrations: map[string]int64{"registered": 0, "failed": 0, "pending": 0},
		Dropped:       in.Dropped, Unreadable: in.Unreadable, Limited: in.Limited,
		Unaccepted: in.Unaccepted, Foreign: in.Foreign, Refused: in.Refused,
	}
	c.Up, c.Dialing = ua.Calls()
	for _, p := range ua.ProxyStates() {
		c.Addresses[map[health.Status]string{health.Up: "up", health.Down: "down", health.Paused: "barred"}[p.Status]]++
	}
	for _, r := range ua.Registrations() {
		switch {
		case r.Err != nil:
			c.Registrations["failed"]++
		case r.Until.IsZero():
			c.Registrations["pending"]++
		default:
			c.Registrations["registered"]++
		}
	}
	return c
}
