package bridge

import (
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

const frame = 160

func (q *queue) waiting() int { return int(q.writeIndex.Load() - q.readIndex.Load()) }

// TestQueueDrift pushes frames for 30 minutes with a clock that drifts. It checks that the queue stays short and that
// the tone keeps its frequency.
func TestQueueDrift(t *testing.T) {
	for _, ppm := range []int{-200, 0, 200} {
		q, f := newQueue(8000), make(media.Frame, frame)
		sound := tone.Sine(8000, 800, 500, 0.3)
		const n = 30 * 60 * 50
		pushed, longest := 0, 0
		var tail []int16
		for i := range n {
			for ; time.Duration(pushed)*(20*time.Millisecond-time.Duration(ppm*20)) <= time.Duration(i)*20*time.Millisecond; pushed++ {
				at := pushed % 3 * frame
				q.push(sound[80+at : 80+at+frame])
			}
			q.FillFrame(f, time.Time{})
			longest = max(longest, q.waiting())
			if i >= n-50 {
				tail = append(tail, f...)
			}
		}
		if longest > 4 {
			t.Errorf("%d ppm: %d frames queued", ppm, longest)
		}
		off := int64(n * 200 / 1_000_000)
		w := q.stats(keyCounts{})
		switch {
		case ppm == 0 && (w.Dropped != 0 || w.Filled != 0),
			ppm > 0 && (w.Filled != 0 || w.Dropped < off-2 || w.Dropped > off+1),
			ppm < 0 && (w.Dropped != 0 || w.Filled < off-2 || w.Filled > off+1):
			t.Errorf("%d ppm: %+v", ppm, w)
		}
		if p := tone.Power(tail, 8000, 500); p < 0.08 {
			t.Errorf("%d ppm: got tone power %.3f, want 0.09", ppm, p)
		}
	}
}

// TestQueueBursts pushes six frames at a time. It checks that no frame is concealed or dropped after the first gap.
func TestQueueBursts(t *testing.T) {
	q, f := newQueue(8000), make(media.Frame, frame)
	sound := tone.Sine(8000, frame, 500, 0.3)
	var settled DirectionStats
	for i := range 3000 {
		if i%6 == 0 {
			for range 6 {
				q.push(sound)
			}
		}
		q.FillFrame(f, time.Time{})
		if i == 300 {
			settled = q.stats(keyCounts{})
		}
	}
	if w := q.stats(keyCounts{}); w.Filled != settled.Filled || w.Dropped != settled.Dropped || w.Passed < 2990 {
		t.Errorf("%+v, after 6 s %+v", w, settled)
	}
}

func TestQueueStall(t *testing.T) {
	q, f := newQueue(8000), make(media.Frame, frame)
	for range 500 {
		q.push(f)
	}
	q.FillFrame(f, time.Time{})
	if n := q.waiting(); n != keepAfterDrop-1 {
		t.Errorf("%d frames queued after a stall", n)
	}
	if w := q.stats(keyCounts{}); w.Dropped != 500-keepAfterDrop || w.Passed != 1 {
		t.Errorf("%+v", w)
	}
}

func TestQueueDropsSurplusInPause(t *testing.T) {
	q, f := newQueue(8000), make(media.Frame, frame)
	loud := tone.Sine(8000, frame, 500, 0.3)
	for range 5 {
		q.push(loud)
	}
	for i := range 200 {
		dropped := q.stats(keyCounts{}).Dropped
		if i < 120 {
			q.push(loud)
		} else {
			q.push(make(media.Frame, frame))
		}
		q.FillFrame(f, time.Time{})
		if i < 120 && q.stats(keyCounts{}).Dropped != dropped {
			t.Fatalf("speech was cut after %d frames", i)
		}
	}
	if w := q.stats(keyCounts{}); w.Dropped == 0 || q.waiting() > 4 {
		t.Errorf("%+v, %d queued", w, q.waiting())
	}
}

func TestQueueFromTwoGoroutines(t *testing.T) {
	q := newQueue(8000)
	var work sync.WaitGroup
	work.Go(func() {
		f := make(media.Frame, frame)
		for range 20_000 {
			q.push(f)
		}
	})
	f := make(media.Frame, frame)
	for range 20_000 {
		q.FillFrame(f, time.Time{})
	}
	work.Wait()
	w := q.stats(keyCounts{})
	if w.Passed+w.Dropped+int64(q.waiting()) != 20_000 {
		t.Errorf("%+v and %d waiting are not 20,000", w, q.waiting())
	}
}

func TestQueueAllocatesNothing(t *testing.T) {
	q, f := newQueue(16000), make(media.Frame, 320)
	if n := testing.AllocsPerRun(1000, func() { q.push(f); q.FillFrame(f, time.Time{}) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func BenchmarkQueueFrame(b *testing.B) {
	q, f := newQueue(8000), make(media.Frame, frame)
	b.ReportAllocs()
	for b.Loop() {
		q.push(f)
		q.FillFrame(f, time.Time{})
	}
}
