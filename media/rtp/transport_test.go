package rtp

import (
	"testing"

	"github.com/parley-voice/parley/media/codec"
)

// TestTransportStats checks that the sums include open sessions and keep the counts of closed sessions.
func TestTransportStats(t *testing.T) {
	tr := newTestTransport(t)
	a, b := newPair(t, tr, codec.PCMU{})
	eventually(t, func() bool { n := tr.Stats(); return n.Sent > 10 && n.Received > 10 })
	if n := tr.SessionCount(); n != 2 {
		t.Errorf("%d sessions are open, want 2", n)
	}
	last := tr.Stats()
	for _, s := range []*Session{a, b} {
		s.Close()
		now := tr.Stats()
		if now.Sent < last.Sent || now.Received < last.Received {
			t.Errorf("%+v after %+v", now, last)
		}
		last = now
	}
	if n := tr.SessionCount(); n != 0 {
		t.Errorf("%d sessions are open, want none", n)
	}
}
