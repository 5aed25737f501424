// Package input reads the audio of a leg. It passes every frame on and reports speech
// edges: start, continuation and end of the caller's speech. It also estimates the echo of
// the agent's voice and the prosody of the caller's.
package input

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/eot"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/vad"
)

// pastFrames is the number of frames whose arrival times are kept. They give the time of an edge.
const pastFrames = 40

// An Edge is a change in the caller's speech.
type Edge struct {
	Kind      turn.Kind     // SoundStart, SoundEnd, Voice, VoiceLength, Lull or Silence
	Loud      time.Duration // only of VoiceLength: voiced sound since the speech began
	At        time.Time     // when the detector reported the edge
	From      time.Time     // only of Voice, Lull and Silence: when the audio of the edge arrived
	Voiced    time.Time     // only of Lull and Silence: when the last voiced sample arrived, judged by its loudness
	Waited    time.Duration // time that the frame of the edge spent in the jitter buffer
	Estimated bool          // Voiced is an estimate
	HasEcho   bool          // the line is known to return an echo
	Prosody   eot.Prosody   // only of Lull and Silence: prosody of the speech before the edge
}

// A Listener reads one leg. Its exported fields configure it.
type Listener struct {
	Leg media.Leg
	// Sound receives every frame. It must not block or keep the frame.
	Sound func(media.Frame)
	// SetBatch, if set, receives how much audio may be collected for one message to the recognizer. The value applies
	// from the next frame that Sound receives. SetBatch must not block.
	SetBatch func(d time.Duration)
	// Edges receives the edges. The receiver must read them until Run returns.
	Edges chan<- Edge
	// Sent, if set, returns the level (dBFS) of the audio being sent. The listener needs it to recognize echo.
	Sent func() float64

	arrival   media.Arrival // Leg; nil if it does not implement the interface
	detector  vad.Detector
	trail     vad.LevelHistory
	prosody   prosodyEstimator
	bound     echoBound
	floor     float64       // dBFS; quieter input is echo of the agent
	pending   bool          // a sound has begun that may become speech
	paused    bool          // the current speech has paused
	batch     time.Duration // the last value given to SetBatch
	level     float64       // level of the frame before, dBFS
	unvoiced  int           // frames since the last voiced frame
	onset     int           // number of frames before the current speech
	reported  time.Duration // voiced sound of this speech that was already reported
	arrivals  [pastFrames]arrival
	concealed bool // the frame just read is concealment
	frames    int
}

type arrival struct {
	at, read time.Time
	measured bool
}

// Run reads the leg until it ends or ctx is done. It returns nil when the remote side has
// left.
func (l *Listener) Run(ctx context.Context) error {
	f := make(media.Frame, media.FrameLen(l.Leg.Rate()))
	l.floor = math.Inf(-1)
	l.arrival, _ = l.Leg.(media.Arrival)
	for ctx.Err() == nil {
		err := l.Leg.ReadFrame(f)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		l.note()
		x, changed := l.listen(f)
		l.noteBatch()
		if l.detector.Level() < l.floor {
			clear(f) // an echo, which the recognizer must not transcribe
		}
		l.Sound(f)
		if changed {
			// The receiver never waits for the listener, so this wait is short and no edge is lost.
			x.HasEcho = l.bound.Known()
			select {
			case l.Edges <- x:
			case <-ctx.Done():
				return nil
			}
		}
	}
	return nil
}

// noteBatch reports how much audio may be collected. A recognizer reports a word only after its end. Frames may therefore
// wait during a sound, but not once the sound becomes softer, because a word may then end.
func (l *Listener) noteBatch() {
	batch, level := time.Duration(0), l.detector.Level()
	switch {
	case l.detector.Voiced() && level > l.level-fading:
		batch = soundBatch
	case !l.pending && !l.detector.Speaking() && time.Duration(l.unvoiced)*media.FrameTime >= quietTime:
		batch = quietBatch
	}
	if batch != l.batch && l.SetBatch != nil {
		l.SetBatch(batch)
	}
	l.batch, l.level = batch, level
}

const (
	quietTime = 600 * time.Millisecond // time without voice before the caller counts as quiet
	loudStep  = 160 * time.Millisecond // voiced sound between two VoiceLength edges
	lullTime  = 80 * time.Millisecond  // time without voice before a Lull edge

	fading     = 2.0                    // dB by which a sound that may end is softer than in the frame before
	soundBatch = 40 * time.Millisecond  // audio that may be collected within a sound
	quietBatch = 100 * time.Millisecond // audio that may be collected while the caller is quiet
)

