package leg

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/timer"
)

// refreshAgain is when a refresh that failed is tried again.
const refreshAgain = 10 * time.Second

// least is the shortest session interval that we take.
func (l *Leg) least() time.Duration {
	if l.rules.Least == 0 {
		return timer.Least
	}
	return l.rules.Least
}

// keep refreshes the session, or ends it where nobody does (RFC 4028).
func (l *Leg) keep(t timer.Term) {
	var due <-chan time.Time
	clock := time.NewTimer(time.Hour)
	defer clock.Stop()
	renewed := time.Now()
	arm := func(after time.Duration) {
		clock.Reset(after)
		due = clock.C
	}
	next := func() {
		switch {
		case t.Length == 0:
			due = nil
		case t.Ours:
			arm(t.Refresh())
		default:
			arm(t.Expiry())
		}
	}
	next()
	for {
		select {
		case <-l.ended:
			return
		case t = <-l.terms:
			renewed = time.Now()
			next()
		case <-due:
			if !t.Ours || time.Since(renewed) >= t.Expiry() {
				l.end(media.Expired, true)
				return
			}
			if err := l.offer(context.Background(), false); err == nil {
				continue // the term that was agreed on is on its way
			} else if !errors.Is(err, errEnded) {
				l.endpoint.Debug("session refresh", err)
			}
			arm(max(time.Millisecond, min(refreshAgain, t.Expiry()-time.Since(renewed))))
		}
	}
}

// Expires reads the Session-Expires of a message, nil where it has none that
// makes sense.
func Expires(msg sip.Message) *timer.Interval {
	for _, name := range []string{"Session-Expires", "x"} {
		for _, h := range msg.GetHeaders(name) {
			if i, err := timer.Parse(h.Value()); err == nil {
				return &i
			}
		}
	}
	return nil
}

// Lists says whether a header of a message, by its long or its short name,
// lists a token.
func Lists(msg sip.Message, name, short, token string) bool {
	for _, n := range []string{name, short} {
		for _, h := range msg.GetHeaders(n) {
			for item := range strings.SplitSeq(h.Value(), ",") {
				if strings.EqualFold(strings.TrimSpace(item), token) {
					return true
				}
			}
		}
	}
	return false
}

// Allowed are the methods that a message says its sender takes.
func Allowed(msg sip.Message) (methods []string) {
	for _, h := range msg.GetHeaders("Allow") {
		for m := range strings.SplitSeq(h.Value(), ",") {
			methods = append(methods, strings.ToUpper(strings.TrimSpace(m)))
		}
	}
	return methods
}

// term answers what a request says of timers. It is false where a 422 was sent.
func (l *Leg) term(req *sip.Request, tx sip.ServerTransaction) (headers []sip.Header, t timer.Term, ok bool) {
	i, t, ok := timer.Answer(Expires(req), Lists(req, "Supported", "k", "timer"), l.least())
	if !ok {
		l.endpoint.Respond(tx, req, 422, "Session Interval Too Small",
			sip.NewHeader("Min-SE", timer.Interval{Length: l.least()}.String()))
		return nil, t, false
	}
	if i.Length > 0 {
		headers = append(headers, sip.NewHeader("Session-Expires", i.String()), sip.NewHeader("Require", "timer"))
		if i.Refresher == timer.UAS && !Lists(req, "Supported", "k", "timer") {
			headers = headers[:1] // who knows no timers must not be required to
		}
	}
	return headers, t, true
}
