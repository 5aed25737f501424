// Package mediatest holds a leg without a network, for tests: what the caller
// says is scripted, and what it hears is kept; and tells how late the machine is.
package mediatest

import (
	"io"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Leg is a media.Leg in memory that runs on the clock of its goroutine, so
// that it keeps perfect time in a synctest bubble.
type Leg struct {
	rate int
	done chan struct{}
	over chan struct{}
	tick *time.Ticker
	at   time.Time // of the frame last read

	mu     sync.Mutex
	feed   media.Feed
	speech []int16 // what the caller is about to say
	heard  []int16
	late   int     // samples by which what is heard comes back
	back   float64 // how much of it does
	cause  media.Cause
	digits chan rune
}

// NewLeg returns a leg at rate (Hz) that lives from now until Hangup.
func NewLeg(rate int) *Leg {
	l := &Leg{
		rate: rate, done: make(chan struct{}), over: make(chan struct{}),
		tick: time.NewTicker(media.FrameTime), digits: make(chan rune, 16),
	}
	go l.play()
	return l
}

// Say adds pcm to what the caller says, from the next frame on.
func (l *Leg) Say(pcm []int16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.speech = append(l.speech, pcm...)
}

// Echo has the line return what is heard, after d and at gain.
func (l *Leg) Echo(d time.Duration, gain float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late, l.back = int(d*time.Duration(l.rate)/time.Second), gain
}

// Press presses a key.
func (l *Leg) Press(key rune) { l.digits <- key }

// Heard returns all that the leg was sent so far, from its beginning.
func (l *Leg) Heard() []int16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int16(nil), l.heard...)
}

func (l *Leg) play() {
	defer close(l.over)
	t := time.NewTicker(media.FrameTime)
	defer t.Stop()
	f := make(media.Frame, media.FrameLen(l.rate))
	for {
		select {
		case <-l.done:
			return
		case due := <-t.C:
			l.mu.Lock()
			clear(f)
			if l.feed != nil {
				l.feed.FillFrame(f, due)
			}
			l.heard = append(l.heard, f...)
			l.mu.Unlock()
		}
	}
}

// Rate implements media.Leg.
func (l *Leg) Rate() int { return l.rate }

// ReadFrame implements media.Leg.
func (l *Leg) ReadFrame(f media.Frame) error {
	select {
	case <-l.done:
		return io.EOF
	case l.at = <-l.tick.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(f[copy(f, l.speech):])
	l.speech = l.speech[min(len(f), len(l.speech)):]
	if from := len(l.heard) - l.late - len(f); l.back > 0 && from >= 0 {
		for i, x := range l.heard[from : from+len(f)] {
			f[i] += int16(l.back * float64(x))
		}
	}
	return nil
}

// Arrived implements media.Arrival.
func (l *Leg) Arrived() (time.Time, bool) { return l.at, true }

// Play implements media.Leg.
func (l *Leg) Play(feed media.Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feed = feed
}

// Digits implements media.Leg.
func (l *Leg) Digits() <-chan rune { return l.digits }

// Hangup implements media.Leg. It returns when the feed is asked no more.
func (l *Leg) Hangup(c media.Cause) error {
	l.mu.Lock()
	first := l.cause == ""
	if first {
		l.cause = c
		l.tick.Stop()
		close(l.done)
		close(l.digits)
	}
	l.mu.Unlock()
	<-l.over
	return nil
}

// Cause implements media.Leg.
func (l *Leg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}
