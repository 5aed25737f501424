package control

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// A slowTape is on disk after a while.
type slowTape struct{ takes time.Duration }

func (s slowTape) Record(_ string, leg media.Leg) (media.Leg, Recording, error) { return leg, s, nil }

func (s slowTape) Close() (string, error) { <-time.After(s.takes); return "tape", nil }

// TestRunnerEndsOnASlowDisk: the end of a call does not wait for a disk that takes a
// minute to store its recording, and the node waits for the recording.
func TestRunnerEndsOnASlowDisk(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b := &book{}
			r := &Runner{
				Attempts: b, Live: &Live{}, Dialer: answer(&gaugedLeg{}), Recorder: slowTape{takes},
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
