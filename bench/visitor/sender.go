package visitor

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

// A wire is where what is said goes, and how.
type wire struct {
	stream      webrtc.TrackLocalWriter
	codec       codec.Codec
	payloadType uint8
	source      uint32
}

// A sender is what a leg says. The clock fills each frame, encodes it and sends
// it: nothing waits.
type sender struct {
	wire atomic.Pointer[wire] // nil before the codec is agreed on
	feed atomic.Pointer[media.Feed]

	// The clock's.
	encoder codec.Encoder
	last    time.Time // due of the last frame
	stamp   uint32
	seq     uint16
	frame   media.Frame
	out     [ticks]byte

	departing sync.Mutex
	departed  []departure
}

// ticks are those of a frame, and its bytes: in all codecs of a visitor a byte lasts
// a tick of 8 kHz.
const ticks = jitter.FrameLen

// A departure is when the frame that was due left.
type departure struct{ due, at time.Time }

// Play implements media.Leg.
func (o *sender) Play(feed media.Feed) {
	if feed == nil {
		o.feed.Store(nil)
		return
	}
	o.feed.Store(&feed)
}

// Tick implements pace.Stream: one frame is due, and the reader looks after what is
// due to it.
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
		return // the call is over, or will be
	}
	if at, ok := l.socket.left.of(w.source, o.seq); ok {
		o.departing.Lock()
		o.departed = append(o.departed, departure{due, at})
		o.departing.Unlock()
	}
}

// Departed is when the frame that was due at due was handed to the kernel.
func (o *sender) Departed(due time.Time) (time.Time, bool) {
	o.departing.Lock()
	defer o.departing.Unlock()
	i, ok := slices.BinarySearchFunc(o.departed, due, func(d departure, due time.Time) int { return d.due.Compare(due) })
	if !ok {
		return time.Time{}, false
	}
	return o.departed[i].at, true
}
