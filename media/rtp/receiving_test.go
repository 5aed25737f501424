package rtp

import (
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/relay"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/tone"
)

// flight is a packet in virtual time.
type flight struct {
	at time.Duration // time of arrival
	packet
}

// receivedFrame is a frame that the reader returned.
type receivedFrame struct {
	at       time.Duration
	measured bool
	id       int // number of its packet, if the packet arrived and was marked
	level    float64
}

// receiveSim is the receiving side of a session in virtual time. It receives packets on the ticks of the clock, and
// runs the reader after each tick.
type receiveSim struct {
	s        *Session
	now      time.Duration
	received []receivedFrame

	flights []flight            // packets that have not arrived yet
	each    func(f media.Frame) // called for each frame; may be nil
	frame   media.Frame
	wire    [maxPacket]byte
	marks   map[int16]int
}

func newReceiveSim(t *testing.T, p Params) *receiveSim {
	t.Helper()
	s := newManualSession(t)
	if p.Codec == nil {
		p.Codec = codec.PCMU{}
	}
	s.Start(p)
	s.reader.Start(s.Rate(), 0)
	s.reading.Store(true)
	l := &receiveSim{s: s, frame: make(media.Frame, media.FrameLen(s.Rate())), marks: map[int16]int{}}
	decoder := codec.PCMU{}.NewDecoder()
	for i := range 100 {
		var pcm [1]int16
		decoder.Decode(pcm[:], []byte{byte(i)})
		l.marks[pcm[0]] = i
	}
	return l
}

// mark writes a number into the last bytes of a G.711 payload.
func mark(payload []byte, id int) {
	n := len(payload)
	payload[n-3], payload[n-2], payload[n-1] = byte(id/10_000%100), byte(id/100%100), byte(id%100)
}

// speech returns n packets of 20 ms, marked with the numbers from id on.
func speech(from time.Duration, id, n int, ssrc uint32) (all []flight) {
	for i := range n {
		p := packet{ssrc: ssrc, seq: uint16(id + i), ts: uint32((id + i) * frameLen), payload: make([]byte, frameLen)}
		for k := range p.payload {
			p.payload[k] = 0xff - byte(i*7+k)%16
		}
		mark(p.payload, id+i)
		all = append(all, flight{from + time.Duration(i)*media.FrameTime, p})
	}
	return all
}

// run plays packets in the order of their arrival, until a time.
func (l *receiveSim) run(flights []flight, until time.Duration) {
	l.flights = append(l.flights, flights...)
	slices.SortStableFunc(l.flights, func(a, b flight) int { return int(a.at - b.at) })
	for ; l.now <= until; l.now += mediaclock.Tick {
		for len(l.flights) > 0 && l.flights[0].at <= l.now {
			l.receive(l.flights[0])
			l.flights = l.flights[1:]
		}
		l.s.checkTimeout(l.s.currentParams(l.s.opened.Add(l.now)), l.now)
		for { // the same loop as in ReadFrame
			l.s.reader.Drain(&l.s.in)
			if !l.s.reader.Next(l.frame, l.now, l.s) {
				break
			}
			l.record()
		}
	}
	l.s.timeouts.Wait()
}

func (l *receiveSim) receive(f flight) {
	putHeader(l.wire[:], f.packet)
	n := headerLen + copy(l.wire[headerLen:], f.payload)
	l.s.receive(l.wire[:n], netip.AddrPortFrom(loopback(), 4000), l.s.opened.Add(f.at))
}

func (l *receiveSim) record() {
	if l.each != nil {
		l.each(l.frame)
		return
	}
	_, measured := l.s.reader.Arrived()
	h := receivedFrame{at: l.now, measured: measured, level: tone.Level(l.frame)}
	if n := len(l.frame); h.measured {
		h.id = l.marks[l.frame[n-3]]*10_000 + l.marks[l.frame[n-2]]*100 + l.marks[l.frame[n-1]]
	}
	l.received = append(l.received, h)
}

// ids returns the packet numbers of the frames that arrived.
func (l *receiveSim) ids() (all []int) {
	for _, h := range l.received {
		if h.measured {
			all = append(all, h.id)
		}
	}
	return all
}

