package sip

import (
	"errors"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestNotAfter checks that after NotAfter no INVITE is sent and no progress
// reported.
func TestNotAfter(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{Status: 486, Reason: "Busy Here"} })
	late := l.target()
	late.NotAfter = time.Now().Add(-time.Millisecond)
	_, err := l.ua.Dial(t.Context(), late, func(p media.Progress) { t.Errorf("progress %s", p) })
	var failure *media.DialError
	if !errors.As(err, &failure) || failure.Cause != media.Failure || !errors.Is(err, media.ErrTooLate) {
		t.Errorf("dialed too late: %v", err)
	}
	// A late INVITE would arrive before this one.
	next := l.target()
	next.NotAfter = time.Now().Add(time.Minute)
	if _, err = l.ua.Dial(t.Context(), next, nil); !errors.As(err, &failure) || failure.Cause != media.Busy {
		t.Errorf("dialed in time: %v", err)
	}
	if all := l.carrier.Journal(); len(all) != 1 || all[0].ID != next.ID {
		t.Errorf("the carrier saw %+v", all)
	}
}

// TestNoSecondInviteAfterNotAfter checks that a refused INVITE is not repeated with credentials or another session interval
// after NotAfter. The refused one rang no phone, so only the second one would begin the call.
func TestNoSecondInviteAfterNotAfter(t *testing.T) {
	for name, row := range map[string]struct {
		status, more string
		late         bool
	}{
		"challenge in time": {"407 Proxy Authentication Required", "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n", false},
		"late challenge":    {"407 Proxy Authentication Required", "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n", true},
		"interval in time":  {"422 Session Interval Too Small", "Min-SE: 3600\r\n", false},
		"late interval":     {"422 Session Interval Too Small", "Min-SE: 3600\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
				to := target("late")
				to.Trunk.Username, to.Trunk.Password, to.NotAfter = "u", "p", time.Now().Add(time.Second)
				first, result := b.dial(t, to)
				b.send(t, reply(first, "100 Trying", "", "", ""))
				if row.late {
					<-time.After(time.Second)
				}
				b.send(t, reply(first, row.status, peerTag, row.more, ""))
				b.read(t, "ACK ")
				if !row.late {
					b.send(t, reply(b.read(t, "INVITE "), "486 Busy Here", peerTag, "", ""))
				}
				if got := <-result; causeOf(got.err) == media.Busy == row.late || errors.Is(got.err, media.ErrTooLate) != row.late {
					t.Error(got.err)
				}
			})
		})
	}
}
