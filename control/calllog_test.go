package control

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// lossyStore is a memoryStore that fails the first few writes of one state.
type lossyStore struct {
	memoryStore
	state AttemptState
	lose  int
}

func (b *lossyStore) Mark(ctx context.Context, l Lease, s AttemptState, at time.Time) error {
	b.mu.Lock()
	lost := s == b.state && b.lose > 0
	if lost {
		b.lose--
	}
	b.mu.Unlock()
	if lost {
		return errors.New("the database is unavailable")
	}
	return b.memoryStore.Mark(ctx, l, s, at)
}

func (b *lossyStore) written() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrote)
}

// TestLostMarksAreRepeated checks that a failed write of a state is retried during the conversation and before the
// next write, but not after a later state was written.
func TestLostMarksAreRepeated(t *testing.T) {
	for _, tt := range []struct {
		name string
		book *lossyStore
		say  bool
		want []string
	}{
		{"without another write", &lossyStore{state: Answered, lose: 3}, false, []string{"intent", "sent", "ringing", "answered"}},
		{"before the next line", &lossyStore{state: Answered, lose: 1}, true, []string{"intent", "sent", "ringing", "answered", "line"}},
		{"passed by a later one", &lossyStore{state: Rang, lose: 2}, false, []string{"intent", "sent", "answered"}},
		{"passed in time", &lossyStore{state: Sent, lose: 1}, false, []string{"intent", "sent", "ringing", "answered"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := tt.book
				r := &Runner{Attempts: b, Live: &Live{}, Dialer: answerWith(&silentLeg{}), Talker: talkFunc(func(_ context.Context, br pipeline.SessionConfig) (pipeline.Outcome, error) {
					if tt.say {
						br.Observer.OnLine(pipeline.Line{Text: "Hello."})
					}
					<-time.After(20 * time.Second)
					if got := b.written(); !slices.Equal(got, tt.want) {
						t.Errorf("during the conversation: wrote %v, want %v", got, tt.want)
					}
					return pipeline.Outcome{Reason: pipeline.CallerHungUp}, nil
				})}
				if err := r.Run(t.Context(), newClaim()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
