package control

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// slowRecorder is a Recorder that takes a while to store a recording.
type slowRecorder struct{ takes time.Duration }

func (s slowRecorder) Record(_ string, leg media.Leg) (media.Leg, Recording, error) {
	return leg, s, nil
}

func (s slowRecorder) Close() (string, error) { <-time.After(s.takes); return "file", nil }

// TestRunnerEndsWithSlowDisk checks that a slow disk delays the end of a call by at most recordingCloseTimeout, and
// that Wait waits for the recording.
func TestRunnerEndsWithSlowDisk(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b := &memoryStore{}
			r := &Runner{
				Attempts: b, Live: &Live{}, Dialer: answerWith(&measuredLeg{}), Recorder: slowRecorder{takes},
				Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
					return pipeline.Outcome{Reason: pipeline.CallerHungUp}, nil
				}),
			}
			c := newClaim()
			c.Record = true
			began := time.Now()
			if err := r.Run(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > min(takes, recordingCloseTimeout) || b.final.Recording != RecordingFinalizing {
				t.Errorf("a disk that takes %v: the call ends after %v, its recording is %s", takes, took, b.final.Recording)
			}
			if r.Wait(); time.Since(began) != takes {
				t.Errorf("the node waited %v for a recording, want %v", time.Since(began), takes)
			}
		})
	}
}