// TestImpairedNetwork runs 60 s with 5% loss in bursts of 3, 40 ms of jitter, 2% reordering and 1% duplicates. It
// checks that every received packet is played once and in order, and 95% of them within 120 ms.
func TestImpairedNetwork(t *testing.T) {
	for _, path := range []relay.Path{
		{Loss: 0.05, Burst: 3, Jitter: 40 * ms, Reorder: 0.02, Duplicate: 0.01},
		{Loss: 0.05, Burst: 3, Delay: 10 * ms, Jitter: 14 * ms, Spread: relay.Normal, Reorder: 0.02, Duplicate: 0.01},
		{Loss: 0.2, Burst: 5, Jitter: 40 * ms, Reorder: 0.02, Duplicate: 0.1},
	} {
		for seed := range uint64(5) {
			network := relay.NewFlow(&path, seed)
			var flights []flight
			sent, arrived := map[int]time.Duration{}, 0
			for i, f := range speech(0, 100, 3000, 1) {
				outs := network.Decide(nil, f.at, 172)
				if i == 0 {
					outs = []time.Duration{f.at + path.Delay} // do not lose the packet that starts the stream
				}
				for _, at := range outs {
					flights = append(flights, flight{at, f.packet})
				}
				if len(outs) > 0 {
					sent[100+i] = f.at
					arrived++
				}
			}
			l := newReceiveSim(t, Params{})
			l.run(flights, 61*time.Second)
			ids, late := l.ids(), []time.Duration(nil)
			for i, id := range ids {
				if i > 0 && id <= ids[i-1] {
					t.Fatalf("frame %d after %d", id, ids[i-1])
				}
				if _, ok := sent[id]; !ok {
					t.Fatalf("lost frame %d was played", id)
				}
			}
			if len(ids) != arrived {
				t.Errorf("seed %d: received %d frames of %d: %+v", seed, len(ids), arrived, l.s.Stats())
			}
			for _, h := range l.received {
				if h.measured {
					late = append(late, h.at-sent[h.id])
				}
			}
			slices.Sort(late)
			if p95 := late[len(late)*95/100]; p95 > 120*ms+path.Delay {
				t.Errorf("seed %d: latency of %v at p95", seed, p95)
			}
			if n := len(l.received); n < 3040 || n > 3055 {
				t.Errorf("seed %d: %d frames in 61 s", seed, n)
			}
		}
	}
}

// TestSourceChanges changes SSRC, sequence numbers and timestamps during a call. It checks that no packet is lost and
// that the gap is shorter than 100 ms.
func TestSourceChanges(t *testing.T) {
	first, second := speech(0, 100, 100, 1), speech(2*time.Second, 200, 100, 2)
	for i := range second {
		second[i].seq += 40_000
		second[i].ts += 1 << 30
	}
	l := newReceiveSim(t, Params{})
	l.run(append(first, second...), 4*time.Second-20*ms)
	if ids := l.ids(); len(ids) != 200 || !slices.IsSorted(ids) {
		t.Errorf("received %d frames of 200: %+v", len(ids), l.s.Stats())
	}
	before := time.Duration(0)
	for _, h := range l.received {
		if gap := h.at - before; gap > 100*ms {
			t.Errorf("a gap of %v at %v", gap, h.at)
		}
		before = h.at
	}
	if n := l.s.Stats(); n.Resynced != 1 || n.Concealed != 0 {
		t.Errorf("%+v", n)
	}
}

// TestComfortNoiseOnly sends only comfort noise for 20 s. It checks that the session does not time out, and that
// noise of the signaled level is released in time.
func TestComfortNoiseOnly(t *testing.T) {
	expired := false
	l := newReceiveSim(t, Params{SilenceTimeout: 3 * time.Second, OnTimeout: func() { expired = true }})
	flights := speech(0, 0, 50, 1)
	seq := uint16(50)
	for at := time.Second; at < 21*time.Second; at += 500 * ms {
		p := packet{pt: comfortType, ssrc: 1, seq: seq, ts: uint32(at / time.Second * Rate), payload: []byte{62}}
		flights = append(flights, flight{at, p})
		seq++
	}
	l.run(flights, 21*time.Second)
	if expired {
		t.Error("OnTimeout was called during comfort noise")
	}
	if n := len(l.received); n < 1048 || n > 1052 {
		t.Errorf("%d frames in 21 s", n)
	}
	for _, h := range l.received {
		if h.at > 1200*ms && math.Abs(h.level+62) > 2 {
			t.Fatalf("noise of %.1f dBFS at %v, want -62", h.level, h.at)
		}
	}
	if n := l.s.Stats(); n.Concealed != 0 || n.Lost != 0 {
		t.Errorf("%+v", n)
	}
	l.run(nil, 30*time.Second)
	if !expired {
		t.Error("OnTimeout was not called")
	}
}

// TestOutage holds back all packets for 10 s, and then drops them or delivers them at once. It checks that audio
// resumes within 200 ms and without old frames.
func TestOutage(t *testing.T) {
	for _, delayed := range []bool{false, true} {
		var flights []flight
		for _, f := range speech(0, 0, 1000, 1) {
			switch {
			case f.at < 5*time.Second || f.at >= 15*time.Second:
			case delayed:
				f.at = 15 * time.Second
			default:
				continue
			}
			flights = append(flights, f)
		}
		l := newReceiveSim(t, Params{})
		l.run(flights, 20*time.Second-20*ms)
		resumed := false
		for _, h := range l.received {
			if h.at < 15*time.Second || !h.measured {
				continue
			}
			if old := h.at - time.Duration(h.id)*20*ms; old > 200*ms {
				t.Fatalf("delayed %v: a frame %v old was played at %v", delayed, old, h.at)
			}
			if !resumed && h.at > 15*time.Second+200*ms {
				t.Errorf("delayed %v: resumed at %v", delayed, h.at)
			}
			resumed = true
		}
		if n := len(l.received); !resumed || n < 995 || n > 1002 {
			t.Errorf("delayed %v: resumed %v, %d frames in 20 s", delayed, resumed, n)
		}
	}
}

