package siptest

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

// A Person holds a conversation in tone words: it lets the other side finish,
// says its next line, and leaves after the answer to its last one.
type Person struct {
	// Hello is said as soon as the call is answered; empty for nothing.
	Hello string
	Lines []string
	// Think is how long the other side must be silent before the person
	// speaks; 0 means 700 ms.
	Think time.Duration
	// Patience is how long the person waits to be spoken to; 0 means 15 s.
	Patience time.Duration
	// Heard, where set, is told of each exchange when it is over.
	Heard func(Exchange)
}

// An Exchange is one line of the person and what became of it. Exchange 0 is
// what the other side said first.
type Exchange struct {
	Number int
	Said   time.Time // when the last voiced packet of the line left; the answer of the call for number 0
	Answer time.Time // when the first audible packet of the answer arrived
}

// audibleLevel is what counts as speech on a clean line, dBFS.
const audibleLevel = -45

// Talk implements Script.Talk.
func (p Person) Talk(ctx context.Context, leg media.Leg) {
	mouth := &mouth{next: make(chan []int16, 1), done: make(chan time.Time, 1)}
	leg.Play(mouth)
	ear := &ear{leg: leg, frame: make(media.Frame, media.FrameLen(leg.Rate()))}
	said := time.Now()
	if p.Hello != "" {
		pcm, _ := tone.Say(leg.Rate(), p.Hello)
		mouth.say(pcm)
		if _, err := ear.until(mouth.done); err != nil {
			return
		}
	}
	for n := 0; ; n++ {
		answer, err := ear.listen(ctx, orElse(p.Think, 700*time.Millisecond), orElse(p.Patience, 15*time.Second))
		if p.Heard != nil && err == nil {
			p.Heard(Exchange{n, said, answer})
		}
		if err != nil || n == len(p.Lines) {
			return
		}
		pcm, _ := tone.Say(leg.Rate(), p.Lines[n])
		mouth.say(pcm)
		if said, err = ear.until(mouth.done); err != nil {
			return
		}
	}
}

func orElse(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

// A mouth says one line at a time. It is handed over by channel: the clock's
// side takes no lock.
type mouth struct {
	next chan []int16
	pcm  []int16
	done chan time.Time // when the last frame of the line left
}

func (m *mouth) say(pcm []int16) { m.next <- pcm }

// FillFrame implements media.Feed.
func (m *mouth) FillFrame(f media.Frame, due time.Time) {
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
		m.done <- due // there is room: one line is said at a time
	}
}

type ear struct {
	leg   media.Leg
	frame media.Frame
}

var errSilence = errors.New("nobody said anything")

// read reads a frame and tells whether there is speech in it, and when it came.
func (e *ear) read() (loud bool, at time.Time, err error) {
	if err := e.leg.ReadFrame(e.frame); err != nil {
		return false, at, err
	}
	at = time.Now()
	if a, ok := e.leg.(media.Arrival); ok {
		if came, measured := a.Arrived(); measured {
			at = came
		}
	}
	return tone.Level(e.frame) > audibleLevel, at, nil
}

// listen waits until the other side has spoken and was silent for think. It
// returns when the first sound came.
func (e *ear) listen(ctx context.Context, think, patience time.Duration) (first time.Time, err error) {
	began, last := time.Now(), time.Time{}
	for ctx.Err() == nil {
		loud, at, err := e.read()
		switch {
		case err != nil:
			return first, err
		case loud && first.IsZero():
			first, last = at, at
		case loud:
			last = at
		case first.IsZero() && at.Sub(began) > patience:
			return first, errSilence
		case !first.IsZero() && at.Sub(last) > think:
			return first, nil
		}
	}
	return first, io.EOF
}

// until reads on until a value comes.
func (e *ear) until(done <-chan time.Time) (time.Time, error) {
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
