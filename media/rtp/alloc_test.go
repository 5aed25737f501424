//go:build !race

package rtp

import (
	"testing"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/srtp"
)

// TestNoAllocationsEncrypted does not run with the race detector, which empties sync.Pools at random.
func TestNoAllocationsEncrypted(t *testing.T) {
	s, step := newStepSession(t, codec.PCMU{})
	key := srtp.New()[0]
	s.Start(Params{Remote: s.Local(), Codec: codec.PCMU{}, LocalKey: key, RemoteKey: key})
	for range 200 {
		step()
	}
	if n := testing.AllocsPerRun(500, step); n != 0 {
		t.Errorf("an encrypted frame allocates %v times", n)
	}
	if sum := s.Stats(); sum.Received < 500 || sum.Forged != 0 {
		t.Errorf("%+v", sum)
	}
}
