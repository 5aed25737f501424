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

// Formats of received payloads. Values between these two are codecs: the index in decoders.plain plus 1.
const (
	formatOpus = 0
	formatKey  = 255
)

// decoders decodes received audio. Only the goroutine that calls ReadFrame uses it.
type decoders struct {
	opus  *opus.Decoder
	plain []codec.Decoder // plain[n] decodes the format n+1
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

// stream is the state of the incoming stream before the reader. Leg.receiveMu guards it.
type stream struct {
	ring      jitter.Ring
	ssrc      uint32
	started   bool
	timestamp uint32 // timestamp of the last packet
	ticks     int64  // timestamp of the last packet, extended so that it does not wrap around
	stats     rtcp.ReceiverStats
	codec     string
	dropped   int64 // packets that were dropped because the reader paused
	digits    dtmf.EventDecoder
}

// incoming is a received packet. rate is the clock rate of its codec in Hz.
type incoming struct {
	header  *rtp.Header
	payload []byte
	codec   string
	format  uint8
	rate    int64
}

// receive handles an audio packet. The goroutine of its track calls it.
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
		r.dropped++ // drop the new packet, because the queued packets belong to the reader
		return
	}
	l.wakeReader()
}

// maxKeys is the maximum number of digits in the queue.
const maxKeys = 64

// receiveKey handles a telephone event. rate is its clock rate in Hz. If the queue is full, it drops the digit and
// keeps the earlier ones, because a sequence of digits makes sense only from its beginning.
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

// ReadFrame implements media.Source. It returns a complete frame at once. It conceals lost packets, and inserts silence
// if nothing arrives.
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
