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
