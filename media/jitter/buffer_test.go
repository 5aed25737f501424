package jitter

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

// testSender fills each frame with a number that identifies the frame when the buffer releases it.
type testSender struct {
	ssrc  uint32
	seq   uint16
	ts    uint32
	ptime int // packet time in ms
}

// packet returns the next packet, with the arrival time at. The frames are numbered from 1 to 250, then from 1 again.
func (s *testSender) packet(at time.Duration) *Packet {
	p := &Packet{At: at, SSRC: s.ssrc, Seq: s.seq, Timestamp: s.ts, Payload: make([]byte, s.ptime*8)}
	for i := range p.Payload {
		p.Payload[i] = 1 + byte((int(s.ts)/FrameLen+i/FrameLen)%250)
	}
	s.seq++
	s.ts += uint32(len(p.Payload))
	return p
}

// packets returns n packets. The first arrives at a given time, and each further packet one ptime later.
func (s *testSender) packets(from time.Duration, n int) (all []*Packet) {
	for i := range n {
		all = append(all, s.packet(from+time.Duration(i*s.ptime)*ms))
	}
	return all
}

// released is one frame from the buffer.
type released struct {
	at    time.Duration
	whole bool
	value byte // first byte of the frame that was received; 0 if none was
}

func takeAll(j *Buffer, now time.Duration) (all []released) {
	for {
		r := j.Ready(now)
		if r == Wait {
			return all
		}
		out := released{at: now, whole: r == Complete}
		if i, _ := j.NextRun(0); i < FrameLen {
			var frame [FrameLen]byte
			j.Copy(frame[:])
			out.value = frame[i]
		}
		j.Advance()
		all = append(all, out)
	}
}

// play puts packets into a buffer. It reads the buffer after every arrival and every 20 ms, as Session does.
func play(j *Buffer, packets []*Packet, until time.Duration) (all []released) {
	next := time.Duration(0)
	for tick := time.Duration(0); tick <= until; tick += 20 * ms {
		for int(next) < len(packets) && packets[next].At <= tick {
			j.Put(packets[next])
			all = append(all, takeAll(j, packets[next].At)...)
			next++
		}
		all = append(all, takeAll(j, tick)...)
	}
	return all
}

// values returns the numbers of the complete frames.
func values(all []released) (v []byte) {
	for _, r := range all {
		if r.whole {
			v = append(v, r.value)
		}
	}
	return v
}

func gaps(all []released) (n int) {
	begun := false
	for _, r := range all {
		begun = begun || r.whole
		if begun && !r.whole {
			n++
		}
	}
	return n
}

func TestJitterInOrderAtOnce(t *testing.T) {
	for _, ptime := range []int{10, 20, 30, 40, 60} {
		// The sequence number and the timestamp wrap around during the test.
		s := &testSender{ssrc: 1, seq: 65500, ts: math.MaxUint32 - 160*200 + 1, ptime: ptime}
		s.ts -= s.ts % uint32(FrameLen)
		j := New()
		all := play(j, s.packets(100*ms, 9900/ptime), 9*time.Second)
		for i, r := range all[10:] {
			if !r.whole {
				t.Fatalf("ptime %d: frame %d at %v has gaps", ptime, i+10, r.at)
			}
		}
		if j.late != 0 || j.skips != 0 || j.seqs.missing() != 0 || j.seqs.dup != 0 {
			t.Errorf("ptime %d: late %d, skips %d, lost %d, dup %d", ptime, j.late, j.skips, j.seqs.missing(), j.seqs.dup)
		}
		// Each frame is released together with the packet that completes it.
		for i, r := range all {
			if r.whole && r.at%(10*ms) != 0 {
				t.Errorf("ptime %d: frame %d came at %v", ptime, i, r.at)
			}
		}
	}
}

