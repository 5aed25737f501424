package webcaller

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/jitter"
)

// A wire is the negotiated stream to the server.
type wire struct {
	stream      webrtc.TrackLocalWriter
	codec       codec.Codec
	payloadType uint8
	source      uint32
}

// A sender sends the leg's audio. The clock's goroutine requests, encodes and sends each frame without blocking.
type sender struct {
	wire atomic.Pointer[wire] // nil before the codec is negotiated
	feed atomic.Pointer[media.Feed]

	// Only the clock's goroutine uses the fields below, up to departing.
	encoder codec.Encoder
	last    time.Time // when the last frame was due
	stamp   uint32
	seq     uint16
	frame   media.Frame
	out     [ticks]byte

	departing sync.Mutex
	departed  []departure
}

// ticks is both the number of RTP timestamp units and the number of bytes of a frame. All
// supported codecs have 8,000 of each per second.
const ticks = jitter.FrameLen

// A departure is when a frame was due, and when it was passed to the kernel.
type departure struct{ due, at time.Time }

func (o *sender) Play(feed media.Feed) {
	if feed == nil {
		o.feed.Store(nil)
		return
	}
	o.feed.Store(&feed)
}

// Tick implements mediaclock.Stream. It sends one frame and wakes the reader.
func (l *Leg) Tick(due time.Time) {
	l.nudge()
	o := &l.sender
	begins := o.encoder == nil
	if !begins {
		o.stamp += ticks * uint32((due.Sub(o.last)+media.FrameTime/2)/media.FrameTime) //nolint:gosec // wraps on a circle
	}
	o.last = due
	pcm := o.frame
	if feed := o.feed.Load(); feed != nil {
		(*feed).FillFrame(pcm, due)
	} else {
		clear(pcm)
	}
	w := o.wire.Load()
	if w == nil {
		return
	}
	if begins {
		o.encoder = w.codec.NewEncoder()
	}
	n := o.encoder.Encode(o.out[:], pcm)
	o.seq++
	h := rtp.Header{Version: 2, Marker: begins, PayloadType: w.payloadType, SequenceNumber: o.seq, Timestamp: o.stamp, SSRC: w.source}
	if _, err := w.stream.WriteRTP(&h, o.out[:n]); err != nil {
		return // the call has ended or is about to
	}
	if at, ok := l.socket.left.of(w.source, o.seq); ok {
		o.departing.Lock()
		o.departed = append(o.departed, departure{due, at})
		o.departing.Unlock()
	}
}

// Departed returns when the frame that was due at due was passed to the kernel.
func (o *sender) Departed(due time.Time) (time.Time, bool) {
	o.departing.Lock()
	defer o.departing.Unlock()
	i, ok := slices.BinarySearchFunc(o.departed, due, func(d departure, due time.Time) int { return d.due.Compare(due) })
	if !ok {
		return time.Time{}, false
	}
	return o.departed[i].at, true
}
