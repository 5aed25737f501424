package jitter

import (
	"testing"
	"time"
)

// TestLatePacketsOfPreviousSource checks that late packets of the previous source do not make it the source again.
func TestLatePacketsOfPreviousSource(t *testing.T) {
	old, next := &testSender{ssrc: 1, ptime: 20}, &testSender{ssrc: 2, seq: 9000, ts: 160 * 500, ptime: 20}
	packets := old.packets(0, 20)
	packets = append(packets, next.packets(20*20*ms, 20)...)
	last := packets[19]
	copy(packets[19:], packets[20:23])
	packets[22], last.At = last, 450*ms
	j := New()
	all := play(j, packets, 780*ms)
	if n := j.Stats(); n.Resynced != 1 || n.Late != 1 || len(values(all)) != 39 {
		t.Errorf("%+v, %d frames", n, len(values(all)))
	}
	// Later packets show that the previous source sends again.
	back := &testSender{ssrc: 1, seq: 20, ts: 160 * 20, ptime: 20}
	j.Put(back.packet(800 * ms))
	if r := j.Ready(800 * ms); r != Complete || j.Stats().Resynced != 2 {
		t.Errorf("%v, %+v", r, j.Stats())
	}
}

// TestSpeechAfterSilenceIsAligned starts speech in the middle of a frame, and checks that no frame waits for the next
// packet.
func TestSpeechAfterSilenceIsAligned(t *testing.T) {
	for _, off := range []uint32{40, 80, 120} {
		for _, marker := range []bool{true, false} {
			s, j := &testSender{ssrc: 1, ptime: 20}, New()
			packets := s.packets(0, 10)
			if !marker { // comfort noise announced the silence
				packets = append(packets, &Packet{At: 200 * ms, SSRC: 1, Seq: s.seq, Timestamp: s.ts, Payload: []byte{60}, Kind: Comfort})
				s.seq++
			}
			s.ts += 160*40 + off
			for i := 50; i < 100; i++ {
				p := s.packet(time.Duration(i)*20*ms + span(int64(off)))
				p.Marker = marker && i == 50
				packets = append(packets, p)
			}
			for _, r := range play(j, packets, 2*time.Second) {
				if r.at > 1200*ms && r.whole && (r.at-span(int64(off)))%(20*ms) != 0 {
					t.Fatalf("offset %d, marker %v: a frame came at %v", off, marker, r.at)
				}
			}
			if n := j.Stats(); n.Late != 0 || n.Resynced != 0 || n.Lost != 0 {
				t.Errorf("offset %d: %+v", off, n)
			}
		}
	}
}

// TestDrift checks the measured drift of the sender's clock.
func TestDrift(t *testing.T) {
	for _, ppm := range []int{-200, 200} {
		s, j := &testSender{ssrc: 1, ptime: 20}, New()
		j.Start(0)
		for i := range 50_000 { // sends 1000 s of audio
			at := time.Duration(i) * (20*ms - time.Duration(ppm*20))
			j.Put(s.packet(at))
			takeAll(j, at)
		}
		want := time.Duration(ppm) * ms // expected drift in 1000 s
		if got := j.Drift(); got < want-2*ms || got > want+2*ms {
			t.Errorf("%d ppm: drift %v", ppm, got)
		}
		before := j.Drift()
		if j.Skew(-3); j.Drift() != before-60*ms {
			t.Errorf("after three dropped frames: %v", j.Drift())
		}
	}
}

func TestInvalidPackets(t *testing.T) {
	j := New()
	j.Start(0)
	j.Put(&Packet{Payload: make([]byte, MaxPayload+1)})
	if j.HasAudio() || j.Stats() != (Stats{Depth: 60 * ms}) {
		t.Error("Put accepted a payload that is too long")
	}
	j.Put(&Packet{Kind: Comfort}) // comfort noise without a level
	if level, on := j.Comfort(); !on || level != 127 {
		t.Errorf("comfort noise of %d, %v", level, on)
	}
	j.Put(&Packet{Seq: 1, Kind: Comfort, Payload: []byte{0x80 | 50, 1, 2}})
	if level, on := j.Comfort(); !on || level != 50 {
		t.Errorf("comfort noise of %d, %v", level, on)
	}
}

func TestNextRun(t *testing.T) {
	j := New()
	j.Put(&Packet{Payload: make([]byte, 40)})
	j.Put(&Packet{Seq: 2, Timestamp: 60, Payload: make([]byte, 80)})
	var got [][2]int
	for from, to := j.NextRun(0); from < FrameLen; from, to = j.NextRun(to) {
		got = append(got, [2]int{from, to})
	}
	if len(got) != 2 || got[0] != [2]int{0, 40} || got[1] != [2]int{60, 140} {
		t.Errorf("%v", got)
	}
}

// TestComfortNoiseWithStoppedClock sends comfort noise whose timestamp stands still or is old, and checks that
// silence is still released in time.
func TestComfortNoiseWithStoppedClock(t *testing.T) {
	for name, stamp := range map[string]uint32{"stopped": 160 * 20, "old": 1 << 31} {
		s, j := &testSender{ssrc: 1, ptime: 20}, New()
		packets := s.packets(0, 20)
		for at := 400 * ms; at < 20*time.Second; at += 200 * ms {
			packets = append(packets, &Packet{At: at, SSRC: 1, Seq: s.seq, Timestamp: stamp, Payload: []byte{60}, Kind: Comfort})
			s.seq++
		}
		packets = append(packets, s.packets(20*time.Second, 50)...)
		all := play(j, packets, 21*time.Second)
		if n := len(all); n < 1040 || n > 1052 {
			t.Errorf("%s: %d frames in the time of 1050", name, n)
		}
		if n := len(values(all)); n < 70 {
			t.Errorf("%s: %d of 70 frames received", name, n)
		}
	}
}

// TestSpeechOnsetWithStoppedClock stops the sender's clock during silence, and checks that no packet counts as late
// if the speech begins with a marker.
func TestSpeechOnsetWithStoppedClock(t *testing.T) {
	for silence := 40 * ms; silence <= 1200*ms; silence += 40 * ms {
		s, j := &testSender{ssrc: 1, ptime: 20}, New()
		packets := s.packets(0, 50)
		packets = append(packets, &Packet{At: time.Second, SSRC: 1, Seq: s.seq, Timestamp: s.ts, Payload: []byte{60}, Kind: Comfort})
		s.seq++
		for i := range 50 {
			p := s.packet(time.Second + silence + time.Duration(i)*20*ms)
			p.Marker = i == 0
			packets = append(packets, p)
		}
		all := play(j, packets, 3500*ms)
		if n := len(values(all)); n != 100 || j.Stats().Late != 0 {
			t.Errorf("after %v of silence got %d frames of 100: %+v", silence, n, j.Stats())
		}
	}
}
