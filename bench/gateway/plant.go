package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/leg"
)

// A Plant is a deliberate fault of the gateway. It tests whether the benchmark detects the fault.
type Plant string

// Kinds of faults.
const (
	Healthy Plant = ""
	Late    Plant = "late"    // audio leaves 60 ms after the reported time
	Stale   Plant = "stale"   // the end of each answer is repeated after the next answer
	Doubled Plant = "doubled" // each answer is played twice
	Wrong   Plant = "wrong"   // turn_ms is 40 ms too low
)

// Plants returns all faults.
func Plants() []Plant { return []Plant{Late, Stale, Doubled, Wrong} }

func (p Plant) check() error {
	if p != Healthy && !slices.Contains(Plants(), p) {
		return fmt.Errorf("plant %q: accepted are %v", p, Plants())
	}
	return nil
}

// Sizes of the faults.
const (
	lateFrames = 3
	wrongBy    = 40        // error of turn_ms, in ms
	longest    = 30 * 8000 // most samples of an answer that can be repeated
	rest       = 15        // frames of silence that end an answer
	again      = 600       // ms of the end of an answer that are repeated after the next answer
)

// faultyLeg is a leg with a deliberate fault.
type faultyLeg struct {
	*leg.Leg
	plant Plant
}

// wrap returns the leg with the fault p.
func (p Plant) wrap(l media.Leg) (media.Leg, error) {
	if p != Late && p != Stale && p != Doubled {
		return l, nil
	}
	up, ok := l.(*leg.Leg)
	if !ok {
		return nil, fmt.Errorf("fault %s: only SIP calls can have it", p)
	}
	return faultyLeg{up, p}, nil
}

func (p faultyLeg) Play(feed media.Feed) {
	size := media.FrameLen(p.Rate())
	switch {
	case feed == nil:
		p.Leg.Play(nil)
	case p.plant == Late:
		f := &lateFeed{feed: feed}
		for i := range f.held {
			f.held[i] = make(media.Frame, size)
		}
		p.Leg.Play(f)
	default:
		f := &againFeed{feed: feed, lag: 1, part: p.Rate() * again / 1000}
		if p.plant == Doubled {
			f.lag, f.part = 0, longest
		}
		f.answer, f.before, f.space = make([]int16, 0, longest), make([]int16, 0, longest), make([]int16, 0, longest)
		p.Leg.Play(f)
	}
}

// lateFeed delays each frame by lateFrames.
type lateFeed struct {
	feed media.Feed
	held [lateFrames]media.Frame
	next int
}

func (l *lateFeed) FillFrame(f media.Frame, due time.Time) {
	l.feed.FillFrame(f, due)
	held := l.held[l.next]
	for i := range f {
		f[i], held[i] = held[i], f[i]
	}
	l.next = (l.next + 1) % lateFrames
}

// againFeed repeats the end of an answer after the answer itself or after the next one.
type againFeed struct {
	feed   media.Feed
	lag    int // 0 repeats each answer after itself, 1 after the next answer
	part   int // samples to repeat
	answer []int16
	before []int16 // samples of the previous answer
	left   []int16 // samples left to play
	space  []int16 // silence before left
	quiet  int     // number of successive silent frames
}

func (a *againFeed) FillFrame(f media.Frame, due time.Time) {
	a.feed.FillFrame(f, due)
	loud := tone.Level(f) > -50
	if (loud || len(a.answer) > 0) && len(a.answer)+len(f) <= cap(a.answer) {
		a.answer = append(a.answer, f...)
	}
	if loud {
		a.quiet = 0
		return
	}
	if a.quiet++; len(a.answer) > 0 && a.quiet > rest {
		a.answer = a.answer[:max(0, len(a.answer)-a.quiet*len(f))]
		a.startRepeat()
	}
	n := copy(f, a.left)
	a.left = a.left[n:]
}

// startRepeat starts the repetition that belongs after the current answer.
func (a *againFeed) startRepeat() {
	again := a.answer
	if a.lag > 0 {
		again = a.before
	}
	a.left = append(a.space[:0], again[max(0, len(again)-a.part):]...)
	a.before, a.answer = a.answer, a.before[:0]
}

// alterTurn returns the reported turn item as the fault p changes it.
func (p Plant) alterTurn(item []byte) ([]byte, error) {
	if p != Wrong {
		return item, nil
	}
	var turn map[string]any
	if err := json.Unmarshal(item, &turn); err != nil {
		return nil, err
	}
	if metrics, ok := turn["metrics"].(map[string]any); ok {
		if total, ok := metrics["turn_ms"].(float64); ok {
			metrics["turn_ms"] = total - wrongBy
		}
	}
	return json.Marshal(turn)
}
