package calls_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

// TestAnnotations adds a tag, a score and a note, filters by them, and removes them. The audit log has each change, but no text
// of a tag or a note.
func TestAnnotations(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	b := h.SignIn(t, "oscar")
	for _, step := range []struct{ path, field, value, shown string }{
		{"tags", "tag", "  Call  BACK ", "call back"},
		{"tags", "tag", "call back", "call back"},
		{"score", "score", "4", "4 of 5 by oscar@example.com"},
		{"notes", "note", "Asked for <b>Monday</b>.", "Asked for <b>Monday</b>."},
	} {
		a := b.Follow("calls/call_1/"+step.path, step.field, step.value, "filters", "?status=ended")
		if !strings.Contains(a.Text(), step.shown) || !strings.Contains(a.Body, "/calls?status=ended") {
			t.Fatalf("%s: %s", step.value, a.Text())
		}
	}
	for query, found := range map[string]bool{
		"tag=call+back": true, "tag=other": false, "score=4": true, "score=any": true, "score=low": false, "score=5": false, "tag=call+back&score=4&status=ended": true,
	} {
		a := b.Get("calls?" + query)
		if strings.Contains(a.Body, "/calls/call_1?") != found || found && (!strings.Contains(a.Body, "★★★★☆") || !strings.Contains(a.Body, ">call back</span>")) {
			t.Errorf("%s: %s", query, a.Text())
		}
	}
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE action IN ('call.tag', 'call.score', 'call.note') AND object = 'call_1' AND who = 'oscar@example.com'"); n != 3 {
		t.Errorf("%d entries of 3 changes", n)
	}
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE after::text LIKE '%Monday%'"); n != 0 {
		t.Error("the text of a note is in the audit log")
	}
	vera := h.SignIn(t, "vera")
	if a := vera.Get("calls/call_1"); !strings.Contains(a.Text(), "Monday") || strings.Contains(a.Body, "Add note") || strings.Contains(a.Body, "Remove tag") {
		t.Errorf("a viewer sees %s", a.Text())
	}
	for _, path := range []string{"tags", "score", "notes"} {
		if a := vera.Post("calls/call_1/"+path, "tag", "x", "score", "1", "note", "x"); a.Status != http.StatusForbidden {
			t.Errorf("a viewer changes %s: %d", path, a.Status)
		}
	}
	id := h.Text(t, "SELECT id FROM call_notes")
	b.Follow("calls/call_1/notes", "delete", id)
	b.Follow("calls/call_1/score", "score", "0")
	b.Follow("calls/call_1/tags", "remove", "call back")
	if n := h.Count(t, "SELECT (SELECT count(*) FROM call_notes) + (SELECT count(*) FROM call_tags) + (SELECT count(*) FROM call_scores)"); n != 0 {
		t.Errorf("%d annotations are left", n)
	}
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE before::text LIKE '%call back%' OR after::text LIKE '%call back%'"); n != 0 {
		t.Error("the text of a tag is in the audit log")
	}
}

