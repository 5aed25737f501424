package conversation

import (
	"testing"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/turn"
)

// TestPatience checks that the patience of an agent reaches the turn machine.
func TestPatience(t *testing.T) {
	for patience, want := range map[pipeline.Patience]turn.Waits{
		"": {}, pipeline.Quick: turn.QuickWaits(), pipeline.Balanced: {}, pipeline.Careful: turn.CarefulWaits(),
	} {
		if got := new(Agent).policy(pipeline.SessionConfig{Patience: patience}).Waits; got != want {
			t.Errorf("%q: %v, want %v", patience, got, want)
		}
	}
}
