package siptest

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

// A Person holds a conversation in tone words: it waits for the other side to
// finish, says its next line, and hangs up after the answer to its last one.
type Person struct {
	// Greeting is said when the call is answered; empty says nothing.
	Greeting string
	Lines    []string
	// ThinkTime is how long the other side must be silent before the next line; 0
	// means 700 ms.
	ThinkTime time.Duration
	// GiveUpAfter is how long the person waits for speech; 0 means 15 s.
	GiveUpAfter time.Duration
	// OnExchange receives each finished exchange; nil is skipped.
	OnExchange func(Exchange)
}

// An Exchange is one line and its answer. Exchange 0 is what the other side says
// first.
type Exchange struct {
	Number      int
	LineEnd     time.Time // arrival of the last voiced packet of the line; for number 0, of the answer to the call
	AnswerStart time.Time // arrival of the first audible packet of the answer
}

// audibleLevel is the level of speech on a clean line, in dBFS.
const audibleLevel = -45

// Talk implements Script.Talk.
func (p Person) Talk(ctx context.Context, leg media.Leg) {
	player := &linePlayer{next: make(chan []int16, 1), done: make(chan time.Time, 1)}
	leg.Play(player)
	listener := &speechListener{leg: leg, frame: make(media.Frame, media.FrameLen(leg.Rate()))}
	lineEnd := time.Now()
	if p.Greeting != "" {
		pcm, _ := tone.Encode(leg.Rate(), p.Greeting)
		player.say(pcm)
		if _, err := listener.readUntil(player.done); err != nil {
			return
		}
	}
	for n := 0; ; n++ {
		answer, err := listener.waitForAnswer(ctx, orDefault(p.ThinkTime, 700*time.Millisecond), orDefault(p.GiveUpAfter, 15*time.Second))
		if p.OnExchange != nil && err == nil {
			p.OnExchange(Exchange{n, lineEnd, answer})
		}
		if err != nil || n == len(p.Lines) {
			return
		}
		pcm, _ := tone.Encode(leg.Rate(), p.Lines[n])
		player.say(pcm)
		if lineEnd, err = listener.readUntil(player.done); err != nil {
			return
		}
	}
}

func orDefault(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

// A linePlayer plays one line at a time. Lines arrive by channel, so that the
// media clock takes no lock.
type linePlayer struct {
	next chan []int16
	pcm  []int16
	done chan time.Time // receives a value when the last frame of a line was sent
}

func (m *linePlayer) say(pcm []int16) { m.next <- pcm }

func (m *linePlayer) FillFrame(f media.Frame, due time.Time) {
	if len(m.pcm) == 0 {
		select {
		case m.pcm = <-m.next:
		default:
		}
	}
	n := copy(f, m.pcm)
	clear(f[n:])
	m.pcm = m.pcm[n:]
	if n > 0 && len(m.pcm) == 0 {
		m.done <- due // the channel has room, because only one line plays
	}
}

type speechListener struct {
	leg   media.Leg
	frame media.Frame
}

var errSilence = errors.New("no speech received")

// read reads a frame. It returns whether the frame has speech, and when it
// arrived.
func (e *speechListener) read() (loud bool, at time.Time, err error) {
	if err := e.leg.ReadFrame(e.frame); err != nil {
		return false, at, err
	}
	at = time.Now()
	if a, ok := e.leg.(media.Arrival); ok {
		if arrived, ok := a.Arrived(); ok {
			at = arrived
		}
	}
	return tone.Level(e.frame) > audibleLevel, at, nil
}

// waitForAnswer waits until the other side has spoken and was silent for think.
// It returns the start of the speech.
func (e *speechListener) waitForAnswer(ctx context.Context, think, timeout time.Duration) (first time.Time, err error) {
	start, last := time.Now(), time.Time{}
	for ctx.Err() == nil {
		loud, at, err := e.read()
		switch {
		case err != nil:
			return first, err
		case loud && first.IsZero():
			first, last = at, at
		case loud:
			last = at
		case first.IsZero() && at.Sub(start) > timeout:
			return first, errSilence
		case !first.IsZero() && at.Sub(last) > think:
			return first, nil
		}
	}
	return first, io.EOF
}

func (e *speechListener) readUntil(done <-chan time.Time) (time.Time, error) {
	for {
		select {
		case at := <-done:
			return at, nil
		default:
			if _, _, err := e.read(); err != nil {
				return time.Time{}, err
			}
		}
	}
}
