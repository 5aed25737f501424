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

// A blot is a book that loses the first marks of one state.
type blot struct {
	book
	state AttemptState
	lose  int
}

func (b *blot) Mark(ctx context.Context, l Lease, s AttemptState, at time.Time) error {
	b.mu.Lock()
	lost := s == b.state && b.lose > 0
	if lost {
		b.lose--
	}
	b.mu.Unlock()
	if lost {
		return errors.New("the database is away")
	}
	return b.book.Mark(ctx, l, s, at)
}

func (b *blot) written() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrote)
}

// TestLostMarksAreRepeated while the conversation goes on, before what comes
// next, and not after a later one went through.
func TestLostMarksAreRepeated(t *testing.T) {
	for _, tt := range []struct {
		name string
		book *blot
		say  bool
		want []string
	}{
		{"by itself", &blot{state: Answered, lose: 3}, false, []string{"intent", "sent", "ringing", "answered"}},
		{"before the next line", &blot{state: Answered, lose: 1}, true, []string{"intent", "sent", "ringing", "answered", "line"}},
		{"passed by a later one", &blot{state: Rang, lose: 2}, false, []string{"intent", "sent", "answered"}},
		{"passed in time", &blot{state: Sent, lose: 1}, false, []string{"intent", "sent", "ringing", "answered"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := tt.book
				r := &Runner{Attempts: b, Live: &Live{}, Dialer: answer(&still{}), Talker: talkFunc(func(_ context.Context, br pipeline.SessionConfig) (pipeline.Outcome, error) {
					if tt.say {
						br.Observer.OnLine(pipeline.Line{Text: "Hello."})
					}
					<-time.After(20 * time.Second)
					if got := b.written(); !slices.Equal(got, tt.want) {
						t.Errorf("in mid conversation the ledger knows %v, want %v", got, tt.want)
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
