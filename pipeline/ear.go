package pipeline

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/vad"
)

// remembered is how many frames the ear can look back for an edge.
const remembered = 16

// An edge is where the caller begins to speak or falls silent.
type edge struct {
	voice     bool
	at        time.Time     // of the verdict
	from      time.Time     // arrival of the edge itself
	waited    time.Duration // of its frame in the jitter buffer
	estimated bool          // from was not measured
}

// An ear owns the reading side of a leg.
type ear struct {
	leg      media.Leg
	listener *listener
	edges    chan edge

	detector vad.Detector
	came     [remembered]arrival
	frames   int
}

type arrival struct {
	at, read time.Time
	measured bool
}

// hear reads the leg until it ends. It returns nil when the party is gone.
func (e *ear) hear(ctx context.Context) error {
	f := make(media.Frame, media.FrameLen(e.leg.Rate()))
	for {
		err := e.leg.ReadFrame(f)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		e.note()
		e.listener.write(f)
		if verdict, back := e.detector.Frame(f); verdict != vad.Same {
			// The mind always comes back for the next edge: it never waits for
			// anyone. So waiting here costs nothing and loses nothing.
			select {
			case e.edges <- e.edge(verdict, back):
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// note remembers when the frame just read arrived.
func (e *ear) note() {
	now := time.Now()
	a := arrival{at: now, read: now}
	if legs, ok := e.leg.(media.Arrival); ok {
		if at, measured := legs.Arrived(); measured {
			a.at, a.measured = at, true
		}
	}
	e.came[e.frames%remembered] = a
	e.frames++
}

func (e *ear) edge(v vad.Verdict, back int) edge {
	back = min(back, remembered-1, e.frames-1)
	a := e.came[(e.frames-1-back)%remembered]
	x := edge{voice: v == vad.Began, at: time.Now(), from: a.at, waited: a.read.Sub(a.at), estimated: !a.measured}
	if x.voice {
		x.from = x.from.Add(-media.FrameTime)
	}
	return x
}
