package rtp

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
)

// newManualSession returns a session without a running clock. The test calls Tick instead.
func newManualSession(tb testing.TB) *Session {
	tb.Helper()
	tr := newTransport(tb, &mediaclock.Clock{})
	s, err := tr.Listen()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close(); tr.Close() })
	return s
}

// sentPacket is a packet that the phone received.
type sentPacket struct {
	packet

	at time.Duration // time of sending, rounded to half a frame
}

// run calls the session for n frames in steps of half a frame, and returns what the phone received.
func (p *phone) run(s *Session, n int) (all []sentPacket) {
	p.t.Helper()
	before := s.Stats().Sent
	for i := range 2 * n {
		at := p.at
		if i%2 == 0 {
			s.Tick(time.Time{}.Add(at))
		} else {
			midframe{s}.Tick(time.Time{}.Add(at))
		}
		p.at += media.FrameTime / 2
		for ; before < s.Stats().Sent; before++ {
			b := make([]byte, maxPacket)
			_ = p.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			n, _, err := p.conn.ReadFrom(b)
			if err != nil {
				p.t.Fatal(err)
			}
			got, ok := parse(&rtp.Header{}, b[:n])
			if !ok {
				p.t.Fatalf("sent %x", b[:n])
			}
			all = append(all, sentPacket{got, at})
		}
	}
	return all
}

// TestPacketTime checks that packets are sent evenly with the negotiated packet time, that nothing is dropped, and
// that the feed gets the time at which each frame is sent.
func TestPacketTime(t *testing.T) {
	for _, row := range []struct {
		ptime, want time.Duration
	}{{0, 20 * ms}, {10 * ms, 10 * ms}, {20 * ms, 20 * ms}, {30 * ms, 30 * ms}, {40 * ms, 40 * ms}, {50 * ms, 50 * ms}, {60 * ms, 60 * ms}, {25 * ms, 20 * ms}, {200 * ms, 60 * ms}, {5 * ms, 20 * ms}, {-ms, 20 * ms}} {
		s := newManualSession(t)
		p := newPhone(t, s)
		s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, Ptime: row.ptime})
		n := byte(0)
		var leaves []time.Time
		s.Play(media.FeedFunc(func(f media.Frame, due time.Time) {
			codec.PCMU{}.Decode(f, slices.Repeat([]byte{n}, len(f)))
			leaves = append(leaves, due)
			n++
		}))
		got := p.run(s, 60)
		size := int(row.want * Rate / time.Second)
		if want := 60 * 20 * ms / row.want; len(got) < int(want)-1 || len(got) > int(want) {
			t.Errorf("ptime %v: %d packets", row.ptime, len(got))
		}
		at := 0
		for i, g := range got {
			if len(g.payload) != size || g.marker != (i == 0) || g.ts != got[0].ts+uint32(i*size) || g.seq != got[0].seq+uint16(i) {
				t.Fatalf("ptime %v: packet %d is %d bytes, %+v", row.ptime, i, len(g.payload), g)
			}
			if i > 0 && g.at-got[i-1].at != row.want {
				t.Fatalf("ptime %v: packet %d left %v after the one before", row.ptime, i, g.at-got[i-1].at)
			}
			for _, b := range g.payload {
				if want := byte(at / frameLen); b != want && want != 0x7f {
					t.Fatalf("ptime %v: byte %d is of frame %d", row.ptime, at, b)
				}
				if due := leaves[at/frameLen].Sub(time.Time{}); at%frameLen == 0 && due != g.at {
					t.Fatalf("ptime %v: frame %d left at %v, want %v", row.ptime, at/frameLen, g.at, due)
				}
				at++
			}
		}
	}
}

// TestSkippedTicks checks that the RTP clock advances by skipped ticks, and that half a packet from before the gap is
// dropped.
func TestSkippedTicks(t *testing.T) {
	s := newManualSession(t)
	p := newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMA{}, PayloadType: 8, Ptime: 40 * ms})
	before := p.run(s, 3)
	p.at += 200 * ms
	after := p.run(s, 2)
	if len(before) != 1 || len(after) != 1 {
		t.Fatalf("%d and %d packets", len(before), len(after))
	}
	if step := after[0].ts - before[0].ts; step != 13*uint32(frameLen) {
		t.Errorf("the RTP clock moved by %d", step)
	}
	if n := s.Stats().Underruns; n != 10 {
		t.Errorf("%d underruns", n)
	}
}

func TestRateIsFixed(t *testing.T) {
	for _, row := range [][2]codec.Codec{{codec.G722{}, codec.PCMU{}}, {codec.PCMA{}, codec.G722{}}} {
		s := newManualSession(t)
		p := newPhone(t, s)
		rate := row[0].Rate()
		for i, c := range []codec.Codec{row[0], row[1], row[0]} {
			s.Start(Params{Remote: p.addr(), Codec: c, PayloadType: c.PayloadType()})
			if s.Rate() != rate {
				t.Fatalf("%s: rate %d", c.Name(), s.Rate())
			}
			s.Play(mediatest.Tone(440))
			dec := c.NewDecoder()
			var decoded []int16
			for _, g := range p.run(s, 30) {
				pcm := make([]int16, 320)
				if g.pt != c.PayloadType() {
					t.Fatalf("payload type %d", g.pt)
				}
				decoded = append(decoded, pcm[:dec.Decode(pcm, g.payload)]...)
			}
			if n := 30 * media.FrameLen(c.Rate()); len(decoded) != n {
				t.Fatalf("%s: %d samples sent", c.Name(), len(decoded))
			}
			if got := tone.Share(decoded[len(decoded)/3:], c.Rate(), 440); got < 0.95 {
				t.Errorf("leg %d, %s: 440 Hz has %.2f of the power", i, c.Name(), got)
			}
		}
	}
}

func TestNoTarget(t *testing.T) {
	s := newManualSession(t)
	p := newPhone(t, s)
	s.Start(Params{Codec: codec.PCMU{}})
	if all := p.run(s, 3); len(all) != 0 || s.Stats().Unsent != 3 {
		t.Errorf("%d packets sent, %+v", len(all), s.Stats())
	}
	for range 2 {
		s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}})
		if all := p.run(s, 3); len(all) != 3 || !all[0].marker || all[1].marker || all[2].marker {
			t.Errorf("%+v", all)
		}
		s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, Mute: true})
		if all := p.run(s, 3); len(all) != 0 || s.Stats().Unsent != 3 {
			t.Errorf("%d packets sent while muted, %+v", len(all), s.Stats())
		}
	}
}
