package rtp

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
)

// paced returns n packets without gaps. Each has the given number of ticks.
func paced(n, ticks int) (all []flight) {
	for i := range n {
		at := time.Duration(i*ticks) * time.Second / Rate
		all = append(all, flight{at, packet{ssrc: 1, seq: uint16(i), ts: uint32(i * ticks), payload: make([]byte, ticks)}})
	}
	return all
}

func TestConcealed(t *testing.T) {
	packets := func() []flight { return speech(0, 0, 300, 1) }
	delay := func(all []flight, by time.Duration) {
		for i := range all {
			all[i].at += by
			all[i].ts += uint32(by * Rate / time.Second)
		}
	}
	lose := func(all []flight, from, n int) []flight {
		return append(append([]flight(nil), all[:from]...), all[from+n:]...)
	}
	for name, row := range map[string]struct {
		flights  func() []flight
		from, to int64 // numbers of frames
	}{
		"nothing is lost": {packets, 0, 0},
		"on hold, then back": {func() []flight {
			all := packets()
			delay(all[100:], time.Minute)
			return all
		}, 0, 0},
		"silence without comfort noise": {func() []flight {
			all := packets()
			for i := 30; i < 300; i += 30 {
				delay(all[i:], time.Second)
			}
			return all
		}, 0, 0},
		"a key that is down": {func() []flight {
			all := packets()
			for i := 100; i < 110; i++ {
				all[i].pt, all[i].ts, all[i].marker, all[i].payload = 101, all[100].ts, i == 100, []byte{5, 10, byte((i - 99) * 160 >> 8), byte((i - 99) * 160)}
			}
			return all
		}, 0, 0},
		"out of order": {func() []flight {
			all := packets()
			for i := 50; i < 300; i += 50 {
				all[i].at += 30 * ms
			}
			return all
		}, 0, 1},
		"one lost":           {func() []flight { return lose(packets(), 100, 1) }, 1, 1},
		"three lost":         {func() []flight { return lose(packets(), 100, 3) }, 3, 3},
		"a second lost":      {func() []flight { return lose(packets(), 100, 50) }, 50, 50},
		"lost of 10 ms each": {func() []flight { return lose(lose(paced(600, 80), 400, 2), 100, 10) }, 6, 6},
		"lost of 30 ms each": {func() []flight { return lose(lose(paced(200, 240), 150, 1), 100, 2) }, 5, 5},
		"lost of 60 ms each": {func() []flight { return lose(paced(100, 480), 50, 2) }, 6, 6},
		"lost in a silence": {func() []flight {
			all := packets()
			delay(all[101:], time.Minute)
			return lose(all, 100, 1)
		}, 1, 1},
		"200 ms too late": {func() []flight {
			all := packets()
			for i := 100; i < 110; i++ {
				all[i].at = all[110].at
			}
			return all
		}, 5, 10},
		"nothing more arrives": {func() []flight { return packets()[:100] }, 0, 0},
	} {
		l := newReceiveSim(t, Params{KeyType: 101})
		l.run(row.flights(), 70*time.Second)
		n := l.s.Stats()
		if n.Concealed < row.from || n.Concealed > row.to {
			t.Errorf("%s: %d frames concealed, want %d to %d: %+v", name, n.Concealed, row.from, row.to, n)
		}
		if q := l.s.Quality(); q.Concealed != time.Duration(n.Concealed)*media.FrameTime {
			t.Errorf("%s: %v of %d frames", name, q.Concealed, n.Concealed)
		}
	}
}

// TestStalledReader pauses the reader while packets arrive, and checks that no frame is lost while the ring has room.
func TestStalledReader(t *testing.T) {
	for _, row := range []struct {
		ticks int
		stall time.Duration
	}{{160, 900 * ms}, {160, 1020 * ms}, {160, 1100 * ms}, {160, 1240 * ms}, {240, 1800 * ms}, {480, 3600 * ms}} {
		l := newReceiveSim(t, Params{})
		n := 8 * Rate / row.ticks
		all := paced(n, row.ticks)
		i := slices.IndexFunc(all, func(f flight) bool { return f.at >= time.Second })
		l.run(append([]flight(nil), all[:i]...), all[i-1].at)
		until := l.now + row.stall
		for ; all[i].at <= until; i++ {
			l.receive(all[i])
		}
		l.now = until
		l.run(append([]flight(nil), all[i:]...), 8*time.Second)
		received, want := len(l.ids()), 8*50
		if sum := l.s.Stats(); received+int(sum.Skipped) < want-1 || sum.Overflow != 0 || sum.Resynced != 0 || sum.Lost != 0 || sum.Skipped > 1 {
			t.Errorf("%v at packets of %d: %d frames of %d: %+v", row.stall, row.ticks, received, want, sum)
		}
	}
}

// TestHeldToneWithGaps loses parts of an in-band digit. It checks that the digit counts once, and that a second press
// counts again.
func TestHeldToneWithGaps(t *testing.T) {
	hold := func(pcm []int16, frame int) {
		for i := range pcm {
			at := 2 * math.Pi * float64(frame*len(pcm)+i) / Rate
			pcm[i] = int16(8000 * (math.Sin(770*at) + math.Sin(1336*at)))
		}
	}
	for lost := range 20 {
		l := newReceiveSim(t, Params{InBand: true})
		l.each = l.s.detectTones
		var all []flight
		pcm := make([]int16, frameLen)
		for i := range 120 {
			clear(pcm)
			if i >= 20 && i < 60 || i >= 80 && i < 90 { // loses 800 ms, and later 200 ms
				hold(pcm, i)
			}
			p := packet{ssrc: 1, seq: uint16(i), ts: uint32(i * frameLen), payload: make([]byte, frameLen)}
			codec.PCMU{}.Encode(p.payload, pcm)
			if i < 30 || i >= 30+lost {
				all = append(all, flight{time.Duration(i) * 20 * ms, p})
			}
		}
		l.run(all, 3*time.Second)
		if n := len(l.s.keys); n != 2 {
			t.Errorf("%d ms lost: %d keys, want 2", lost*20, n)
		}
	}
	// A digit that ends during a long loss.
	l := newReceiveSim(t, Params{InBand: true})
	l.each = l.s.detectTones
	pcm := make([]int16, frameLen)
	var all []flight
	for i := range 100 {
		hold(pcm, i)
		p := packet{ssrc: 1, seq: uint16(i), ts: uint32(i * frameLen), payload: make([]byte, frameLen)}
		codec.PCMU{}.Encode(p.payload, pcm)
		if i < 20 || i >= 80 {
			all = append(all, flight{time.Duration(i) * 20 * ms, p})
		}
	}
	if l.run(all, 3*time.Second); len(l.s.keys) != 2 {
		t.Errorf("%d keys, want 2", len(l.s.keys))
	}
}
