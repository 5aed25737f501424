package leg

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/dialog"
)

// refreshRetry is the delay before a failed refresh is repeated.
const refreshRetry = 10 * time.Second

// A sessionTimer holds the agreed session interval (RFC 4028).
type sessionTimer struct {
	minimum   time.Duration // shortest interval that we accept
	schedule  atomic.Pointer[dialog.RefreshSchedule]
	agreedMin atomic.Int64                // shortest interval that both sides accept, in nanoseconds
	changes   chan dialog.RefreshSchedule // latest agreement, for the goroutine of refresh
}

func newSessionTimer(minimum, peerMin time.Duration, s dialog.RefreshSchedule) *sessionTimer {
	t := &sessionTimer{minimum: cmp.Or(minimum, dialog.MinSessionInterval), changes: make(chan dialog.RefreshSchedule, 1)}
	t.schedule.Store(&s)
	t.agreedMin.Store(int64(max(peerMin, t.minimum)))
	return t
}

// set records a new agreement.
func (t *sessionTimer) set(s dialog.RefreshSchedule) {
	t.schedule.Store(&s)
	replace(t.changes, s)
}

// raise applies the Min-SE of a 422.
func (t *sessionTimer) raise(res *sip.Response) {
	if h := res.GetHeader("Min-SE"); h != nil {
		if least, err := dialog.ParseMinSE(h.Value()); err == nil && int64(least) > t.agreedMin.Load() {
			t.agreedMin.Store(int64(least))
		}
	}
}

// request adds the headers that ask for the next interval. The refresher stays
// the same (RFC 4028 section 7.4).
func (t *sessionTimer) request(req *sip.Request) {
	least := time.Duration(t.agreedMin.Load())
	next := dialog.SessionExpires{Length: max(dialog.DefaultSessionInterval, least), Refresher: dialog.UAC}
	if s := t.schedule.Load(); s != nil && s.Length > 0 {
		next.Length = max(s.Length, least)
		if !s.IsRefresher {
			next.Refresher = dialog.UAS
		}
	}
	req.AppendHeader(sip.NewHeader("Session-Expires", next.String()))
	req.AppendHeader(sip.NewHeader("Min-SE", dialog.SessionExpires{Length: least}.String()))
}

// answer returns the headers for the 2xx to a request, and the agreement. ok is
// false if the request needs a 422 instead.
func (t *sessionTimer) answer(req *sip.Request) (headers []sip.Header, s dialog.RefreshSchedule, ok bool) {
	supported := HasToken(req, "Supported", "k", "timer")
	i, s, ok := dialog.NegotiateTimer(SessionExpires(req), supported, t.minimum)
	if ok && i.Length > 0 {
		headers = append(headers, sip.NewHeader("Session-Expires", i.String()), sip.NewHeader("Require", "timer"))
		if i.Refresher == dialog.UAS && !supported {
			headers = headers[:1] // without Require: the peer does not support timers
		}
	}
	return headers, s, ok
}

// refresh refreshes the session, or ends the leg if no side does (RFC 4028).
func (l *Leg) refresh(s dialog.RefreshSchedule) {
	var due <-chan time.Time
	clock := time.NewTimer(time.Hour)
	defer clock.Stop()
	refreshed := time.Now()
	arm := func(after time.Duration) {
		clock.Reset(after)
		due = clock.C
	}
	next := func() {
		switch {
		case s.Length == 0:
			due = nil
		case s.IsRefresher:
			arm(s.RefreshAfter())
		default:
			arm(s.ExpireAfter())
		}
	}
	next()
	for {
		select {
		case <-l.ended:
			return
		case s = <-l.timer.changes:
			refreshed = time.Now()
			next()
		case <-due:
			if !s.IsRefresher || time.Since(refreshed) >= s.ExpireAfter() {
				l.end(media.Expired, true)
				return
			}
			if err := l.offers.offer(context.Background(), false); err == nil {
				continue // the new agreement arrives on changes
			} else if !errors.Is(err, errEnded) {
				l.endpoint.Debug("failed to refresh session", err)
			}
			arm(max(time.Millisecond, min(refreshRetry, s.ExpireAfter()-time.Since(refreshed))))
		}
	}
}

// SessionExpires returns the valid Session-Expires of a message, or nil.
func SessionExpires(msg sip.Message) *dialog.SessionExpires {
	for _, name := range []string{"Session-Expires", "x"} {
		for _, h := range msg.GetHeaders(name) {
			if i, err := dialog.ParseSessionExpires(h.Value()); err == nil {
				return &i
			}
		}
	}
	return nil
}

// HasToken reports whether a list header, by its long or short name, contains a
// token.
func HasToken(msg sip.Message, name, short, token string) bool {
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

// AllowedMethods returns the methods in the Allow header of a message.
func AllowedMethods(msg sip.Message) (methods []string) {
	for _, h := range msg.GetHeaders("Allow") {
		for m := range strings.SplitSeq(h.Value(), ",") {
			methods = append(methods, strings.ToUpper(strings.TrimSpace(m)))
		}
	}
	return methods
}