func TestJitterEdgeCases(t *testing.T) {
	stream := func(n int) (s *testSender, packets []*Packet) {
		s = &testSender{ssrc: 1, ts: 0, ptime: 20}
		packets = append(packets, s.packets(0, n)...)
		return s, packets
	}
	t.Run("reorder", func(t *testing.T) {
		_, p := stream(10)
		p[4], p[5] = p[5], p[4]
		p[4].At, p[5].At = p[5].At, p[4].At
		all := play(New(), p, 180*ms)
		for i, v := range values(all) {
			if v != byte(i+1) {
				t.Fatalf("released %v", values(all))
			}
		}
	})
	t.Run("loss", func(t *testing.T) {
		_, p := stream(10)
		p = append(p[:4], p[5:]...)
		j := New()
		all := play(j, p, 180*ms)
		if gaps(all) != 1 || len(values(all)) != 9 || j.seqs.missing() != 1 {
			t.Errorf("%d gaps, %d frames, %d lost", gaps(all), len(values(all)), j.seqs.missing())
		}
		for _, r := range all {
			if !r.whole && r.at < 80*ms+minDepth {
				t.Errorf("the missing frame was released at %v", r.at)
			}
		}
	})
	t.Run("duplicates", func(t *testing.T) {
		_, p := stream(10)
		var twice []*Packet
		for _, x := range p {
			y := *x
			twice = append(twice, x, &y)
		}
		j := New()
		if all := play(j, twice, 180*ms); len(values(all)) != 10 || j.seqs.dup != 10 || j.late != 0 {
			t.Errorf("%d frames, %d duplicates, %d late", len(values(all)), j.seqs.dup, j.late)
		}
	})
	t.Run("payload is copied", func(t *testing.T) {
		_, p := stream(2)
		j := New()
		j.Put(p[1])
		p[1].Payload[0] = 99
		var frame [FrameLen]byte
		j.Copy(frame[:])
		if frame[0] != 2 {
			t.Errorf("the next frame is %d", frame[0])
		}
	})
	t.Run("other stream", func(t *testing.T) {
		_, p := stream(20)
		s := &testSender{ssrc: 2, seq: 40000, ts: 160 * 100, ptime: 20}
		p = append(p, s.packets(20*20*ms, 20)...)
		j := New()
		if all := play(j, p, 780*ms); len(values(all)) != 40 || gaps(all) != 0 || j.skips != 1 {
			t.Errorf("%d frames, %d gaps, %d timelines", len(values(all)), gaps(all), j.skips)
		}
	})
	t.Run("timestamp jumps", func(t *testing.T) {
		for _, jump := range []uint32{160 * 1000, ^uint32(160 * 1000), 1 << 31} {
			s, p := stream(20)
			s.ts += jump / uint32(FrameLen) * uint32(FrameLen)
			p = append(p, s.packets(20*20*ms, 40)...)
			all := play(New(), p, 1180*ms)
			if n := len(values(all)); n < 54 {
				t.Errorf("jump %d: %d of 60 frames", int32(jump), n)
			}
		}
	})
	t.Run("pause", func(t *testing.T) {
		// The sender pauses for 10 s while its RTP clock continues or stops.
		for name, clock := range map[string]uint32{"running": 160 * 500, "stopped": 0} {
			s, p := stream(20)
			s.ts += clock
			p = append(p, s.packets(520*20*ms, 40)...)
			all := play(New(), p, 560*20*ms)
			if n := len(values(all)); n < 54 {
				t.Errorf("%s: %d of 60 frames", name, n)
			}
			if n := len(all); n < 550 || n > 562 {
				t.Errorf("%s: %d frames in all", name, n)
			}
		}
	})
	t.Run("backlog is not replayed", func(t *testing.T) {
		// The network holds back all packets for 10 s and then delivers them at once.
		_, p := stream(600)
		for i := 20; i < 520; i++ {
			p[i].At = 520 * 20 * ms
		}
		all := play(New(), p, 600*20*ms)
		if n := len(all); n > 605 {
			t.Errorf("%d frames in the time of 600", n)
		}
		tail := values(all)
		if len(tail) < 95 || tail[len(tail)-1] != 1+byte(599%250) {
			t.Errorf("%d frames, the last is %d", len(tail), tail[len(tail)-1])
		}
	})
	t.Run("path becomes longer", func(t *testing.T) {
		_, p := stream(200)
		for _, x := range p[100:] {
			x.At += 200 * ms
		}
		all := play(New(), p, 199*20*ms+200*ms)
		if n := len(values(all)); n < 190 {
			t.Errorf("%d of 200 frames", n)
		}
	})
	t.Run("comfort noise", func(t *testing.T) {
		_, p := stream(5)
		p = append(p, &Packet{At: 100 * ms, SSRC: 1, Seq: 5, Timestamp: 160 * 5, Payload: []byte{60}, Kind: Comfort})
		j := New()
		if all := play(j, p, time.Second); !j.silent || len(values(all)) != 5 || len(all) < 45 {
			t.Errorf("comfort %v, %d whole of %d frames", j.silent, len(values(all)), len(all))
		}
	})
	t.Run("reader pauses", func(t *testing.T) {
		_, p := stream(200)
		j := New()
		for _, x := range p {
			j.Put(x)
		}
		all := takeAll(j, p[199].At)
		if v := values(all); len(v) < 40 || v[len(v)-1] != 200 {
			t.Errorf("%d frames", len(v))
		}
	})
}

