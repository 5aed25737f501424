package control

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
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

// noteStore keeps the notes that are written.
type noteStore struct {
	memoryStore
	notes []Notes
}

func (b *noteStore) Note(ctx context.Context, l Lease, n Notes) error {
	b.notes = append(b.notes, n)
	return b.memoryStore.Note(ctx, l, n)
}

// TestNotesTogether checks that lines and turns that wait for the database are written together, up to the next state, each
// once and with its index.
func TestNotesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &noteStore{memoryStore: memoryStore{noteWait: make(chan struct{})}}
		j := openCallLog(t.Context(), b, Lease{}, slog.New(slog.DiscardHandler))
		j.OnLine(pipeline.Line{Text: "a"})
		synctest.Wait() // the database has the first line
		j.OnLine(pipeline.Line{Text: "b"})
		j.OnTurn(pipeline.Turn{Number: 1})
		j.OnLine(pipeline.Line{Text: "c"})
		j.mark(Answered, time.Now())
		j.OnTurn(pipeline.Turn{Number: 2})
		close(b.noteWait)
		j.close()
		want := []Notes{
			{Lines: []pipeline.Line{{Text: "a"}}},
			{Lines: []pipeline.Line{{Text: "b"}, {Text: "c"}}, FirstLine: 1, Turns: []pipeline.Turn{{Number: 1}}},
			{FirstLine: 3, Turns: []pipeline.Turn{{Number: 2}}, FirstTurn: 1},
		}
		if !reflect.DeepEqual(b.notes, want) {
			t.Errorf("notes %+v, want %+v", b.notes, want)
		}
		if wrote := []string{"line", "line", "line", "turn", "answered", "turn"}; !slices.Equal(b.wrote, wrote) {
			t.Errorf("wrote %v, want %v", b.wrote, wrote)
		}
	})
}
