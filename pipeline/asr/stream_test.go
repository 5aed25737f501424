package asr

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// TestAnswerBesideFinalize checks that a message answers a Finalize that the deliverer receives at the same time.
func TestAnswerBesideFinalize(t *testing.T) {
	end := 100 * time.Millisecond
	answer := update{answer: true, Result: pipeline.Result{Text: "yes", Final: true, End: end}}
	for range 50 { // select picks a channel at random
		s := &stream{
			protocol: protocol{parse: func([]byte) (update, error) { return answer, nil }},
			stop:     make(chan struct{}), results: make(chan pipeline.Result, 1),
			received: make(chan []byte, 1), finalizes: make(chan time.Duration, 1),
		}
		s.finalizes <- end
		s.received <- nil
		s.wg.Go(s.deliver)
		if r := <-s.results; !r.Finalized {
			t.Fatalf("%+v does not answer the Finalize", r)
		}
		close(s.stop)
		s.wg.Wait()
	}
}