// TestAnnotationLimits refuses tags, scores and notes that are too long or too many.
func TestAnnotationLimits(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	b := h.SignIn(t, "oscar")
	h.Exec(t, "INSERT INTO call_tags (call_id, tag, org_id, author) SELECT 'call_1', 'tag ' || g, $1, 'ada' FROM generate_series(1, 19) g", h.Acme)
	h.Exec(t, "INSERT INTO call_notes (id, call_id, note, author) SELECT 'note_' || g, 'call_1', 'n', 'ada' FROM generate_series(1, 99) g")
	for _, tt := range []struct{ path, field, value, said string }{
		{"tags", "tag", "", "Enter a tag of 1 to 40 characters"},
		{"tags", "tag", strings.Repeat("é", 41), "Enter a tag of 1 to 40 characters"},
		{"tags", "tag", "a\u200bb", "Enter a tag of 1 to 40 characters"},
		{"tags", "tag", strings.Repeat("é", 40), "Tag added."},
		{"tags", "tag", "one more", "a call has at most 20 tags"},
		{"score", "score", "6", "Choose a score of 1 to 5"},
		{"score", "score", "", "Choose a score of 1 to 5"},
		{"notes", "note", " ", "Enter a note of 1 to 4,000 characters"},
		{"notes", "note", strings.Repeat("é", 4001), "Enter a note of 1 to 4,000 characters"},
		{"notes", "note", strings.Repeat("é", 4000), "Note added."},
		{"notes", "note", "one more", "a call has at most 100 notes"},
	} {
		if a := b.Follow("calls/call_1/"+tt.path, tt.field, tt.value); !strings.Contains(a.Text(), tt.said) {
			t.Errorf("%s %.20q: %.300s", tt.path, tt.value, a.Text())
		}
	}
	if n := strings.Count(b.Get("calls/call_1").Body, `<option value="tag `); n != 19 {
		t.Errorf("%d tags to choose from", n)
	}
	if tags, notes := h.Count(t, "SELECT count(*) FROM call_tags"), h.Count(t, "SELECT count(*) FROM call_notes"); tags != 20 || notes != 100 {
		t.Errorf("%d tags, %d notes", tags, notes)
	}
}

// TestNotesExpire refuses notes on calls whose transcripts retention has deleted or is about to delete.
func TestNotesExpire(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	b := h.SignIn(t, "oscar")
	h.Exec(t, "UPDATE calls SET created_at = now() - interval '10 days' WHERE id = 'call_1'")
	for _, tt := range []struct{ days, until, said string }{
		{"0", "-infinity", "Note added."},
		{"11", "-infinity", "Note added."},
		{"10", "-infinity", "the retention period of the call's notes is over"},
		{"0", "now", "the retention period of the call's notes is over"},
	} {
		h.Exec(t, `UPDATE organizations SET forgotten_until = $2::text::timestamptz,
			settings = settings || jsonb_build_object('retention', jsonb_build_object('transcripts_days', $3::text::int)) WHERE id = $1`, h.Acme, tt.until, tt.days)
		if a := b.Follow("calls/call_1/notes", "note", "n"); !strings.Contains(a.Text(), tt.said) {
			t.Errorf("%s days, %s: %.300s", tt.days, tt.until, a.Text())
		}
	}
	if n := h.Count(t, "SELECT count(*) FROM call_notes"); n != 2 {
		t.Errorf("%d notes", n)
	}
}

// TestNeighbors walks through a filtered list by Next and Previous.
func TestNeighbors(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.FurnishFigures(t, 60)
	b := h.SignIn(t, "vera")
	const list = "?status=ended&agent_id=agt_renewals"
	want := h.Text(t, `SELECT string_agg(id, ' ' ORDER BY created_at DESC, id DESC) FROM calls WHERE org_id = $1 AND status = 'ended' AND agent_id = 'agt_renewals'`, h.Acme)
	ids := strings.Fields(want)
	if len(ids) < 3 {
		t.Fatalf("%d calls: the test is ineffective", len(ids))
	}
	walk := func(id, how string) (got []string) {
		for range len(ids) + 1 {
			got = append(got, id)
			a := b.Get("calls/" + id + "/" + how + list)
			to, query, _ := strings.Cut(a.Location(), "?")
			if a.Status != http.StatusSeeOther || query != "agent_id=agt_renewals&status=ended" {
				t.Fatalf("%s of %s: %d %s", how, id, a.Status, a.Location())
			}
			next := to[strings.LastIndex(to, "/")+1:]
			if next == id {
				return got
			}
			id = next
		}
		t.Fatalf("%s does not end: %v", how, got)
		return nil
	}
	if got := strings.Join(walk(ids[0], "next"), " "); got != want {
		t.Errorf("next: %s, want %s", got, want)
	}
	if text := b.Get("calls/" + ids[len(ids)-1] + list).Text(); !strings.Contains(text, "This is the last call of the list.") {
		t.Errorf("at the end: %s", text)
	}
	if back := walk(ids[len(ids)-1], "previous"); len(back) != len(ids) || back[len(ids)-1] != ids[0] {
		t.Errorf("previous: %v", back)
	}
}
