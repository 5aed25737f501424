package bridge

import (
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/conceal"
)

const (
	queueLen = 16 // frames; a power of two
	first    = 2  // frames that must wait before the first is played: 40 ms
	spare    = 2  // frames that always wait and are nevertheless kept
	most     = 8  // frames beyond which the oldest are dropped at once: they waited 160 ms
	kept     = 3  // frames that are kept then: 60 ms
	watched  = 50 // frames over which the fewest that wait are watched: 1 s
	patience = 4  // such stretches in which a pause is hoped for before speech is cut
)

// A queue holds what one side said until the other's clock asks for it. One
// goroutine pushes, the media clock fills; neither waits for the other.
//
// The legs read and play by clocks of their own, and frames come in bursts. So
// the queue is elastic: where none is there one is made up, and where more than
// enough always wait one is left out, in a pause where there is one.
type queue struct {
	frames [queueLen]media.Frame
	wrote  atomic.Uint32 // owned by who pushes
	read   atomic.Uint32 // owned by who fills

	full           atomic.Int64
	passed         atomic.Int64
	leftOut, added atomic.Int64

	// What follows is the filling side's.
	conceal *conceal.Concealer
	begun   bool
	fewest  int // that waited in this stretch
	asked   int // times in this stretch
	surplus int // stretches with too many
}

func newQueue(rate int) *queue {
	q := &queue{conceal: conceal.New(rate), fewest: queueLen}
	for i := range q.frames {
		q.frames[i] = make(media.Frame, media.FrameLen(rate))
	}
	return q
}

// push adds a frame. A full queue drops it: the other side asks for nothing,
// and what it will be played then should not be old.
func (q *queue) push(f media.Frame) {
	w := q.wrote.Load()
	if w-q.read.Load() == queueLen {
		q.full.Add(1)
		return
	}
	copy(q.frames[w%queueLen], f)
	q.wrote.Store(w + 1)
}

// FillFrame implements media.Feed.
func (q *queue) FillFrame(f media.Frame, _ time.Time) {
	waiting := int(q.wrote.Load() - q.read.Load())
	if !q.begun && waiting < first {
		clear(f)
		return
	}
	q.begun = true
	if waiting > most {
		for ; waiting > kept; waiting-- {
			q.leave()
		}
	}
	if q.watch(waiting) {
		q.leave()
		waiting--
	}
	if waiting == 0 {
		q.added.Add(1)
		q.conceal.Lost(f)
		return
	}
	r := q.read.Load()
	copy(f, q.frames[r%queueLen])
	q.read.Store(r + 1)
	q.conceal.Good(f)
	q.passed.Add(1)
}

// watch says whether the next frame is to be left out.
func (q *queue) watch(waiting int) bool {
	q.fewest = min(q.fewest, waiting)
	if q.asked++; q.asked >= watched {
		if q.surplus++; q.fewest <= spare {
			q.surplus = 0
		}
		q.fewest, q.asked = waiting, 0
	}
	if q.surplus == 0 || waiting <= spare {
		return false
	}
	if q.surplus <= patience && !q.conceal.Still(q.frames[q.read.Load()%queueLen]) {
		return false
	}
	q.surplus = 0
	return true
}

// leave leaves the oldest frame out.
func (q *queue) leave() {
	q.read.Add(1)
	q.conceal.Skip()
	q.leftOut.Add(1)
}

// way tells what became of the frames.
func (q *queue) way(k keys) Way {
	return Way{
		Passed: q.passed.Load(), Dropped: q.full.Load() + q.leftOut.Load(), Filled: q.added.Load(),
		Keys: k.passed, Unheard: k.unheard,
	}
}
