// Package ear owns the reading side of a leg: it passes the sound on and tells
// when the caller begins to speak, goes on, and falls silent.
package ear

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/vad"
)

// remembered is how many frames the ear can look back for an edge.
const remembered = 16

// An Edge is where the caller begins to speak, has spoken for a while, or falls
// silent.
type Edge struct {
	Kind      turn.Kind     // Voice, Loud or Silence
	Loud      time.Duration // voiced sound since the speech began; of Loud
	At        time.Time     // of the verdict
	From      time.Time     // arrival of the edge itself; not of Loud
	Waited    time.Duration // of its frame in the jitter buffer
	Estimated bool          // From was not measured
}

// An Ear hears one leg. Its exported fields are its wiring.
type Ear struct {
	Leg media.Leg
	// Sound is given every frame. It must not wait, nor keep the frame.
	Sound func(media.Frame)
	// Edges takes what the ear notices. Who reads it must not wait for the ear.
	Edges chan<- Edge

	detector vad.Detector
	told     time.Duration // of the voiced sound of this speech
	came     [remembered]arrival
	frames   int
}

type arrival struct {
	at, read time.Time
	measured bool
}

// Hear reads the leg until it ends. It returns nil when the party is gone.
func (e *Ear) Hear(ctx context.Context) error {
	f := make(media.Frame, media.FrameLen(e.Leg.Rate()))
	for {
		err := e.Leg.ReadFrame(f)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		e.note()
		e.Sound(f)
		if x, changed := e.listen(f); changed {
			// The mind always comes back for the next edge: it never waits for
			// anyone. So waiting here costs nothing and loses nothing.
			select {
			case e.Edges <- x:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// loudStep is how much voiced sound is told at a time.
const loudStep = 160 * time.Millisecond

// listen tells what the frame changed.
func (e *Ear) listen(f media.Frame) (Edge, bool) {
	verdict, back := e.detector.Frame(f)
	loud := e.detector.Loud()
	switch {
	case verdict == vad.Began:
		e.told = 0
		return e.edge(turn.Voice, back), true
	case verdict == vad.Ended:
		return e.edge(turn.Silence, back), true
	case e.detector.Speaking() && loud >= e.told+loudStep:
		e.told += loudStep
		return Edge{Kind: turn.Loud, At: time.Now(), Loud: e.told}, true
	default:
		return Edge{}, false
	}
}

// note remembers when the frame just read arrived.
func (e *Ear) note() {
	now := time.Now()
	a := arrival{at: now, read: now}
	if legs, ok := e.Leg.(media.Arrival); ok {
		if at, measured := legs.Arrived(); measured {
			a.at, a.measured = at, true
		}
	}
	e.came[e.frames%remembered] = a
	e.frames++
}

func (e *Ear) edge(kind turn.Kind, back int) Edge {
	back = min(back, remembered-1, e.frames-1)
	a := e.came[(e.frames-1-back)%remembered]
	x := Edge{Kind: kind, At: time.Now(), From: a.at, Waited: a.read.Sub(a.at), Estimated: !a.measured}
	if kind == turn.Voice {
		x.From = x.From.Add(-media.FrameTime)
	}
	return x
}
