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

// A pad is a leg that can press keys.
type pad struct {
	*mediatest.Leg
	keys strings.Builder
}

func (p *pad) Press(keys string) error {
	p.keys.WriteString(keys)
	return nil
}

// TestPartiesHearEachOther joins legs of all rates: each party hears the
// other's tone, soon and at its frequency.
func TestPartiesHearEachOther(t *testing.T) {
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
				heard := row.leg.Heard()
				late := row.rate * 80 / 1000 // a frame in the leg, two in the queue, the filter
				if len(heard) < late+row.rate {
					t.Fatalf("%v: heard %d samples", rates, len(heard))
				}
				if p := tone.Power(heard[late:late+row.rate], row.rate, row.hz); p < 0.07 || p > 0.11 {
					t.Errorf("%v: %v Hz has a power of %.3f, said 0.09", rates, row.hz, p)
				}
			}
			for side, rate := range rates {
				if n := int(tapped[side].Load()); n < 2*rate-rate/25 || n > 2*rate {
					t.Errorf("%v: the tap heard %d samples of side %d", rates, n, side)
				}
				if w := out.Ways[side]; w.Dropped != 0 || w.Filled != 0 || w.Passed < 90 {
					t.Errorf("%v: %+v", rates, w)
				}
			}
		})
	}
}

func TestJoinEndsWithItsContext(t *testing.T) {
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

func TestKeysArePassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &pad{Leg: mediatest.NewLeg(8000)}, mediatest.NewLeg(8000)
		for _, key := range "12#" {
			b.Press(key)
		}
		a.Leg.Press('9') // the other has no keypad
		time.AfterFunc(time.Second, func() { _ = b.Hangup(media.RemoteHangup) })
		out, err := Join(t.Context(), a, b, nil)
		if err != nil || out.First != B || a.keys.String() != "12#" || out.Ways[B].Keys != 3 || out.Ways[A].Unheard != 1 {
			t.Errorf("pressed %q: %+v, %v", a.keys.String(), out, err)
		}
	})
}

// A flawed leg fails to be read.
type flawed struct{ *mediatest.Leg }

var errFlaw = errors.New("flaw")

func (flawed) ReadFrame(media.Frame) error { return errFlaw }

func TestJoinTellsWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := flawed{mediatest.NewLeg(8000)}, mediatest.NewLeg(8000)
		if out, err := Join(t.Context(), a, b, nil); !errors.Is(err, errFlaw) || out.First != A || b.Cause() == "" || a.Cause() == "" {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// A quick leg says a number of frames as fast as they are read.
type quick struct {
	*mediatest.Leg
	rate, left int
}

func (q *quick) Rate() int { return q.rate }

func (q *quick) ReadFrame(media.Frame) error {
	if q.left--; q.left < 0 {
		return io.EOF
	}
	return nil
}

func TestCarryingAllocatesNothing(t *testing.T) {
	for _, rates := range [][2]int{{8000, 8000}, {8000, 16000}, {16000, 8000}} {
		j := &join{legs: [2]media.Leg{&quick{rate: rates[0]}, &quick{rate: rates[1]}}}
		j.queues[A] = newQueue(rates[1])
		run := func(frames int) float64 {
			return testing.AllocsPerRun(1, func() {
				j.legs[A] = &quick{rate: rates[0], left: frames}
				if err := j.carry(A); err != nil {
					t.Error(err)
				}
			})
		}
		if few, many := run(10), run(2000); many > few {
			t.Errorf("%v: %v allocations for 2000 frames, %v for 10", rates, many, few)
		}
	}
}
