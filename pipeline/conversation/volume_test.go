package conversation_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// TestVolumeRestored checks that the agent answers at full volume if the caller began to speak just as the agent
// ended.
func TestVolumeRestored(t *testing.T) {
	loudest := func(pcm []int16) (p float64) {
		for _, x := range pcm {
			p = math.Max(p, math.Abs(float64(x)))
		}
		return p
	}
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: "hello this is parley"})
		c.pass(2500 * time.Millisecond)
		c.say("one two")
		c.pass(1010 * time.Millisecond) // the last word of the answer
		c.say("thank you very much indeed")
		c.pass(300 * time.Millisecond)
		n := len(c.Output())
		c.pass(3 * time.Second)
		heard := c.Output()
		c.hangup()
		if got, want := loudest(heard[n:]), loudest(heard); got < 0.9*want {
			t.Errorf("the answer's peak is %v, the greeting's %v", got, want)
		}
	})
}
