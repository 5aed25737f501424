package dtmf

import "sync"

// What a key takes, in frames of 20 ms.
const (
	Held        = 5  // it is down: 100 ms
	repeats     = 2  // times that its end is told again (RFC 4733 section 2.5.1.4)
	keyFrames   = 8  // to the beginning of the next: 60 ms after its end
	pauseFrames = 25 // of Pause
)

// queued is how many keys may wait: 10 seconds of them.
const queued = 64

// A Step is what a frame does for the keys.
type Step struct {
	Busy  bool  // a key is down, or has just been: nothing else is heard
	Code  uint8 // of the key
	Frame int   // from the beginning of the key, from 0
}

// First says that the key goes down in this frame.
func (s Step) First() bool { return s.Busy && s.Frame == 0 }

// Down says that the key is down in this frame.
func (s Step) Down() bool { return s.Busy && s.Frame < Held }

// Event says that a packet tells of the key in this frame, and how many frames
// it has been down by the end of it.
func (s Step) Event() (frames int, end, ok bool) {
	return min(s.Frame+1, Held), s.Frame+1 >= Held, s.Busy && s.Frame < Held+repeats
}

// A Dialer presses keys one after the other. Press may be called from any
// goroutine; Next belongs to one, and neither waits nor allocates.
type Dialer struct {
	queue chan rune
	mu    sync.Mutex // held by who presses
	step  Step
	left  int // frames of the key or pause
}

// NewDialer returns a Dialer that presses nothing yet.
func NewDialer() *Dialer { return &Dialer{queue: make(chan rune, queued)} }

// Press has keys pressed once those before them are: all of them, or none and
// an error.
func (d *Dialer) Press(keys string) error {
	if err := Check(keys); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue)+len(keys) > queued { // a key is a byte
		return ErrFull
	}
	for _, k := range keys {
		d.queue <- k // only the others of mu could fill it
	}
	return nil
}

// Next is what to do in the next frame.
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
