package webcaller

import (
	"fmt"
	"io"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/jitter"
)

// decoders maps payload types to decoders.
type decoders map[uint8]codec.Decoder

func (d decoders) DecodeAs(dst []int16, payload []byte, format uint8) {
	if c, ok := d[format]; ok {
		c.Decode(dst, payload)
	}
}

// track starts to read the remote track.
func (l *Leg) track(t *webrtc.TrackRemote, r *webrtc.RTPReceiver) {
	if t.Kind() != webrtc.RTPCodecTypeAudio {
		return
	}
	l.spawn(func() { l.listen(t) })
	l.spawn(func() { drain(r) })
}

// listen reads packets and passes them to the reader with their arrival times at the socket.
func (l *Leg) listen(t *webrtc.TrackRemote) {
	b := make([]byte, mtu)
	var h rtp.Header
	for {
		n, _, err := t.Read(b)
		if err != nil {
			return
		}
		begin, err := h.Unmarshal(b[:n])
		if err != nil || !l.hears.Load() {
			continue
		}
		end := n
		if h.Padding && n > begin {
			end -= int(b[n-1])
		}
		if end <= begin || end-begin > jitter.MaxPayload || l.decoders[h.PayloadType] == nil {
			continue
		}
		at, ok := l.socket.came.of(h.SSRC, h.SequenceNumber)
		if !ok {
			at = time.Now()
		}
		l.ring.Push(&jitter.Packet{ // packets are dropped if nobody reads
			At: at.Sub(l.opened), Payload: b[begin:end], Timestamp: h.Timestamp, SSRC: h.SSRC, Seq: h.SequenceNumber,
			Marker: h.Marker, Kind: jitter.Speech, Format: h.PayloadType,
		})
		l.nudge()
	}
}

// nudge wakes the reader.
func (l *Leg) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// ReadFrame implements media.Source. It waits until the next frame is complete.
func (l *Leg) ReadFrame(f media.Frame) error {
	if n := media.FrameLen(l.rate); len(f) != n {
		return fmt.Errorf("read frame of %d samples: want %d", len(f), n)
	}
	for {
		select {
		case <-l.over:
			return io.EOF
		default:
		}
		l.reader.Drain(&l.ring)
		if l.reader.Next(f, time.Since(l.opened), l.decoders) {
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
