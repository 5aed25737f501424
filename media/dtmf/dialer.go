package dtmf

import (
	"sync"
	"sync/atomic"
)

// Durations in frames of 20 ms.
const (
	DownFrames  = 5   // duration of a tone or event: 100 ms
	repeats     = 2   // repetitions of the end packet (RFC 4733 section 2.5.1.4)
	keyFrames   = 8   // from the start of one digit to the next; the gap is 60 ms
	pauseFrames = 100 // duration of the character Pause: 2 s
)

// maxQueued is the maximum number of digits in the queue: 10 seconds, or 2 minutes of pauses.
const maxQueued = 64

// Step says what is sent in one frame for a digit.
type Step struct {
	Busy  bool  // a digit, or the gap after it, replaces the audio
	Code  uint8 // event code of the digit
	Frame int   // number of the frame since the digit began, from 0
}

// IsFirst reports whether a digit begins in this frame.
func (s Step) IsFirst() bool { return s.Busy && s.Frame == 0 }

// IsDown reports whether the digit is pressed in this frame.
func (s Step) IsDown() bool { return s.Busy && s.Frame < DownFrames }

// Event reports whether an event packet is sent in this frame (ok). It also returns for how many frames the digit has
// been pressed, and whether the packet is an end packet.
func (s Step) Event() (frames int, end, ok bool) {
	return min(s.Frame+1, DownFrames), s.Frame+1 >= DownFrames, s.Busy && s.Frame < DownFrames+repeats
}

// Dialer sends digits one after the other. Press may be called from any goroutine, Next from one only. Neither
// allocates. The zero value has an empty queue.
type Dialer struct {
	waiting atomic.Int64 // number of keys in queue; lets Next skip the lock
	step    Step
	left    int // remaining frames of the digit or pause

	mu    sync.Mutex // held while queue is used
	queue [maxQueued]rune
}

// Press adds keys to the queue. If the queue lacks room or a key is invalid, it adds none and returns an error.
func (d *Dialer) Press(keys string) error {
	if err := Validate(keys); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := int(d.waiting.Load())
	if n+len(keys) > maxQueued { // in a valid text every digit is one byte
		return ErrFull
	}
	for i, k := range keys {
		d.queue[n+i] = k
	}
	d.waiting.Store(int64(n + len(keys)))
	return nil
}

// Next returns what to send in the next frame.
func (d *Dialer) Next() Step {
	switch {
	case d.left > 0:
		d.step.Frame++
	case d.waiting.Load() == 0:
		return Step{}
	default:
		d.begin(d.take())
	}
	d.left--
	return d.step
}

// take removes the first key from the queue, which must not be empty.
func (d *Dialer) take() rune {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, k := d.waiting.Load(), d.queue[0]
	copy(d.queue[:], d.queue[1:n])
	d.waiting.Store(n - 1)
	return k
}

func (d *Dialer) begin(k rune) {
	code, ok := Code(k)
	d.step, d.left = Step{Busy: ok, Code: code}, keyFrames
	if !ok {
		d.left = pauseFrames
	}
}
