package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/pipeline"
)

// say stores lines of a call: "caller: text" or "agent: text".
func (b *fixture) say(id string, lines ...string) {
	b.t.Helper()
	for n, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		item, err := json.Marshal(map[string]any{"role": role, "text": text, "start": time.Duration(n) * time.Second, "end": time.Duration(n+1) * time.Second})
		if err != nil {
			b.t.Fatal(err)
		}
		b.exec("INSERT INTO call_lines (call_id, n, item) VALUES ($1, $2, $3)", id, n, item)
	}
}

// TestIdleIndexer checks that a step without an ended call is one statement.
func TestIdleIndexer(t *testing.T) {
	b := newFixture(t, 100, 60, "a")
	pool, statements := dbtest.Traced(t, b.db)
	n, err := (&store.WordIndexer{Pool: pool}).Step(t.Context())
	if all := statements(); n != 0 || err != nil || len(all) != 1 {
		t.Errorf("%d calls, %v; statements %q", n, err, all)
	}
}

// index stores the words of all ended calls.
func (b *fixture) index() {
	b.t.Helper()
	for {
		n, err := (&store.WordIndexer{Pool: b.db.Pool}).Step(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// search returns the ids of the calls on which something was said, newest first.
func (b *fixture) search(text string) []string {
	b.t.Helper()
	p, err := b.store.List(b.t.Context(), store.Filter{OrgID: b.org, Text: text, Limit: 100})
	if err != nil {
		b.t.Fatal(err)
	}
	ids := []string{}
	for _, c := range p.Calls {
		ids = append(ids, c.ID)
	}
	return ids
}

const callID = "call_%026d"

// TestTextSearchMatches compares lists by text, with other filters, in small pages, and in both orders with one plain
// query. The calls are 7 hours apart, so that spans of all lengths occur.
func TestTextSearchMatches(t *testing.T) {
	const calls = 150
	b := newFixture(t, 10, 60)
	b.insertCalls(calls)
	b.exec("UPDATE calls SET created_at = timestamptz '2025-12-20 00:00:00Z' + right(id, 9)::int / 2 * interval '7 hours', answered_at = created_at, ended_at = created_at, status = 'ended'")
	b.exec(`INSERT INTO call_lines (call_id, n, item) SELECT id, 0, json_build_object('role', 'caller', 'text', 'alpha'
		|| CASE WHEN n % 3 = 0 THEN ' beta' ELSE '' END || CASE WHEN n % 40 = 5 THEN ' gamma' ELSE '' END)::json FROM calls, LATERAL (SELECT right(id, 9)::int AS n) x`)
	b.exec("INSERT INTO call_word_changes (call_id) SELECT id FROM calls")
	b.exec("INSERT INTO call_tags (call_id, tag, org_id, author) SELECT id, 'even', org_id, 'ada' FROM calls WHERE right(id, 9)::int % 2 = 0")
	b.exec("INSERT INTO call_scores (call_id, score, org_id, author) SELECT id, 1 + right(id, 9)::int % 5, org_id, 'ada' FROM calls")
	b.index()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"alpha", "beta", "gamma", "delta"}).Draw(t, "word")
		f := store.Filter{OrgID: b.org, Limit: rapid.IntRange(1, 60).Draw(t, "limit"), Ascending: rapid.Bool().Draw(t, "ascending"), Text: word}
		conds := []string{"org_id = '" + b.org + "'", "erased_at IS NULL", "EXISTS (SELECT FROM call_lines l WHERE l.call_id = id AND l.item->>'text' LIKE '%" + word + "%')"}
		if rapid.Bool().Draw(t, "trunk") {
			f.Trunks = []string{"trk_1"}
			conds = append(conds, "trunk_id = 'trk_1'")
		}
		if rapid.IntRange(0, 3).Draw(t, "contact") == 0 {
			f.Contacts = []string{"con_7", "con_84", "con_105"}
			conds = append(conds, "contact_id IN ('con_7', 'con_84', 'con_105')")
		}
		if rapid.IntRange(0, 3).Draw(t, "tag") == 0 {
			f.Tag = "even"
			conds = append(conds, "right(id, 9)::int % 2 = 0")
		}
		if rapid.IntRange(0, 3).Draw(t, "score") == 0 {
			f.Scores = []int{2, 5}
			conds = append(conds, "right(id, 9)::int % 5 IN (1, 4)")
		}
		if rapid.IntRange(0, 3).Draw(t, "no words") == 0 {
			f.Text = ""
			conds[2] = "true"
		}
		bound := func(name, op string) *time.Time {
			if rapid.IntRange(0, 2).Draw(t, name) > 0 {
				return nil
			}
			at := time.Date(2025, 12, 20, 7*rapid.IntRange(0, 80).Draw(t, name+" at"), 0, 0, 0, time.UTC)
			conds = append(conds, fmt.Sprintf("created_at %s '%s'", op, at.Format(time.RFC3339)))
			return &at
		}
		f.CreatedAfter, f.CreatedBefore = bound("after", ">"), bound("before", "<")
		b.store.Scan = rapid.SampledFrom([]int{1, 5, 1000}).Draw(t, "scan")

		order := " ORDER BY created_at, id"
		want := dbtest.Value[[]string](b.t, b.db, "SELECT coalesce(array_agg(id"+order+"), '{}') FROM calls WHERE "+strings.Join(conds, " AND "))
		if !f.Ascending {
			slices.Reverse(want)
		}
		if got := b.listAll(t, f, calls); !slices.Equal(got, want) {
			t.Fatalf("%+v\n got %v\nwant %v", f, got, want)
		}
	})
}

