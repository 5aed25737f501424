package rtp

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/srtp"
)

// maxPending is the maximum length of audio that waits for its packet, in bytes: 60 ms and the next frame.
const maxPending = 4 * frameLen

type sender struct {
	seq     uint16
	ssrc    uint32
	ts      uint32        // timestamp of the frame that is due
	params  *activeParams // parameters of the last frame
	started bool
	marker  bool           // marker bit of the next audio packet
	last    time.Time      // time at which the last frame was due
	next    time.Time      // earliest time of the next packet
	event   uint32         // timestamp of the digit that is being sent
	pending int            // bytes of audio in wire that wait for their packet
	target  netip.AddrPort // target that is set on the socket
	pcm     [maxFrame]int16
	wire    [headerLen + maxPending]byte
	sealed  [headerLen + maxPending + srtp.Overhead]byte
}

// init sets random start values (RFC 3550 section 5.1).
func (o *sender) init() {
	o.seq, o.ts, o.ssrc = uint16(rand.Uint32()), rand.Uint32(), rand.Uint32() //nolint:gosec // truncated; not a secret
	o.marker = true
}

// send encodes the frame that is due, and sends its packet if the packet is complete. Skipped time also advances the
// RTP timestamp, so that the delay does not grow.
func (s *Session) send(p *activeParams, due time.Time) {
	o := &s.sender
	o.update(p)
	if o.started {
		frames := int64((due.Sub(o.last) + media.FrameTime/2) / media.FrameTime)
		if frames > 1 {
			s.count.underruns.Add(frames - 1)
			o.pending = 0 // audio from before the gap is too old
		}
		o.ts += uint32(frames * int64(frameLen)) //nolint:gosec // wraps
	}
	o.last, o.started = due, true
	pcm := o.pcm[:media.FrameLen(p.rate)]
	if feed := s.feed.Load(); feed != nil {
		(*feed).FillFrame(pcm, o.departure(p, due))
	} else {
		clear(pcm)
	}
	if p.Mute {
		o.pending, o.marker = 0, true
		return
	}
	if !s.setTarget() {
		s.count.unsent.Add(1)
		o.pending, o.marker = 0, true
		return
	}
	if step := s.dialer.Next(); step.Busy {
		if p.KeyType != 0 && !p.InBand {
			s.sendEvent(p, step)
			return
		}
		dtmf.Tone(pcm, p.rate, step)
	}
	o.pending += p.encoder.Encode(o.wire[headerLen+o.pending:], pcm)
	s.sendAudio(p, due)
}

// update applies new parameters. Audio in another format that waits for its packet is dropped.
func (o *sender) update(p *activeParams) {
	if o.params != nil && (o.params.PayloadType != p.PayloadType || o.params.encoder != p.encoder) {
		o.pending = 0
	}
	o.params = p
}

// departure returns the time at which the beginning of the frame is sent. This is due, or later if the packet needs
// further frames or an earlier packet is waiting.
func (o *sender) departure(p *activeParams, due time.Time) time.Time {
	n := int(p.ptime * Rate / time.Second)
	at := due
	if lacks := n - o.pending%n - frameLen; lacks > 0 {
		at = due.Add(time.Duration((lacks+frameLen-1)/frameLen) * media.FrameTime)
	}
	if o.next.After(at) {
		return o.next
	}
	return at
}

// setTarget sets the target of the socket. It returns false if no target address is known.
func (s *Session) setTarget() bool {
	to := s.receiver.latch.Target()
	if to != s.sender.target {
		s.socket.SetTarget(to)
		s.sender.target = to
	}
	return to.IsValid()
}

func (s *Session) sendAudio(p *activeParams, due time.Time) {
	o := &s.sender
	n := int(p.ptime * Rate / time.Second)
	if o.pending < n || due.Before(o.next) {
		return
	}
	o.next = due.Add(p.ptime)
	s.sendPacket(packet{marker: o.marker, pt: p.PayloadType, ts: o.ts + uint32(frameLen-o.pending)}, n) //nolint:gosec // wraps
	o.marker = false
	o.pending = copy(o.wire[headerLen:], o.wire[headerLen+n:headerLen+o.pending])
}

func (s *Session) sendPacket(head packet, n int) {
	o := &s.sender
	o.seq++
	head.seq, head.ssrc = o.seq, o.ssrc
	putHeader(o.wire[:], head)
	wire, ok := o.params.encrypt(o.sealed[:0], o.wire[:headerLen+n])
	if ok && s.socket.Send(wire) {
		s.count.sent.Add(1)
		s.control.countSent(n)
	} else {
		s.count.unsent.Add(1)
	}
}

// midframe sends packets in the middle between two frames, for packet times that are not a multiple of a frame.
type midframe struct{ *Session }

func (m midframe) Tick(due time.Time) {
	if !m.IsIdle() {
		m.sendAudio(m.sender.params, due)
	}
}

// IsIdle implements mediaclock.Split.
func (m midframe) IsIdle() bool {
	p := m.sender.params
	return p == nil || m.sender.pending == 0 || p.ptime%media.FrameTime == 0
}
