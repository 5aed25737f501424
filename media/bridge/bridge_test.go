package bridge

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
)

// keypadLeg is a leg that can send digits.
type keypadLeg struct {
	*mediatest.Leg
	keys strings.Builder
}

func (p *keypadLeg) Press(keys string) error {
	p.keys.WriteString(keys)
	return nil
}

// TestAudioBothDirections joins legs of all sample rates. It checks that each side receives the tone of the other side
// within 80 ms and at the right frequency.
func TestAudioBothDirections(t *testing.T) {
	for _, rates := range [][2]int{{8000, 8000}, {16000, 16000}, {8000, 16000}, {16000, 8000}} {
		synctest.Test(t, func(t *testing.T) {
			a, b := mediatest.NewLeg(rates[0]), mediatest.NewLeg(rates[1])
			a.Say(tone.Sine(rates[0], 2*rates[0], 440, 0.3))
			b.Say(tone.Sine(rates[1], 2*rates[1], 1000, 0.3))
			tapped := [2]atomic.Int64{}
			done := make(chan Outcome)
			go func() {
				out, err := Join(t.Context(), a, b, func(from Side, f media.Frame) { tapped[from].Add(int64(len(f))) })
				if err != nil {
					t.Error(err)
				}
				done <- out
			}()
			<-time.After(2 * time.Second)
			_ = a.Hangup(media.RemoteHangup)
			out := <-done
			if out.First != A || out.Cause != media.RemoteHangup || b.Cause() != media.LocalHangup {
				t.Errorf("%v: ended by %v: %s; the other %s", rates, out.First, out.Cause, b.Cause())
			}
			for _, row := range []struct {
				leg  *mediatest.Leg
				rate int
				hz   float64
			}{{a, rates[0], 1000}, {b, rates[1], 440}} {
				output := row.leg.Output()
				late := row.rate * 80 / 1000 // one frame in the leg, two in the queue, and the delay of the filter
				if len(output) < late+row.rate {
					t.Fatalf("%v: got %d samples, too few", rates, len(output))
				}
				if p := tone.Power(output[late:late+row.rate], row.rate, row.hz); p < 0.07 || p > 0.11 {
					t.Errorf("%v: %v Hz has a power of %.3f, want 0.09", rates, row.hz, p)
				}
			}
			for side, rate := range rates {
				if n := int(tapped[side].Load()); n < 2*rate-rate/25 || n > 2*rate {
					t.Errorf("%v: the tap got %d samples of side %d", rates, n, side)
				}
				if w := out.Directions[side]; w.Dropped != 0 || w.Filled != 0 || w.Passed < 90 {
					t.Errorf("%v: %+v", rates, w)
				}
			}
		})
	}
}

func TestJoinEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a, b := mediatest.NewLeg(8000), mediatest.NewLeg(8000)
		out, err := Join(ctx, a, b, nil)
		if err != nil || out.First != Neither || a.Cause() != media.LocalHangup || b.Cause() != media.LocalHangup {
			t.Errorf("%+v, %v: %s, %s", out, err, a.Cause(), b.Cause())
		}
	})
}

func TestDigitsAreForwarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &keypadLeg{Leg: mediatest.NewLeg(8000)}, mediatest.NewLeg(8000)
		for _, key := range "12#" {
			b.Press(key)
		}
		a.Leg.Press('9') // the other leg cannot send digits
		time.AfterFunc(time.Second, func() { _ = b.Hangup(media.RemoteHangup) })
		out, err := Join(t.Context(), a, b, nil)
		if err != nil || out.First != B || a.keys.String() != "12#" || out.Directions[B].Keys != 3 || out.Directions[A].KeysDropped != 1 {
			t.Errorf("pressed %q: %+v, %v", a.keys.String(), out, err)
		}
	})
}

// failingLeg is a leg whose ReadFrame returns an error.
type failingLeg struct{ *mediatest.Leg }

var errRead = errors.New("read failed")

func (failingLeg) ReadFrame(media.Frame) error { return errRead }

func TestJoinReturnsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := failingLeg{mediatest.NewLeg(8000)}, mediatest.NewLeg(8000)
		if out, err := Join(t.Context(), a, b, nil); !errors.Is(err, errRead) || out.First != A || b.Cause() == "" || a.Cause() == "" {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// instantLeg is a leg that returns a number of frames without waiting.
type instantLeg struct {
	*mediatest.Leg
	rate, left int
}

func (q *instantLeg) Rate() int { return q.rate }

func (q *instantLeg) ReadFrame(media.Frame) error {
	if q.left--; q.left < 0 {
		return io.EOF
	}
	return nil
}

func TestForwardingAllocatesNothing(t *testing.T) {
	for _, rates := range [][2]int{{8000, 8000}, {8000, 16000}, {16000, 8000}} {
		j := &bridge{legs: [2]media.Leg{&instantLeg{rate: rates[0]}, &instantLeg{rate: rates[1]}}}
		j.queues[A] = newQueue(rates[1])
		run := func(frames int) float64 {
			return testing.AllocsPerRun(1, func() {
				j.legs[A] = &instantLeg{rate: rates[0], left: frames}
				if err := j.forwardAudio(A); err != nil {
					t.Error(err)
				}
			})
		}
		if few, many := run(10), run(2000); many > few {
			t.Errorf("%v: %v allocations for 2000 frames, %v for 10", rates, many, few)
		}
	}
}
