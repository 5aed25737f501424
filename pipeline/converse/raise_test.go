package converse_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

// TestVoiceIsRaisedAgain: a caller who begins while the agent ends is answered
// with full voice.
func TestVoiceIsRaisedAgain(t *testing.T) {
	loudest := func(pcm []int16) (p float64) {
		for _, x := range pcm {
			p = math.Max(p, math.Abs(float64(x)))
		}
		return p
	}
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fake.Typical(), pipeline.Brief{Greeting: "hello this is parley"})
		c.pass(2500 * time.Millisecond)
		c.say("one two")
		c.pass(1010 * time.Millisecond) // the answer's last word
		c.say("thank you very much indeed")
		c.pass(300 * time.Millisecond)
		n := len(c.Heard())
		c.pass(3 * time.Second)
		heard := c.Heard()
		c.hangup()
		if got, want := loudest(heard[n:]), loudest(heard); got < 0.9*want {
			t.Errorf("the answer's peak is %v, the greeting's %v", got, want)
		}
	})
}
