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

// outLen is how many frames may wait for the wire. A power of two.
const outLen = 4

const samples = Rate / 50 // of a frame

// A sender is the outgoing stream. The clock fills frames and never waits for
// the wire: a goroutine of the leg encodes and sends them.
type sender struct {
	feed atomic.Pointer[media.Feed]
	wake chan struct{}

	frames [outLen]outgoing
	filled atomic.Uint32 // owned by the clock
	sent   atomic.Uint32 // owned by the goroutine

	last  time.Time // due of the last frame; the clock's
	begun bool
	ts    uint32
	spare media.Frame // of frames that find no room

	seq     uint16 // the goroutine's, as all below
	ssrc    uint32
	marker  bool
	encoder codec.Encoder
	said    atomic.Pointer[saying] // how the last frame was; nil before the first
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
	o.ts, o.seq, o.ssrc = rand.Uint32(), uint16(rand.Uint32()), rand.Uint32() //nolint:gosec // the top half falls off; no secret is kept
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

// Tick implements pace.Stream: one frame is due, and the reader looks after what
// is due to it.
func (l *Leg) Tick(due time.Time) {
	l.sender.fill(due)
	l.nudge()
}

// fill has the feed fill the frame that is due. Where the wire has not taken
// the frames before, this one is dropped: a party hears no old sound.
func (o *sender) fill(due time.Time) {
	if o.begun {
		frames := int64((due.Sub(o.last) + media.FrameTime/2) / media.FrameTime)
		if frames > 1 {
			o.underruns.Add(frames - 1)
		}
		o.ts += uint32(frames * int64(media.FrameLen(clockRate))) //nolint:gosec // wraps on a circle
	}
	o.last, o.begun = due, true
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

// say encodes and sends what was filled, until ctx ends.
func (l *Leg) say(ctx context.Context) {
	o := &l.sender
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		for n := o.sent.Load(); n != o.filled.Load(); n++ {
			f := &o.frames[n%outLen]
			o.leave(l.wire.Load(), f)
			o.sent.Store(n + 1)
		}
	}
}

// leave sends a frame. Without a wire it is gone.
func (o *sender) leave(w *wire, f *outgoing) {
	if w == nil {
		o.marker = true
		return
	}
	if last := o.said.Load(); last == nil || last.name != w.saying.name {
		o.said.Store(&w.saying)
		o.encoder = w.saying.encoder()
	}
	n := o.encoder.Encode(o.wire[:], f.pcm[:])
	o.seq++
	o.header = rtp.Header{
		Version: 2, Marker: o.marker, PayloadType: w.payloadType, SequenceNumber: o.seq, Timestamp: f.ts * w.saying.ticks, SSRC: w.ssrc,
	}
	o.marker = false
	if _, err := w.stream.WriteRTP(&o.header, o.wire[:n]); err == nil {
		o.packets.Add(1)
		o.octets.Add(int64(n))
	}
}

// tasks are the goroutines of a leg.
type tasks struct {
	sync.WaitGroup

	quit context.CancelFunc
}
