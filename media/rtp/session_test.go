package rtp

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
)

func loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

func newTransport(tb testing.TB, clock *mediaclock.Clock) *Transport {
	tb.Helper()
	ports, err := ParsePorts("0-0")
	if err != nil {
		tb.Fatal(err)
	}
	tr, err := NewTransport(clock, ports, loopback(), netip.Addr{})
	if err != nil {
		tb.Fatal(err)
	}
	return tr
}

// newTestTransport returns a running transport on 127.0.0.1.
func newTestTransport(t *testing.T) *Transport {
	t.Helper()
	clock := &mediaclock.Clock{}
	tr := newTransport(t, clock)
	ctx, cancel := context.WithCancel(context.Background()) // canceled by the cleanup, after the sessions
	var wg sync.WaitGroup
	wg.Go(func() { clock.Run(ctx) })
	t.Cleanup(func() {
		if n := tr.SessionCount(); n != 0 {
			t.Errorf("%d sessions left open", n)
		}
		tr.Close()
		cancel()
		wg.Wait()
		if n := tr.ports.InUse(); n != 0 {
			t.Errorf("%d ports left in use", n)
		}
	})
	return tr
}

func newPair(t *testing.T, tr *Transport, c codec.Codec) (a, b *Session) {
	t.Helper()
	var both [2]*Session
	for i := range both {
		s, err := tr.Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		both[i] = s
	}
	a, b = both[0], both[1]
	a.Start(Params{Remote: b.Local(), Codec: c, PayloadType: c.PayloadType(), KeyType: 101})
	b.Start(Params{Remote: a.Local(), Codec: c, PayloadType: c.PayloadType(), KeyType: 101})
	return a, b
}

func TestAudioBothWays(t *testing.T) {
	for _, c := range codec.All() {
		t.Run(c.Name(), func(t *testing.T) {
			a, b := newPair(t, newTestTransport(t), c)
			a.Play(mediatest.Tone(440))
			b.Play(mediatest.Tone(1000))
			var wg sync.WaitGroup
			receive := func(s *Session, hz float64) {
				// A busy machine may skip a frame and interrupt the tone, so the best of several windows counts.
				f, best := make(media.Frame, media.FrameLen(c.Rate())), 0.0
				for try := 0; try < 5 && best < 0.95; try++ {
					var all []int16
					for range 30 {
						if err := s.ReadFrame(f); err != nil {
							t.Error(err)
							return
						}
						if at, ok := s.Arrived(); ok && time.Since(at) > time.Second {
							t.Errorf("arrival %v ago", time.Since(at))
						}
						all = append(all, f...)
					}
					best = max(best, tone.Share(all[10*len(f):], c.Rate(), hz))
				}
				if best < 0.95 {
					t.Errorf("%v Hz has %.2f of the power", hz, best)
				}
			}
			wg.Go(func() { receive(a, 1000) })
			wg.Go(func() { receive(b, 440) })
			wg.Wait()
		})
	}
}

func TestSilenceIsTimely(t *testing.T) {
	tr := newTestTransport(t)
	s, err := tr.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Start(Params{Codec: codec.PCMU{}})
	f := make(media.Frame, frameLen)
	start := time.Now()
	for range 25 {
		if err := s.ReadFrame(f); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Arrived(); ok {
			t.Error("Arrived: got true for inserted silence")
		}
	}
	// 25 frames of silence, after the wait for missing packets.
	if d := time.Since(start); d < 500*time.Millisecond || d > time.Second {
		t.Errorf("25 frames of silence took %v", d)
	}
	if n := s.Stats().Concealed; n != 0 {
		t.Errorf("%d frames concealed without speech", n)
	}
}

func TestCloseUnblocksReadFrame(t *testing.T) {
	a, _ := newPair(t, newTestTransport(t), codec.PCMU{})
	read := make(chan error)
	go func() {
		f := make(media.Frame, frameLen)
		for {
			if err := a.ReadFrame(f); err != nil {
				read <- err
				return
			}
		}
	}()
	var after atomic.Int64
	closed := atomic.Bool{}
	first := make(chan struct{}, 100)
	a.Play(media.FeedFunc(func(media.Frame, time.Time) {
		if closed.Load() {
			after.Add(1)
		}
		select {
		case first <- struct{}{}:
		default:
		}
	}))
	<-first
	a.Close()
	closed.Store(true)
	a.Close()
	if err := <-read; !errors.Is(err, io.EOF) {
		t.Errorf("reader got %v", err)
	}
	if _, open := <-a.Digits(); open {
		t.Error("digits are open")
	}
	if after.Load() != 0 {
		t.Error("the feed was called after Close")
	}
	if err := a.ReadFrame(make(media.Frame, frameLen)); !errors.Is(err, io.EOF) {
		t.Errorf("second read got %v", err)
	}
	if err := a.ReadFrame(make(media.Frame, 10)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a short frame got %v", err)
	}
}
