// Package mediatest provides a leg in memory for tests, with prepared input and recorded output. It also measures how
// late timers fire.
package mediatest

import (
	"io"
	"math"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
)

// Leg is a media.Leg in memory. It uses tickers, so its timing is exact in a synctest bubble.
type Leg struct {
	rate    int
	done    chan struct{}
	stopped chan struct{}
	tick    *time.Ticker
	start   time.Time // time of creation; the first frame is due a frame later
	at      time.Time // arrival time of the frame last read

	mu        sync.Mutex
	feed      media.Feed
	input     []int16 // audio that ReadFrame will return
	output    []int16
	echoDelay int     // delay of the echo, in samples
	echoGain  float64 // gain of the echo; 0 means no echo
	cause     media.Cause
	digits    chan rune
}

// NewLeg returns a leg with a sample rate in Hz. It is active until Hangup.
func NewLeg(rate int) *Leg {
	l := &Leg{
		rate: rate, done: make(chan struct{}), stopped: make(chan struct{}),
		tick: time.NewTicker(media.FrameTime), start: time.Now(), digits: make(chan rune, 16),
	}
	go l.play()
	return l
}

// Say adds pcm to the input, beginning with the next frame.
func (l *Leg) Say(pcm []int16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.input = append(l.input, pcm...)
}

// Echo mixes the output into the input, delayed by d and multiplied by gain. d must be at least one frame, so that the
// output exists when ReadFrame needs it.
func (l *Leg) Echo(d time.Duration, gain float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.echoDelay, l.echoGain = int(d*time.Duration(l.rate)/time.Second), gain
}

// Press adds a DTMF digit to the input.
func (l *Leg) Press(key rune) { l.digits <- key }

// Output returns all audio that was sent to the leg.
func (l *Leg) Output() []int16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int16(nil), l.output...)
}

func (l *Leg) play() {
	defer close(l.stopped)
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
			l.output = append(l.output, f...)
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
	clear(f[copy(f, l.input):])
	l.input = l.input[min(len(f), len(l.input)):]
	// Compute the position from the time, because play may run before or after this code in the same tick.
	due := int(l.at.Sub(l.start)/media.FrameTime) * len(f)
	if from := due - l.echoDelay - len(f); l.echoGain > 0 && from >= 0 && from+len(f) <= len(l.output) {
		for i, x := range l.output[from : from+len(f)] {
			f[i] += int16(l.echoGain * float64(x))
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

// Hangup implements media.Leg. When it returns, the feed is not called any more.
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
	<-l.stopped
	return nil
}

// Cause implements media.Leg.
func (l *Leg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Tone returns a feed that plays a sine at hz (Hz) with a quarter of the full amplitude.
func Tone(hz float64) media.Feed {
	n := 0
	return media.FeedFunc(func(f media.Frame, _ time.Time) {
		rate := float64(len(f)) * float64(time.Second/media.FrameTime)
		for i := range f {
			f[i] = int16(8000 * math.Sin(2*math.Pi*hz*float64(n)/rate))
			n++
		}
	})
}
