package dtmf

import "sync"

// Durations of a digit, in frames of 20 ms.
const (
	DownFrames  = 5  // tone or event: 100 ms
	repeats     = 2  // retransmissions of the end packet (RFC 4733 section 2.5.1.4)
	keyFrames   = 8  // from one digit to the next, with a gap of 60 ms
	pauseFrames = 25 // of Pause
)

// maxQueued is the number of digits that may be queued: 10 seconds.
const maxQueued = 64

// A Step describes what one frame sends for a digit.
type Step struct {
	Busy  bool  // a digit or its gap replaces the audio
	Code  uint8 // event code
	Frame int   // index since the digit's beginning
}

// IsFirst reports whether the digit begins in this frame.
func (s Step) IsFirst() bool { return s.Busy && s.Frame == 0 }

// IsDown reports whether the digit is pressed in this frame.
func (s Step) IsDown() bool { return s.Busy && s.Frame < DownFrames }

// Event reports whether this frame sends an event packet (ok), the frames
// pressed so far, and whether it is an end packet.
func (s Step) Event() (frames int, end, ok bool) {
	return min(s.Frame+1, DownFrames), s.Frame+1 >= DownFrames, s.Busy && s.Frame < DownFrames+repeats
}

// A Dialer sends digits one after the other. Press may be called from any
// goroutine; Next belongs to one. Neither blocks or allocates.
type Dialer struct {
	queue chan rune
	mu    sync.Mutex // held by Press
	step  Step
	left  int // frames left of the digit or pause
}

// NewDialer returns a Dialer with an empty queue.
func NewDialer() *Dialer { return &Dialer{queue: make(chan rune, maxQueued)} }

// Press queues all keys, or none and returns an error.
func (d *Dialer) Press(keys string) error {
	if err := Validate(keys); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue)+len(keys) > maxQueued { // every digit is one byte
		return ErrFull
	}
	for _, k := range keys {
		d.queue <- k // cannot block: mu is held
	}
	return nil
}

// Next returns the step of the next frame.
func (d *Dialer) Next() Step {
	if d.left == 0 {
		select {
		case k := <-d.queue:
			d.begin(k)
		default:
			return Step{}
		}
	} else {
		d.step.Frame++
	}
	d.left--
	return d.step
}

func (d *Dialer) begin(k rune) {
	code, ok := Code(k)
	d.step, d.left = Step{Busy: ok, Code: code}, keyFrames
	if !ok {
		d.left = pauseFrames
	}
}
