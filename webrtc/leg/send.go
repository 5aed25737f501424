package leg

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
)

// outLen is the capacity of the queue in frames, a power of two.
const outLen = 4

const samples = Rate / 50 // samples of a frame

// A sender is the outgoing stream. The clock fills frames and never blocks. sendLoop encodes and sends the frames.
type sender struct {
	feed atomic.Pointer[media.Feed]
	wake chan struct{}

	frames [outLen]outgoing
	filled atomic.Uint32 // number of frames filled; only the clock writes it
	sent   atomic.Uint32 // number of frames sent; only sendLoop writes it

	// Only the clock uses the fields up to spare.
	last    time.Time // time at which the last frame was due
	started bool
	ts      uint32
	spare   media.Frame // takes the frame if the queue is full

	// Only sendLoop uses the fields up to header, except codec.
	seq     uint16
	ssrc    uint32
	marker  bool
	encoder codec.Encoder
	codec   atomic.Pointer[sendCodec] // codec of the last frame; nil before the first frame
	wire    [samples]byte
	header  rtp.Header

	packets, octets, underruns atomic.Int64
}

type outgoing struct {
	pcm [samples]int16
	ts  uint32
}

func (o *sender) init() {
	o.wake = make(chan struct{}, 1)
	o.spare = make(media.Frame, samples)
	o.ts, o.seq, o.ssrc = rand.Uint32(), uint16(rand.Uint32()), rand.Uint32() //nolint:gosec // truncated; not a secret
	o.marker = true
}

// Play implements media.Leg.
func (l *Leg) Play(feed media.Feed) {
	if feed == nil {
		l.sender.feed.Store(nil)
		return
	}
	l.sender.feed.Store(&feed)
}

// Tick implements mediaclock.Stream. It queues the frame that is due, and wakes the reader.
func (l *Leg) Tick(due time.Time) {
	l.sender.fill(due)
	l.wakeReader()
}

// fill takes the frame that is due from the feed. If the queue is full, it drops the frame, so that the delay does not
// grow.
func (o *sender) fill(due time.Time) {
	if o.started {
		frames := int64((due.Sub(o.last) + media.FrameTime/2) / media.FrameTime)
		if frames > 1 {
			o.underruns.Add(frames - 1)
		}
		o.ts += uint32(frames * int64(media.FrameLen(clockRate))) //nolint:gosec // wraps
	}
	o.last, o.started = due, true
	n := o.filled.Load()
	full := n-o.sent.Load() == outLen
	slot := &o.frames[n%outLen]
	pcm := media.Frame(slot.pcm[:])
	if full {
		o.underruns.Add(1)
		pcm = o.spare
	} else {
		slot.ts = o.ts
	}
	if feed := o.feed.Load(); feed != nil {
		(*feed).FillFrame(pcm, due)
	} else {
		clear(pcm)
	}
	if full {
		return
	}
	o.filled.Store(n + 1)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (l *Leg) sendLoop(ctx context.Context) {
	o := &l.sender
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		for n := o.sent.Load(); n != o.filled.Load(); n++ {
			f := &o.frames[n%outLen]
			o.send(l.out.Load(), f)
			o.sent.Store(n + 1)
		}
	}
}

// send encodes and sends a frame. If w is nil, it drops the frame.
func (o *sender) send(w *outTrack, f *outgoing) {
	if w == nil {
		o.marker = true
		return
	}
	if last := o.codec.Load(); last == nil || last.name != w.codec.name {
		o.codec.Store(&w.codec)
		o.encoder = w.codec.encoder()
	}
	n := o.encoder.Encode(o.wire[:], f.pcm[:])
	o.seq++
	o.header = rtp.Header{
		Version: 2, Marker: o.marker, PayloadType: w.payloadType, SequenceNumber: o.seq, Timestamp: f.ts * w.codec.ticks, SSRC: w.ssrc,
	}
	o.marker = false
	if _, err := w.stream.WriteRTP(&o.header, o.wire[:n]); err == nil {
		o.packets.Add(1)
		o.octets.Add(int64(n))
	}
}

type tasks struct {
	sync.WaitGroup

	quit context.CancelFunc
}
