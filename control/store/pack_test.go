package store_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/pipeline"
)

// TestPackedTranscript checks that a packed transcript reads exactly like one in rows, and that no rows are left.
func TestPackedTranscript(t *testing.T) {
	b := newFixture(t, 10, 600, "agent")
	packed := false
	b.store.Pack = func() bool { return packed }
	lines := []pipeline.Line{
		{Role: "agent", Text: "Hello <b>&</b> \"welcome\"\u2028", Start: 1, End: 1234500000, Turn: 0, Words: []pipeline.Word{{Text: "Hello", Start: 499999, End: 500000}}},
		{Role: "caller", Text: "да", Start: 2e9, End: 3e9, Turn: 1, Interrupted: true},
	}
	turns := []pipeline.Turn{{Number: 0}, {Number: 1, Reason: "<silence>", TokensIn: 12, MergedFrom: 2, Raw: map[string]time.Duration{"a": 1500 * time.Microsecond}}}
	var read [2]control.Transcript
	for n := range read {
		packed = n == 1
		id := b.order("agent", 1)[0]
		c := b.claim("n")
		b.advance(c, control.Answered)
		err := b.store.Note(t.Context(), c.Lease, control.Notes{Begins: true, Lines: lines[:1], Turns: turns[:1]})
		if err == nil {
			err = b.store.Finish(t.Context(), c.Lease, control.CallResult{
				Status: control.Ended, AnsweredAt: time.Now(), EndedAt: time.Now(), Recording: control.RecordingNone, Lines: lines, Turns: turns,
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if read[n], err = b.store.Transcript(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		items, err := b.store.Turns(t.Context(), b.org, id)
		if err != nil || !reflect.DeepEqual(items, read[n].Turns) {
			t.Errorf("packed %t: turns %s and %s, %v", packed, items, read[n].Turns, err)
		}
		var rows, packs int
		err = b.db.Pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM call_lines WHERE call_id = $1) + (SELECT count(*) FROM call_turns WHERE call_id = $1),
			(SELECT count(*) FROM call_packs WHERE call_id = $1)`, id).Scan(&rows, &packs)
		if want := [2]int{4, 0}; err != nil || packed && (rows != 0 || packs != 1) || !packed && [2]int{rows, packs} != want {
			t.Errorf("packed %t: %d rows, %d packs, %v", packed, rows, packs, err)
		}
	}
	var shown [2]string
	for n, w := range read {
		text, err := json.Marshal(callview.View{}.Call(control.Call{}, w))
		if err != nil {
			t.Fatal(err)
		}
		shown[n] = string(text)
	}
	if len(read[0].Lines) != 2 || len(read[0].Turns) != 2 || shown[0] != shown[1] || !reflect.DeepEqual(read[0].Turns, read[1].Turns) {
		t.Errorf("rows\n%s\npack\n%s", shown[0], shown[1])
	}
}
