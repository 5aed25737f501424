package sip

import (
	"errors"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestNoInviteLeavesTooLate: a call whose time has passed is not dialled, and
// nobody is told that it was.
func TestNoInviteLeavesTooLate(t *testing.T) {
	l := newLine(t, func(siptest.Invite) siptest.Script { return siptest.Script{Status: 486, Reason: "Busy Here"} })
	late := l.target()
	late.NotAfter = time.Now().Add(-time.Millisecond)
	_, err := l.ua.Dial(t.Context(), late, func(p media.Progress) { t.Errorf("progress %s", p) })
	var failure *media.DialError
	if !errors.As(err, &failure) || failure.Cause != media.Failure || !errors.Is(err, media.ErrTooLate) {
		t.Errorf("dialled too late: %v", err)
	}
	// What comes in time leaves, and comes after what would have left.
	next := l.target()
	next.NotAfter = time.Now().Add(time.Minute)
	if _, err = l.ua.Dial(t.Context(), next, nil); !errors.As(err, &failure) || failure.Cause != media.Busy {
		t.Errorf("dialled in time: %v", err)
	}
	if all := l.carrier.Journal(); len(all) != 1 || all[0].ID != next.ID {
		t.Errorf("the carrier saw %+v", all)
	}
}