// TestDrift runs half an hour with a remote clock that is wrong by 200 ppm. It checks that frames follow the local
// clock, that none is delayed for long or concealed, that a tone keeps its frequency, and that frames of speech are
// neither added nor dropped.
func TestDrift(t *testing.T) {
	loudFrame, quiet := make([]byte, frameLen), make([]byte, frameLen)
	pcm := make([]int16, frameLen) // ten periods of the tone
	for k := range pcm {
		pcm[k] = int16(8000 * math.Sin(2*math.Pi*500*float64(k)/Rate))
	}
	codec.PCMU{}.NewEncoder().Encode(loudFrame, pcm)
	for k := range pcm {
		pcm[k] /= 1000
	}
	codec.PCMU{}.NewEncoder().Encode(quiet, pcm)
	for _, ppm := range []int{-200, 200} {
		for _, pauses := range []bool{false, true} {
			const n = 30 * 60 * 50
			l := newReceiveSim(t, Params{})
			crossings, before, frames := 0, int16(0), 0
			loud := 0 // number of speech frames that were sent but not played
			l.each = func(f media.Frame) {
				frames++
				if slices.Max(f[len(f)/2:]) > 4000 {
					loud--
				}
				for _, v := range f {
					if before < 0 && v >= 0 {
						crossings++
					}
					before = v
				}
			}
			step := 20*ms - time.Duration(ppm*20)
			for i := range n {
				p := packet{ssrc: 1, seq: uint16(i), ts: uint32(i * frameLen), payload: quiet}
				if !pauses || i%150 < 100 {
					p.payload = loudFrame
					loud++
				}
				at := time.Duration(i) * step
				l.run([]flight{{at, p}}, at)
				if off := time.Duration(frames)*20*ms - at; off > 200*ms || off < -200*ms {
					t.Fatalf("%d ppm: the frames are %v off after %v", ppm, off, at)
				}
			}
			sum := l.s.Stats()
			if sum.Concealed != 0 || sum.Late != 0 || sum.Resynced != 0 {
				t.Errorf("%d ppm: %+v", ppm, sum)
			}
			if repairs := sum.Added + sum.Skipped; repairs < 10 || repairs > 20 || sum.Added > 0 && sum.Skipped > 0 {
				t.Errorf("%d ppm: %d frames added, %d dropped", ppm, sum.Added, sum.Skipped)
			}
			if pauses && (loud < -2 || loud > 2) {
				t.Errorf("%d ppm: %d frames of speech were dropped", ppm, loud)
			}
			if !pauses {
				hz := float64(crossings) / (float64(frames) / 50)
				if math.Abs(hz-500) > 2.5 {
					t.Errorf("%d ppm: a tone of 500 Hz became %.2f", ppm, hz)
				}
			}
		}
	}
}

func TestPacketsOf30ms(t *testing.T) {
	for _, c := range []codec.Codec{codec.PCMU{}, codec.G722{}} {
		l := newReceiveSim(t, Params{Codec: c, PayloadType: c.PayloadType()})
		encoder := c.NewEncoder()
		rate := c.Rate()
		sine := tone.Sine(rate, 3*rate, 500, 0.3)
		var flights []flight
		for i := range 100 {
			p := packet{pt: c.PayloadType(), ssrc: 1, seq: uint16(i), ts: uint32(i * 240), payload: make([]byte, 240)}
			encoder.Encode(p.payload, sine[i*rate*3/100:(i+1)*rate*3/100])
			if i%10 != 5 {
				flights = append(flights, flight{time.Duration(i) * 30 * ms, p})
			}
		}
		var received []int16
		l.each = func(f media.Frame) { received = append(received, f...) }
		l.run(flights, 3*time.Second)
		if p := tone.Power(received[rate/2:2*rate+rate/2], rate, 500); p < 0.08 {
			t.Errorf("%s: the tone has a power of %.3f, want 0.09", c.Name(), p)
		}
		if n := l.s.Stats(); n.Lost != 10 || n.Concealed < 15 || n.Concealed > 20 {
			t.Errorf("%s: %+v", c.Name(), n)
		}
	}
}

func TestNoiseAfterStreamEnds(t *testing.T) {
	l := newReceiveSim(t, Params{})
	encoder := codec.PCMU{}.NewEncoder()
	var flights []flight
	pcm := make([]int16, frameLen)
	state := uint32(1)
	for i := range 150 {
		for k := range pcm {
			state = state*1664525 + 1013904223
			pcm[k] = int16(state>>16) >> 9 // noise of about -59 dBFS
		}
		p := packet{ssrc: 1, seq: uint16(i), ts: uint32(i * frameLen), payload: make([]byte, frameLen)}
		encoder.Encode(p.payload, pcm)
		flights = append(flights, flight{time.Duration(i) * 20 * ms, p})
	}
	l.run(flights, 6*time.Second)
	for _, h := range l.received {
		if h.at > 500*ms && (h.level < -63 || h.level > -49) {
			t.Fatalf("%.1f dBFS at %v", h.level, h.at)
		}
	}
}
