package rtp

import (
	"sync"
	"testing"

	"github.com/parley-voice/parley/bench/relay"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
)

func TestCallOverABadNetwork(t *testing.T) {
	tr := newTestTransport(t)
	a, b := newPair(t, tr, codec.PCMU{})
	path := relay.Path{Loss: 0.05, Burst: 2, Delay: 5 * ms, Jitter: 30 * ms, Duplicate: 0.05}
	r, toB, toA, err := relay.Between(a.Local(), b.Local(), path, path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if closed := r.Close(); closed != nil {
			t.Error(closed)
		}
	}()
	a.Start(Params{Remote: toB, Codec: codec.PCMU{}})
	b.Start(Params{Remote: toA, Codec: codec.PCMU{}})
	// A frame holds whole periods of the tone, so a skipped frame does not change the phase.
	a.Play(mediatest.Tone(500))
	b.Play(mediatest.Tone(1000))
	var work sync.WaitGroup
	receive := func(s *Session, hz float64) {
		f, all := make(media.Frame, frameLen), []int16(nil)
		for range 110 { // a busy machine may skip some frames
			if err := s.ReadFrame(f); err != nil {
				t.Error(err)
				return
			}
			all = append(all, f...)
		}
		if p := tone.Share(all[15*frameLen:], Rate, hz); p < 0.7 {
			t.Errorf("%v Hz has %.2f of the power", hz, p)
		}
		if n := s.Stats(); n.Received < 60 || n.Duplicate == 0 && n.Lost == 0 {
			t.Errorf("%+v", n)
		}
	}
	work.Go(func() { receive(a, 1000) })
	work.Go(func() { receive(b, 500) })
	work.Wait()
}
