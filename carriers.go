package main

import (
	"context"
	"errors"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/media"
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

// explainingDialer adds the meaning of a refusal that the carrier documents to the trace of the call.
type explainingDialer struct {
	control.Dialer

	profiles apply.Carriers
}

// Dial implements control.Dialer.
func (d explainingDialer) Dial(ctx context.Context, t media.Target, progress func(media.Progress)) (media.Leg, error) {
	leg, err := d.Dialer.Dial(ctx, t, progress)
	refused, ok := errors.AsType[*media.DialError](err)
	if !ok || len(refused.Ladder) == 0 {
		return leg, err
	}
	if meaning := d.profiles.Explain(t.Trunk.Proxy, refused.Status, refused.Reason); meaning != "" {
		last := &refused.Ladder[len(refused.Ladder)-1]
		last.Note = strings.TrimPrefix(last.Note+", "+meaning, ", ")
	}
	return leg, err
}