// TestTextSearchLanguage searches sentences in three languages.
func TestTextSearchLanguage(t *testing.T) {
	b := newFixture(t, 10, 60)
	b.insertCalls(12) // calls 6 and 12 ended with an answer, and so did 2 and 8
	said := map[int][]string{
		6:  {"agent: Hello, this is the book shop.", "caller: I ordered two books last week, and an atlas.", "tool: {\"secret\":\"zebra\"}"},
		12: {"agent: Здравствуйте, это книжный магазин.", "caller: Я заказывал книги на прошлой неделе."},
		2:  {"agent: Сәлеметсіз бе, бұл кітап дүкені.", "caller: Кітаптарым қашан келеді?"},
	}
	for n, lines := range said {
		b.say(fmt.Sprintf(callID, n), lines...)
	}
	b.index()
	for text, want := range map[string][]int{
		"book": {6}, "ordering": {6}, `"two books"`: {6}, `"books two"`: {}, "atlas shop": {6}, "atlas -week": {}, "zebra": {},
		"книга": {12}, "неделя": {12}, "кітаптарым": {2}, "дүкені": {2}, "ДҮКЕНІ": {2}, "Книжный": {12}, "atlas or дүкені": {6, 2}, "'; DROP": {}, "@": nil, "the": nil, "-book": nil,
	} {
		ids := []string{}
		for _, n := range want {
			ids = append(ids, fmt.Sprintf(callID, n))
		}
		_, err := b.store.List(t.Context(), store.Filter{OrgID: b.org, Text: text, Limit: 10})
		if want == nil {
			if control.CodeOf(err) != control.CodeInvalidFilter {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if got := b.search(text); !slices.Equal(got, ids) {
			t.Errorf("%q: %v, want %v", text, got, ids)
		}
	}
	if _, err := b.store.List(t.Context(), store.Filter{OrgID: b.org, Text: strings.Repeat("a ", 101), Limit: 10}); control.CodeOf(err) != control.CodeInvalidFilter {
		t.Errorf("a long query: %v", err)
	}
	if p, err := b.store.List(t.Context(), store.Filter{OrgID: "org_other", Text: "book", Limit: 10}); err != nil || len(p.Calls) > 0 {
		t.Errorf("another organization finds %d calls, %v", len(p.Calls), err)
	}
	six, two := fmt.Sprintf(callID, 6), fmt.Sprintf(callID, 2)
	found, err := store.Excerpts(t.Context(), b.db.Pool, []string{two, six}, "atlas Book")
	want := store.Excerpt{Line: 1, Role: "caller", Start: time.Second, Parts: []store.ExcerptPart{
		{Text: "I ordered two "}, {Text: "books", Hit: true}, {Text: " last week, and an "}, {Text: "atlas", Hit: true}, {Text: "."},
	}}
	if got, ok := found[six]; err != nil || !ok || fmt.Sprint(got) != fmt.Sprint(want) || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestWordsFollowTranscripts checks that the words of a call are stored when it ends, that they follow a transcript that is
// stored later, and that they go with it.
func TestWordsFollowTranscripts(t *testing.T) {
	b := newFixture(t, 10, 60, "sales")
	b.store.Pack = func() bool { return true }
	id := b.order("sales", 1)[0]
	c := b.claim("n")
	finish := func(text string) {
		t.Helper()
		now := time.Now()
		err := b.store.Finish(t.Context(), c.Lease, control.CallResult{
			Status: control.Ended, Reason: "callee_hangup", DialedAt: now, AnsweredAt: now, EndedAt: now,
			Lines: []pipeline.Line{{Role: "caller", Text: text, End: time.Second}},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.index()
	}
	b.say(id, "caller: draft")
	b.index()
	if got := b.search("draft"); len(got) > 0 {
		t.Errorf("the words of an active call are stored: %v", got)
	}
	finish("harbor")
	if got := b.search("harbor"); !slices.Equal(got, []string{id}) {
		t.Errorf("%v", got)
	}
	var pack []byte
	if err := b.db.Pool.QueryRow(t.Context(), "SELECT pack FROM call_packs WHERE call_id = $1", id).Scan(&pack); err != nil {
		t.Fatal(err)
	}
	b.exec("DELETE FROM call_packs")
	if n := dbtest.Value[int](t, b.db, "SELECT count(*) FROM call_words"); n != 0 {
		t.Errorf("%d rows of words are left without a transcript", n)
	}
	b.exec("INSERT INTO call_packs (call_id, pack) VALUES ($1, $2)", id, pack)
	b.index()
	if got := b.search("harbor"); len(got) != 1 {
		t.Errorf("the words of a restored transcript are missing")
	}
}

// TestWordsOfDeletedTranscript deletes a transcript between the reading and the writing of its words. They must not stay.
func TestWordsOfDeletedTranscript(t *testing.T) {
	b := newFixture(t, 10, 60)
	b.insertCalls(6)
	id := fmt.Sprintf(callID, 6)
	b.say(id, "caller: harbor")
	b.exec("TRUNCATE call_word_changes")
	b.exec("INSERT INTO call_word_changes (call_id) VALUES ($1)", id)
	tx, err := b.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = tx.Exec(t.Context(), "LOCK TABLE call_words IN SHARE MODE"); err != nil { // no words can be written
		t.Fatal(err)
	}
	waiting := func(n int) {
		t.Helper()
		for dbtest.Value[int](t, b.db, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") < n {
			if t.Context().Err() != nil {
				t.Fatal("nobody waits")
			}
		}
	}
	done := make(chan error, 2)
	go func() {
		_, fault := (&store.WordIndexer{Pool: b.db.Pool}).Step(context.WithoutCancel(t.Context()))
		done <- fault
	}()
	waiting(1)
	go func() {
		_, fault := b.db.Pool.Exec(context.WithoutCancel(t.Context()), "DELETE FROM call_lines")
		done <- fault
	}()
	waiting(2)
	if err = tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err = <-done; err != nil {
			t.Error(err)
		}
	}
	if n := dbtest.Value[int](t, b.db, "SELECT count(*) FROM call_words"); n != 0 {
		t.Error("the words of a deleted transcript are stored")
	}
}
