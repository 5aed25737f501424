// Package ear owns the reading side of a leg: it passes the sound on and tells
// when the caller begins to speak, goes on, and falls silent.
package ear

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/echo"
	"github.com/parley-voice/parley/pipeline/eot"
	"github.com/parley-voice/parley/pipeline/prosody"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/vad"
)

// remembered is how many frames the ear can look back for an edge.
const remembered = 40

// An Edge is where the caller begins to speak, has spoken for a while, or falls
// silent.
type Edge struct {
	Kind      turn.Kind     // Stirred, Calmed, Voice, Loud, Lull or Silence
	Loud      time.Duration // voiced sound since the speech began; of Loud
	At        time.Time     // of the verdict
	From      time.Time     // arrival of the edge, as the detector tells it; of Voice, Lull and Silence
	Voiced    time.Time     // arrival of the last voiced sample, as its loudness tells it; of Lull and Silence
	Waited    time.Duration // of its frame in the jitter buffer
	Estimated bool          // Voiced was not measured
	Returns   bool          // the line is known to return what is sent
	Prosody   eot.Prosody   // of the speech up to it; of Lull and Silence
}

// An Ear hears one leg. Its exported fields are its wiring.
type Ear struct {
	Leg media.Leg
	// Sound is given every frame. It must not wait, nor keep the frame.
	Sound func(media.Frame)
	// Edges takes what the ear notices. Who reads it must not wait for the ear.
	Edges chan<- Edge
	// Sent, where set, is the level (dBFS) of what leaves at the moment, which
	// may come back.
	Sent func() float64

	detector vad.Detector
	trail    vad.Trail
	prosody  prosody.Estimator
	bound    echo.Bound
	floor    float64       // dBFS under which sound is our own
	stirred  bool          // there is sound that may become speech
	lulled   bool          // the speech that is on paused
	unvoiced int           // frames since the last voiced one
	onset    int           // frames before the speech that is on
	told     time.Duration // of the voiced sound of this speech
	came     [remembered]arrival
	made     bool // the frame just read stands for sound that did not come
	frames   int
}

type arrival struct {
	at, read time.Time
	measured bool
}

// Hear reads the leg until it ends or ctx does. It returns nil when the party is
// gone.
func (e *Ear) Hear(ctx context.Context) error {
	f := make(media.Frame, media.FrameLen(e.Leg.Rate()))
	e.floor = math.Inf(-1)
	for ctx.Err() == nil {
		err := e.Leg.ReadFrame(f)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		e.note()
		x, changed := e.listen(f)
		if e.detector.Level() < e.floor {
			clear(f) // our own voice: the recognizer must not take it for words
		}
		e.Sound(f)
		if changed {
			// The mind always comes back for the next edge: it never waits for
			// anyone. So waiting here costs nothing and loses nothing.
			x.Returns = e.bound.Known()
			select {
			case e.Edges <- x:
			case <-ctx.Done():
				return nil
			}
		}
	}
	return nil
}

const (
	loudStep = 160 * time.Millisecond // how much voiced sound is told at a time
	lullTime = 80 * time.Millisecond  // without a voice until that is told
)

// listen tells what the frame changed.
func (e *Ear) listen(f media.Frame) (Edge, bool) {
	if e.Sent != nil {
		e.floor = e.bound.Frame(e.Sent(), e.detector.Level())
		e.detector.Floor(e.floor)
	}
	verdict, back := e.detector.Frame(f)
	if e.detector.Level() < e.floor {
		e.trail.Frame(nil, e.made) // our own voice
	} else {
		e.trail.Frame(f, e.made)
	}
	if e.detector.Voiced() {
		e.unvoiced = 0
	} else {
		e.unvoiced++
	}
	if verdict == vad.Stirred || verdict == vad.Began && !e.stirred {
		e.prosody.Begin()
	}
	e.prosody.Frame(f, e.detector.Level(), e.detector.Voiced())
	switch verdict {
	case vad.Stirred:
		e.stirred = true
		return Edge{Kind: turn.Stirred, At: time.Now()}, true
	case vad.Calmed:
		e.stirred = false
		return Edge{Kind: turn.Calmed, At: time.Now()}, true
	case vad.Began:
		e.stirred, e.told, e.lulled = false, 0, false
		e.onset = e.frames - back - 1
		return e.edge(turn.Voice, back), true
	case vad.Ended:
		x := e.end(turn.Silence, back)
		x.Prosody = e.prosody.End()
		return x, true
	case vad.Same:
	}
	if !e.detector.Speaking() {
		return Edge{}, false
	}
	return e.going()
}

// loud is how long the caller has spoken: the time that passed, where a voice
// filled three quarters of it. A word's end does not hold that up, for the next
// may be about to begin.
func (e *Ear) loud() time.Duration {
	voiced := e.detector.Loud()
	if e.unvoiced > 1 {
		return voiced
	}
	return min(time.Duration(e.frames-e.onset)*media.FrameTime, voiced*4/3)
}

// going tells how the speech that is on goes on.
func (e *Ear) going() (Edge, bool) {
	switch loud := e.loud(); {
	case loud >= e.told+loudStep:
		e.told += loudStep
		return Edge{Kind: turn.Loud, At: time.Now(), Loud: e.told}, true
	case !e.lulled && time.Duration(e.unvoiced)*media.FrameTime >= lullTime:
		e.lulled = true
		x := e.end(turn.Lull, e.unvoiced)
		x.Prosody = e.prosody.End()
		return x, true
	case e.lulled && e.unvoiced == 0:
		e.lulled = false
		return Edge{Kind: turn.Stirred, At: time.Now()}, true
	default:
		return Edge{}, false
	}
}

// note remembers when the frame just read arrived.
func (e *Ear) note() {
	now := time.Now()
	a := arrival{at: now, read: now}
	e.made = false
	if legs, ok := e.Leg.(media.Arrival); ok {
		at, measured := legs.Arrived()
		if e.made = !measured; measured {
			a.at, a.measured = at, true
		}
	}
	e.came[e.frames%remembered] = a
	e.frames++
}

func (e *Ear) edge(kind turn.Kind, back int) Edge {
	a := e.ago(back)
	x := Edge{Kind: kind, At: time.Now(), From: a.at}
	if kind == turn.Voice {
		x.From = x.From.Add(-media.FrameTime)
	}
	return x
}

// end is the edge at which the caller fell silent. Of a voice that ends among
// frames that were lost nobody knows in which: the middle is taken.
func (e *Ear) end(kind turn.Kind, back int) Edge {
	x := e.edge(kind, back)
	last, lost := e.trail.Faded(back)
	a := e.ago(last)
	x.Voiced = a.at.Add(time.Duration(lost) * media.FrameTime / 2)
	x.Waited = max(0, e.ago(last-lost/2).read.Sub(x.Voiced))
	x.Estimated = lost > 0 || !a.measured
	return x
}

// ago is the arrival of the frame that was so many frames ago.
func (e *Ear) ago(back int) arrival {
	return e.came[(e.frames-1-min(back, remembered-1, e.frames-1))%remembered]
}
