package leg

import (
	"fmt"
	"io"
	"time"

	"github.com/pion/rtp"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/jitter"
	"github.com/parley-voice/parley/media/opus"
	"github.com/parley-voice/parley/media/rtcp"
	"github.com/parley-voice/parley/media/stream"
)

// The formats of what is heard, by place in hearing.plain; Opus comes before, and
// keys are not heard but pressed.
const (
	formatOpus = 0
	formatKey  = 255
)

// A hearing decodes what the party sends, for the reader alone.
type hearing struct {
	opus  *opus.Decoder
	plain []codec.Decoder // by format-1
}

func newHearing() (*hearing, error) {
	o, err := opus.New()
	if err != nil {
		return nil, err
	}
	h := &hearing{opus: o}
	for _, c := range codec.All() {
		h.plain = append(h.plain, codec.DecoderAt(c, Rate))
	}
	return h, nil
}

// formatOf is the format of a codec, by its encoding name.
func formatOf(name string) (uint8, bool) {
	if name == "opus" {
		return formatOpus, true
	}
	if name == "telephone-event" {
		return formatKey, true
	}
	for i, c := range codec.All() {
		if c.Name() == name {
			return uint8(i + 1), true
		}
	}
	return 0, false
}

// Keep implements stream.Keeper.
func (h *hearing) Keep(p *jitter.Packet) {
	if p.Kind == jitter.Speech && p.Format == formatOpus {
		h.opus.Keep(p)
	}
}

// DecodeAs implements stream.Decoder.
func (h *hearing) DecodeAs(dst []int16, payload []byte, format uint8) {
	if format == formatOpus {
		h.opus.Decode(dst, payload)
	} else if n := int(format) - 1; n < len(h.plain) {
		h.plain[n].Decode(dst, payload)
	}
}

// A receiver is the incoming stream before its reader, held under Leg.in.
type receiver struct {
	ring   jitter.Ring
	ssrc   uint32
	began  bool
	stamp  uint32 // the last of the stream, as it came
	ticks  int64  // the same on the buffer's clock, in its own units and never wrapping
	seen   rtcp.Reception
	codec  string
	forced int64 // packets dropped because the reader slept
	digits dtmf.Events
}

// a peer's packet, at the clock rate (Hz) of its codec.
type incoming struct {
	header  *rtp.Header
	payload []byte
	codec   string
	format  uint8
	rate    int64
}

// hear takes one packet from the wire, on its peer's goroutine.
func (l *Leg) hear(in incoming, at time.Time) {
	l.in.Lock()
	defer l.in.Unlock()
	r := &l.receiver
	h := in.header
	if !r.began || r.ssrc != h.SSRC {
		r.began, r.ssrc, r.ticks, r.stamp = true, h.SSRC, int64(h.Timestamp), h.Timestamp
	}
	r.ticks += int64(int32(h.Timestamp - r.stamp)) //nolint:gosec // a difference on a circle
	r.stamp, r.codec = h.Timestamp, in.codec
	p := jitter.Packet{
		At: at.Sub(l.opened), Payload: in.payload, Stamp: uint32(r.ticks * jitter.ClockRate / in.rate), //nolint:gosec // wraps on a circle
		Source: h.SSRC, Seq: h.SequenceNumber, Marker: h.Marker, Kind: jitter.Speech, Format: in.format,
	}
	r.seen.See(p.Source, p.Seq)
	r.seen.Time(p.Stamp, p.At)
	if len(p.Payload) == 0 || len(p.Payload) > jitter.MaxPayload || !l.read.Load() {
		return
	}
	if !r.ring.Push(&p) {
		r.forced++ // the reader sleeps: what is new falls off, the rest is its own
		return
	}
	l.nudge()
}

// mostKeys is how many keys wait until somebody takes them.
const mostKeys = 64

// key takes a packet of a key, at the clock rate (Hz) of its stream, on its peer's
// goroutine. A full queue drops the newest: what was dialled first is what makes
// sense of the rest.
func (l *Leg) key(h *rtp.Header, payload []byte, rate int64, at time.Time) {
	l.in.Lock()
	r := &l.receiver
	r.seen.See(h.SSRC, h.SequenceNumber)
	p := jitter.Packet{At: at.Sub(l.opened), Source: h.SSRC, Seq: h.SequenceNumber, Kind: jitter.Key}
	if l.read.Load() && r.ring.Push(&p) {
		l.nudge()
	}
	r.digits.Rate = uint32(rate) //nolint:gosec // 8000 or 48000
	key, pressed := r.digits.Hear(h.SSRC, h.Timestamp, h.Marker, payload)
	l.in.Unlock()
	if !pressed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != "" {
		return // the queue is closed, or about to be
	}
	select {
	case l.keys <- key:
	default:
	}
}

// nudge wakes the reader. Where it is awake already, one wish is enough.
func (l *Leg) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Rate implements media.Source.
func (l *Leg) Rate() int { return Rate }

// ReadFrame implements media.Source. A frame comes as soon as it is complete;
// what was lost is concealed, and silence comes in time where there is nothing.
func (l *Leg) ReadFrame(f media.Frame) error {
	if n := media.FrameLen(Rate); len(f) != n {
		return fmt.Errorf("read frame of %d samples: want %d", len(f), n)
	}
	r := l.reader
	if !r.Begun() {
		r.Begin(Rate, time.Since(l.opened))
		l.read.Store(true)
	}
	for {
		select {
		case <-l.over:
			return io.EOF
		default:
		}
		r.Drain(&l.receiver.ring)
		if r.Next(f, time.Since(l.opened), l.hearing) {
			return nil
		}
		select {
		case <-l.over:
			return io.EOF
		case <-l.wake:
		}
	}
}

// Arrived implements media.Arrival.
func (l *Leg) Arrived() (time.Time, bool) {
	at, measured := l.reader.Arrived()
	return l.opened.Add(at), measured
}

var (
	_ stream.Keeper  = (*hearing)(nil)
	_ stream.Decoder = (*hearing)(nil)
)
