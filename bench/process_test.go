package bench

import (
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

// TestSilentRecognizerCloses checks that Close closes the results. Otherwise calls of the
// benchmark would not end.
func TestSilentRecognizerCloses(t *testing.T) {
	r, err := silentRecognizer{}.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, more := <-r.Results(); more {
		t.Error("got a result, want none")
	}
}
