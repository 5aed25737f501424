package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/pipeline"
)

// TestTranscriptParts checks that lines and turns of many calls, which are written together, are all stored with their
// call, also beside a call whose lease is lost, and that an ended call gets no more.
func TestTranscriptParts(t *testing.T) {
	const calls, each = 12, 5
	b := newFixture(t, 100, 6000, "agent")
	ids := b.order("agent", calls)
	leases := make([]control.Lease, calls)
	for i := range leases {
		c := b.claim("n")
		b.advance(c, control.Answered)
		leases[i] = c.Lease
	}
	leases[0].Epoch--
	lost, ended := leases[0], leases[1]
	var all sync.WaitGroup
	for _, l := range leases {
		all.Go(func() {
			for n := range each {
				err := b.store.Note(t.Context(), l, control.Notes{
					Lines: []pipeline.Line{{Role: pipeline.RoleAgent, Text: fmt.Sprintf("%s %d", l.CallID, n)}}, FirstLine: n,
					Turns: []pipeline.Turn{{Number: n}}, FirstTurn: n,
				})
				if l != lost && err != nil || l == lost && !errors.Is(err, control.ErrFenced) {
					t.Errorf("%s: %v", l.CallID, err)
				}
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		got, err := b.store.Transcript(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var texts, want []string
		for _, l := range got.Lines {
			texts = append(texts, l.Text)
		}
		for n := range each {
			if id != lost.CallID {
				want = append(want, fmt.Sprintf("%s %d", id, n))
			}
		}
		if !slices.Equal(texts, want) || len(got.Turns) != len(want) {
			t.Errorf("%s: lines %q and %d turns, want %q", id, texts, len(got.Turns), want)
		}
	}
	b.exec("UPDATE attempts SET state = 'ended' WHERE id = $1", ended.AttemptID)
	if err := b.store.Note(t.Context(), ended, control.Notes{Turns: []pipeline.Turn{{}}, FirstTurn: each}); !errors.Is(err, control.ErrFenced) {
		t.Errorf("a note after the end: %v", err)
	}
	if n := dbtest.Value[int](t, b.db, "SELECT count(*) FROM call_turns WHERE call_id = '"+ended.CallID+"'"); n != each {
		t.Errorf("%d turns after the end", n)
	}
}
