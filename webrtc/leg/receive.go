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
	"github.com/parley-voice/parley/media/receiver"
	"github.com/parley-voice/parley/media/rtcp"
)

// Formats of received payloads: Opus, then the codecs by index in
// decoders.plain, and telephone events.
const (
	formatOpus = 0
	formatKey  = 255
)

// decoders decode received audio; the reading goroutine owns them.
type decoders struct {
	opus  *opus.Decoder
	plain []codec.Decoder // decoders by format minus 1
}

func newDecoders() (*decoders, error) {
	o, err := opus.New()
	if err != nil {
		return nil, err
	}
	h := &decoders{opus: o}
	for _, c := range codec.All() {
		h.plain = append(h.plain, codec.DecoderAt(c, Rate))
	}
	return h, nil
}

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

func (h *decoders) Store(p *jitter.Packet) {
	if p.Kind == jitter.Speech && p.Format == formatOpus {
		h.opus.Store(p)
	}
}

func (h *decoders) DecodeAs(dst []int16, payload []byte, format uint8) {
	if format == formatOpus {
		h.opus.Decode(dst, payload)
	} else if n := int(format) - 1; n < len(h.plain) {
		h.plain[n].Decode(dst, payload)
	}
}

// stream is the incoming stream on the network side, guarded by Leg.receiveMu.
type stream struct {
	ring      jitter.Ring
	ssrc      uint32
	started   bool
	timestamp uint32 // timestamp of the last packet
	ticks     int64  // the same without wrapping around
	stats     rtcp.ReceiverStats
	codec     string
	dropped   int64 // packets that were dropped because the reader paused
	digits    dtmf.EventDecoder
}

// An incoming packet, with its codec's clock rate in Hz.
type incoming struct {
	header  *rtp.Header
	payload []byte
	codec   string
	format  uint8
	rate    int64
}

// receive takes one packet, on its peer's goroutine.
func (l *Leg) receive(in incoming, at time.Time) {
	l.receiveMu.Lock()
	defer l.receiveMu.Unlock()
	r := &l.receiver
	h := in.header
	if !r.started || r.ssrc != h.SSRC {
		r.started, r.ssrc, r.ticks, r.timestamp = true, h.SSRC, int64(h.Timestamp), h.Timestamp
	}
	r.ticks += int64(int32(h.Timestamp - r.timestamp)) //nolint:gosec // modular difference
	r.timestamp, r.codec = h.Timestamp, in.codec
	p := jitter.Packet{
		At: at.Sub(l.opened), Payload: in.payload, Timestamp: uint32(r.ticks * jitter.ClockRate / in.rate), //nolint:gosec // wraps
		SSRC: h.SSRC, Seq: h.SequenceNumber, Marker: h.Marker, Kind: jitter.Speech, Format: in.format,
	}
	r.stats.ObserveSeq(p.SSRC, p.Seq)
	r.stats.ObserveTime(p.Timestamp, p.At)
	if len(p.Payload) == 0 || len(p.Payload) > jitter.MaxPayload || !l.reading.Load() {
		return
	}
	if !r.ring.Push(&p) {
		r.dropped++ // the reader has paused, and it owns the queued packets
		return
	}
	l.wakeReader()
}

// maxKeys is the number of digits that may be queued.
const maxKeys = 64

// receiveKey takes a telephone event, at its stream's clock rate (Hz), on its
// peer's goroutine. A full queue drops the newest digit: the older ones give
// it its meaning.
func (l *Leg) receiveKey(h *rtp.Header, payload []byte, rate int64, at time.Time) {
	l.receiveMu.Lock()
	r := &l.receiver
	r.stats.ObserveSeq(h.SSRC, h.SequenceNumber)
	p := jitter.Packet{At: at.Sub(l.opened), SSRC: h.SSRC, Seq: h.SequenceNumber, Kind: jitter.Key}
	if l.reading.Load() && r.ring.Push(&p) {
		l.wakeReader()
	}
	r.digits.Rate = uint32(rate) //nolint:gosec // 8000 or 48000
	key, pressed := r.digits.Decode(h.SSRC, h.Timestamp, h.Marker, payload)
	l.receiveMu.Unlock()
	if !pressed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != "" {
		return // the queue is closed or about to be
	}
	select {
	case l.keys <- key:
	default:
	}
}

func (l *Leg) wakeReader() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Rate implements media.Source.
func (l *Leg) Rate() int { return Rate }

// ReadFrame implements media.Source. A complete frame is returned at once;
// lost packets are concealed, and silence is inserted when nothing arrives.
func (l *Leg) ReadFrame(f media.Frame) error {
	if n := media.FrameLen(Rate); len(f) != n {
		return fmt.Errorf("read frame of %d samples: want %d", len(f), n)
	}
	r := l.reader
	if !r.HasStarted() {
		r.Start(Rate, time.Since(l.opened))
		l.reading.Store(true)
	}
	for {
		select {
		case <-l.done:
			return io.EOF
		default:
		}
		r.Drain(&l.receiver.ring)
		if r.Next(f, time.Since(l.opened), l.decoders) {
			return nil
		}
		select {
		case <-l.done:
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
	_ receiver.PacketStore = (*decoders)(nil)
	_ receiver.Decoder     = (*decoders)(nil)
)