// listen processes one frame and reports whether it causes an edge.
func (l *Listener) listen(f media.Frame) (Edge, bool) {
	if l.Sent != nil {
		l.floor = l.bound.Frame(l.Sent(), l.detector.Level())
		l.detector.SetFloor(l.floor)
	}
	verdict, back := l.detector.Frame(f)
	if l.detector.Level() < l.floor {
		l.trail.Frame(nil, l.concealed) // an echo of the agent
	} else {
		l.trail.Frame(f, l.concealed)
	}
	if l.detector.Voiced() {
		l.unvoiced = 0
	} else {
		l.unvoiced++
	}
	if verdict == vad.Onset || verdict == vad.SpeechStart && !l.pending {
		l.prosody.Begin()
	}
	l.prosody.Frame(f, l.detector.Level(), l.detector.Voiced())
	switch verdict {
	case vad.Onset:
		l.pending = true
		return Edge{Kind: turn.SoundStart, At: time.Now()}, true
	case vad.OnsetDropped:
		l.pending = false
		return Edge{Kind: turn.SoundEnd, At: time.Now()}, true
	case vad.SpeechStart:
		l.pending, l.reported, l.paused = false, 0, false
		l.onset = l.frames - back - 1
		return l.edge(turn.Voice, back), true
	case vad.SpeechEnd:
		x := l.end(turn.Silence, back)
		x.Prosody = l.prosody.End()
		return x, true
	case vad.NoChange:
	}
	if !l.detector.Speaking() {
		return Edge{}, false
	}
	return l.progress()
}

// loud returns how long the caller has spoken: the elapsed time if at least three quarters of
// it are voiced. The end of a word does not stop the count, because the next word may follow.
func (l *Listener) loud() time.Duration {
	voiced := l.detector.Loud()
	if l.unvoiced > 1 {
		return voiced
	}
	return min(time.Duration(l.frames-l.onset)*media.FrameTime, voiced*4/3)
}

// progress returns an edge within continuing speech: VoiceLength, Lull, or SoundStart after a Lull.
func (l *Listener) progress() (Edge, bool) {
	switch loud := l.loud(); {
	case loud >= l.reported+loudStep:
		l.reported += loudStep
		return Edge{Kind: turn.VoiceLength, At: time.Now(), Loud: l.reported}, true
	case !l.paused && time.Duration(l.unvoiced)*media.FrameTime >= lullTime:
		l.paused = true
		x := l.end(turn.Lull, l.unvoiced)
		x.Prosody = l.prosody.End()
		return x, true
	case l.paused && l.unvoiced == 0:
		l.paused = false
		return Edge{Kind: turn.SoundStart, At: time.Now()}, true
	default:
		return Edge{}, false
	}
}

// note records the arrival of the frame just read.
func (l *Listener) note() {
	now := time.Now()
	a := arrival{at: now, read: now}
	l.concealed = false
	if l.arrival != nil {
		at, measured := l.arrival.Arrived()
		if l.concealed = !measured; measured {
			a.at, a.measured = at, true
		}
	}
	l.arrivals[l.frames%pastFrames] = a
	l.frames++
}

func (l *Listener) edge(kind turn.Kind, back int) Edge {
	a := l.ago(back)
	x := Edge{Kind: kind, At: time.Now(), From: a.at}
	if kind == turn.Voice {
		x.From = x.From.Add(-media.FrameTime)
	}
	return x
}

// end returns the edge at which the caller fell silent. If the last voiced sample may lie within lost frames, Voiced
// is the middle of the loss.
func (l *Listener) end(kind turn.Kind, back int) Edge {
	x := l.edge(kind, back)
	last, lost := l.trail.LastVoiced(back)
	a := l.ago(last)
	x.Voiced = a.at.Add(time.Duration(lost) * media.FrameTime / 2)
	x.Waited = max(0, l.ago(last-lost/2).read.Sub(x.Voiced))
	x.Estimated = lost > 0 || !a.measured
	return x
}

// ago returns the arrival of an earlier frame: 0 is the newest, 1 the one before it.
func (l *Listener) ago(back int) arrival {
	return l.arrivals[(l.frames-1-min(back, pastFrames-1, l.frames-1))%pastFrames]
}