// TestJitterDrift runs a sender whose clock drifts for an hour. It checks that no frame is lost, delayed or invented.
func TestJitterDrift(t *testing.T) {
	for _, ppm := range []int{-200, 50, 200} {
		s := &testSender{ssrc: 1, ptime: 20}
		j := New()
		const n = 180_000
		got, bad := 0, 0
		for i := range n {
			at := time.Duration(i) * 20 * ms
			at -= at * time.Duration(ppm) / 1_000_000
			at += time.Duration(i*7%23) * ms // adds jitter
			j.Put(s.packet(at))
			for _, r := range takeAll(j, at) {
				if r.whole {
					got++
				} else {
					bad++
				}
			}
		}
		if got < n-5 || bad > 5 || j.late != 0 || j.skips != 0 {
			t.Errorf("%d ppm: %d of %d frames, %d gaps, %d late, %d timelines", ppm, got, n, bad, j.late, j.skips)
		}
	}
}

// TestJitterAnyNetwork checks that, if no delay exceeds the depth, every delivered frame is released once, in order
// and in real time.
func TestJitterAnyNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &testSender{
			ssrc: rapid.Uint32().Draw(t, "ssrc"), seq: rapid.Uint16().Draw(t, "seq"),
			ts: rapid.Uint32().Draw(t, "ts") / uint32(FrameLen) * uint32(FrameLen), ptime: 20,
		}
		base := s.ts
		n := rapid.IntRange(1, 200).Draw(t, "n")
		type flight struct {
			p    *Packet
			lost bool
		}
		var flights []flight
		for i := range n {
			at := time.Duration(i)*20*ms + time.Duration(rapid.IntRange(0, 45).Draw(t, "delay"))*ms
			p := s.packet(at)
			// The value is the number of the frame, counted from the first packet.
			for k := range FrameLen {
				p.Payload[k] = 1 + byte((int(p.Timestamp-base)/FrameLen)%250)
			}
			flights = append(flights, flight{p, i > 0 && rapid.IntRange(0, 9).Draw(t, "loss") == 0})
			if rapid.IntRange(0, 9).Draw(t, "dup") == 0 {
				twin := *p
				twin.At += 10 * ms
				flights = append(flights, flight{&twin, false})
			}
		}
		flights[0].p.At = 0
		sent := map[byte]bool{}
		var packets []*Packet
		for _, f := range flights {
			if !f.lost {
				packets = append(packets, f.p)
				sent[f.p.Payload[0]] = true
			}
		}
		for i := range packets { // in the order of arrival
			for k := i; k > 0 && packets[k].At < packets[k-1].At; k-- {
				packets[k], packets[k-1] = packets[k-1], packets[k]
			}
		}
		end := time.Duration(n)*20*ms + 200*ms
		j := New()
		all := play(j, packets, end)
		got := values(all)
		for i, v := range got {
			if i > 0 && v <= got[i-1] {
				t.Fatalf("frame %d after %d", v, got[i-1])
			}
			if !sent[v] {
				t.Fatalf("lost frame %d was released", v)
			}
		}
		if len(got) != len(sent) {
			t.Fatalf("%d frames of %d: late %d, timelines %d", len(got), len(sent), j.late, j.skips)
		}
		if len(all) > n+12 || len(all) < n {
			t.Fatalf("%d frames in the time of %d", len(all), n)
		}
	})
}

func TestSequence(t *testing.T) {
	var q sequence
	for i := range 200_000 {
		if i%10 == 3 {
			continue
		}
		if !q.observe(1, uint16(65000+i)) {
			t.Fatalf("packet %d counts as a duplicate", i)
		}
	}
	if n := q.missing(); n != 20_000 {
		t.Errorf("%d missing", n)
	}
	if q.observe(1, uint16(q.highest)) || q.observe(1, uint16(q.highest-10)) || q.dup != 2 {
		t.Error("observe accepted a duplicate")
	}
	q.observe(2, 7)
	if n := q.missing(); n != 20_000 {
		t.Errorf("%d missing after a new stream", n)
	}
}

// TestKeySequenceNumbers checks that packets of kind Key do not move the timeline, and that their sequence numbers
// count only if they have the SSRC of the audio.
func TestKeySequenceNumbers(t *testing.T) {
	for name, row := range map[string]struct {
		ssrc uint32
		seq  uint16
		lost int64
	}{
		"same sequence":           {1, 11, 0},
		"sequence of its own":     {2, 500, 1},
		"other sequence and SSRC": {2, 40000, 1},
	} {
		j := New()
		j.Start(0)
		j.Put(&Packet{SSRC: 1, Seq: 10, Timestamp: 160, Payload: make([]byte, 160)})
		j.Put(&Packet{SSRC: row.ssrc, Seq: row.seq, Timestamp: 99999, Payload: make([]byte, 4), Kind: Key})
		j.Put(&Packet{At: 20 * ms, SSRC: 1, Seq: 12, Timestamp: 320, Payload: make([]byte, 160)})
		if got := j.seqs.missing(); got != row.lost || j.skips != 0 || j.late != 0 {
			t.Errorf("%s: %d lost, %d resynced, %d late", name, got, j.skips, j.late)
		}
	}
}
