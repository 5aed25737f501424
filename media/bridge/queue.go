package bridge

import (
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/plc"
)

const (
	queueLen      = 16 // capacity in frames, a power of two
	prefill       = 2  // frames that wait before the first is played: 40 ms
	maxIdle       = 2  // frames that may stay in the queue; more are a surplus
	maxWaiting    = 8  // with more frames (160 ms) the oldest are dropped at once
	keepAfterDrop = 3  // frames left after such a drop: 60 ms
	watchFrames   = 50 // frames in one measuring window: 1 s
	pauseWindows  = 4  // windows with a surplus before a frame of speech may be dropped
)

// queue passes frames from one side to the media clock of the other side. One goroutine calls push, and the clock calls
// FillFrame. Neither call waits.
//
// The clocks of the two legs are independent, and frames may come in bursts. If the queue is empty, a frame is
// concealed. If frames remain in the queue for long, one is dropped, in a pause if possible.
type queue struct {
	frames     [queueLen]media.Frame
	writeIndex atomic.Uint32 // only the pushing goroutine writes it
	readIndex  atomic.Uint32 // only the goroutine of the media clock writes it

	full           atomic.Int64
	passed         atomic.Int64
	skipped, added atomic.Int64

	// Only the clock uses the fields below.
	conceal *plc.Concealer
	started bool
	fewest  int // fewest frames in the queue during the current window
	calls   int // frames filled in the current window
	surplus int // number of windows in a row with a surplus
}

func newQueue(rate int) *queue {
	q := &queue{conceal: plc.New(rate), fewest: queueLen}
	for i := range q.frames {
		q.frames[i] = make(media.Frame, media.FrameLen(rate))
	}
	return q
}

// push adds a frame, or drops it if the queue is full. A full queue means that nothing is being played, and old audio
// should not be played later.
func (q *queue) push(f media.Frame) {
	w := q.writeIndex.Load()
	if w-q.readIndex.Load() == queueLen {
		q.full.Add(1)
		return
	}
	copy(q.frames[w%queueLen], f)
	q.writeIndex.Store(w + 1)
}

func (q *queue) FillFrame(f media.Frame, _ time.Time) {
	waiting := int(q.writeIndex.Load() - q.readIndex.Load())
	if !q.started && waiting < prefill {
		clear(f)
		return
	}
	q.started = true
	if waiting > maxWaiting {
		for ; waiting > keepAfterDrop; waiting-- {
			q.skip()
		}
	}
	if q.shouldSkip(waiting) {
		q.skip()
		waiting--
	}
	if waiting == 0 {
		q.added.Add(1)
		q.conceal.Conceal(f)
		return
	}
	r := q.readIndex.Load()
	copy(f, q.frames[r%queueLen])
	q.readIndex.Store(r + 1)
	q.conceal.Receive(f)
	q.passed.Add(1)
}

func (q *queue) shouldSkip(waiting int) bool {
	q.fewest = min(q.fewest, waiting)
	if q.calls++; q.calls >= watchFrames {
		if q.surplus++; q.fewest <= maxIdle {
			q.surplus = 0
		}
		q.fewest, q.calls = waiting, 0
	}
	if q.surplus == 0 || waiting <= maxIdle {
		return false
	}
	if q.surplus <= pauseWindows && !q.conceal.IsBackground(q.frames[q.readIndex.Load()%queueLen]) {
		return false
	}
	q.surplus = 0
	return true
}

func (q *queue) skip() {
	q.readIndex.Add(1)
	q.conceal.Skip()
	q.skipped.Add(1)
}

func (q *queue) stats(k keyCounts) DirectionStats {
	return DirectionStats{
		Passed: q.passed.Load(), Dropped: q.full.Load() + q.skipped.Load(), Filled: q.added.Load(),
		Keys: k.passed, KeysDropped: k.dropped,
	}
}
