package rtp

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/parley-voice/parley/media"
)

// A sender is the state of the outgoing stream.
type sender struct {
	seq      uint16
	ts, ssrc uint32
	begun    bool
	last     time.Time      // due of the last frame
	aimed    netip.AddrPort // the socket aims there
	pcm      [frameLen]int16
	wire     [headerLen + frameLen]byte
}

// init begins the stream at random numbers (RFC 3550 section 5.1).
func (o *sender) init() {
	o.seq, o.ts, o.ssrc = uint16(rand.Uint32()), rand.Uint32(), rand.Uint32() //nolint:gosec // the top half falls off; no secret is kept
}

// send fills, encodes and sends the frame that is due. Time that the clock had
// to skip passes on the RTP clock too, so that the party does not hear later
// and later.
func (s *Session) send(p *Params, due time.Time) {
	o := &s.sender
	if o.begun {
		frames := int64((due.Sub(o.last) + media.FrameTime/2) / media.FrameTime)
		o.ts += uint32(frames * int64(frameLen)) //nolint:gosec // wraps on a circle
		if frames > 1 {
			s.count.underruns.Add(frames - 1)
		}
	}
	o.last = due
	marker := !o.begun
	o.begun = true
	if feed := s.feed.Load(); feed != nil {
		(*feed).FillFrame(o.pcm[:], due)
	} else {
		clear(o.pcm[:])
	}
	to := s.receiver.latch.target()
	if p.Mute || !to.IsValid() {
		return
	}
	if to != o.aimed {
		s.socket.aim(to)
		o.aimed = to
	}
	o.seq++
	putHeader(o.wire[:], packet{marker: marker, pt: p.PayloadType, seq: o.seq, ts: o.ts, ssrc: o.ssrc})
	n := p.Codec.Encode(o.wire[headerLen:], o.pcm[:])
	if s.socket.send(o.wire[:headerLen+n]) {
		s.count.sent.Add(1)
	} else {
		s.count.unsent.Add(1)
	}
}
