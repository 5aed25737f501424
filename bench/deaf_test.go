package bench

import (
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

// TestDeafnessEnds: the recognizer of the media bench keeps to the contract,
// that what it tells is closed with it; else no call of the bench ends.
func TestDeafnessEnds(t *testing.T) {
	r, err := deaf{}.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, more := <-r.Results(); more {
		t.Error("it told something")
	}
}
