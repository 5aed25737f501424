package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/retention"
	"github.com/parley-voice/parley/control/store"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is an organization with calls, and a folder with the recordings.
type fixture struct {
	t      *testing.T
	db     *db.DB
	org    string
	bucket *recording.Folder
	purger *retention.Purger
	now    time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	a := &fixture{t: t, db: dbtest.New(t), bucket: &recording.Folder{Dir: t.TempDir()}, now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	a.purger = &retention.Purger{Pool: a.db.Pool, Bucket: a.bucket, Now: func() time.Time { return a.now }}
	var err error
	if a.org, err = apikeys.EnsureOrganization(t.Context(), a.db.Pool, "acme"); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *fixture) exec(sql string, args ...any) {
	a.t.Helper()
	dbtest.Exec(a.t, a.db, sql, args...)
}

func (a *fixture) count(sql string, args ...any) int {
	a.t.Helper()
	return dbtest.Value[int](a.t, a.db, "SELECT count(*) FROM "+sql, args...)
}

// call adds a call that is days old, with rows in all related tables.
func (a *fixture) call(org, id, number string, days int) {
	a.t.Helper()
	key := "recordings/" + id + ".wav"
	at := a.now.AddDate(0, 0, -days)
	a.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, name, metadata, variables,
			trunk_id, route_id, ring_seconds, created_at, answered_at, ended_at, recording_status, recording_key, call_analysis, analysis_status)
		VALUES ($1, $2, 'phone', 'ended', 'a', 'a', 1, $3, '+12025550100', $3, 'canary', '{"k": "canary"}', '{"v": "canary"}',
			't', 'r', 45, $4, $4, $4, 'ready', $5, '{"summary": "canary"}', 'complete')`, id, org, number, at, key)
	a.exec("INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, state, leg, number) VALUES ($1, $1, $2, 't', 'r', 'ended', 'transfer', '12025550111')", id, org)
	a.exec("INSERT INTO call_lines (call_id, n, item) VALUES ($1, 0, '{\"role\": \"caller\", \"text\": \"canary\"}')", id)
	a.exec("INSERT INTO call_turns (call_id, n, item) VALUES ($1, 0, '{\"turn\": 0}')", id)
	a.exec("INSERT INTO call_packs (call_id, pack) VALUES ($1, 'canary')", id)
	a.exec("INSERT INTO call_words (call_id, words) VALUES ($1, to_tsvector('canary'))", id)
	a.exec("INSERT INTO call_tags (call_id, tag, org_id, author) VALUES ($1, 'canary', $2, 'ada')", id, org)
	a.exec("INSERT INTO call_scores (call_id, score, org_id, author) VALUES ($1, 3, $2, 'ada')", id, org)
	a.exec("INSERT INTO call_notes (id, call_id, note, author) VALUES ($1, $1, 'canary', 'ada')", id)
	a.exec("INSERT INTO call_signalling (call_id, attempt_id, org_id, messages) VALUES ($1, 'att', $2, '[\"canary\"]')", id, org)
	a.exec("INSERT INTO events (call_id, org_id, kind, done_at) VALUES ($1, $2, 'call.ended', $3)", id, org, at)
	a.exec("INSERT INTO webhook_endpoints (id, org_id, url, secret, events) VALUES ($1, $1, 'https://example.com', '', '{}') ON CONFLICT DO NOTHING", org)
	a.exec("INSERT INTO webhook_deliveries (id, endpoint_id, call_id, type, payload, state, next_at, created_at, settled_at, org_id) VALUES ($1, $2, $1, 'call_ended', 'canary', 'delivered', $3, $3, $3, $2)", id, org, at)
	if err := a.bucket.Put(a.t.Context(), key, bytes.NewReader([]byte("RIFF"))); err != nil {
		a.t.Fatal(err)
	}
}

func (a *fixture) recorded(id string) bool {
	a.t.Helper()
	f, err := a.bucket.Open(a.t.Context(), "recordings/"+id+".wav")
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.t.Fatal(err)
		}
		return false
	}
	_ = f.Close()
	return true
}

func (a *fixture) purge() {
	a.t.Helper()
	if err := a.purger.PurgeDue(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// contentRows returns the number of rows and fields with content of a call.
func (a *fixture) contentRows(id string) int {
	a.t.Helper()
	return a.count("call_words WHERE call_id = $1", id) + a.count("call_notes WHERE call_id = $1", id) + a.count("call_packs WHERE call_id = $1", id) + a.count("call_lines WHERE call_id = $1", id) + a.count("call_turns WHERE call_id = $1", id) + a.count("call_signalling WHERE call_id = $1", id) +
		a.count("webhook_deliveries WHERE call_id = $1", id) + a.count("calls WHERE id = $1 AND (call_analysis IS NOT NULL OR variables::text <> '{}')", id)
}

func TestPurgeByRules(t *testing.T) {
	a := newFixture(t)
	a.exec(`UPDATE organizations SET settings = '{"retention": {"recordings_days": 10, "transcripts_days": 20, "calls_days": 30}}'`)
	other, err := apikeys.EnsureOrganization(t.Context(), a.db.Pool, "globex")
	if err != nil {
		t.Fatal(err)
	}
	a.exec("INSERT INTO suppressions (org_id, number) VALUES ($1, '12025550123')", a.org)
	ages := []int{1, 11, 21, 31, 400}
	for _, days := range ages {
		a.call(a.org, fmt.Sprintf("call_%d", days), "12025550123", days)
		a.call(other, fmt.Sprintf("other_%d", days), "12025550123", days)
	}
	a.exec("UPDATE webhook_deliveries SET settled_at = $1", a.now) // deliveries are deleted only together with their calls
	for range 2 {                                                  // the second run changes nothing
		a.purge()
		for _, days := range ages {
			id := fmt.Sprintf("call_%d", days)
			row, words, recorded := a.count("calls WHERE id = $1", id) == 1, a.contentRows(id) > 0, a.recorded(id)
			if row != (days < 30) || words != (days < 20) || recorded != (days < 10) {
				t.Errorf("%d days old: row %v, content %v, recording %v", days, row, words, recorded)
			}
			if other := fmt.Sprintf("other_%d", days); a.contentRows(other) != 8 || !a.recorded(other) {
				t.Errorf("%s, which is kept forever, is incomplete", other)
			}
		}
	}
	if n := a.count("calls WHERE recording_status = 'ready' AND org_id = $1", a.org); n != 1 {
		t.Errorf("%d calls have a recording status of ready", n)
	}
	if a.count("suppressions") != 1 {
		t.Error("a suppressed number was deleted")
	}
	a.now = a.now.AddDate(0, 0, 10)
	a.exec("UPDATE webhook_deliveries SET settled_at = $1", a.now)
	a.purge()
	if a.recorded("call_1") || a.contentRows("call_11") != 0 || a.contentRows("call_1") == 0 || a.count("calls WHERE id = 'call_21'") != 0 {
		t.Error("ten days later, wrong calls were purged")
	}
}

// TestPurgeManyCalls checks that batches are complete if many calls have the same timestamp.
func TestPurgeManyCalls(t *testing.T) {
	a := newFixture(t)
	a.exec(`UPDATE organizations SET settings = '{"retention": {"transcripts_days": 20, "calls_days": 30}}'`)
	fill := func(prefix string, days int) {
		t.Helper()
		a.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, ring_seconds, created_at, variables)
			SELECT $2 || g, $1, 'phone', 'failed', 'a', 'a', 1, '1', '1', '1', 't', 'r', 45, $3::timestamptz + make_interval(secs => g / 1200), '{"v": 1}' FROM generate_series(1, 2600) g`, a.org, prefix, a.now.AddDate(0, 0, -days))
	}
	fill("old", 25)
	fill("older", 35)
	fill("new", 5)
	a.purge()
	if n := a.count("calls WHERE id LIKE 'older%'"); n != 0 {
		t.Errorf("%d calls are left", n)
	}
	if n := a.count("calls WHERE id LIKE 'old%' AND variables::text <> '{}'"); n != 0 {
		t.Errorf("%d transcripts are left", n)
	}
	if n := a.count("calls WHERE id LIKE 'new%' AND variables::text <> '{}'"); n != 2600 {
		t.Errorf("%d of 2600 transcripts are kept", n)
	}
}

type brokenBucket struct{}

func (brokenBucket) Delete(context.Context, string) error { return errors.New("503") }

// TestPurgeWhileBucketIsUnavailable checks that a call and its recording key stay while the bucket is unavailable.
func TestPurgeWhileBucketIsUnavailable(t *testing.T) {
	a := newFixture(t)
	a.exec(`UPDATE organizations SET settings = '{"retention": {"calls_days": 30}}'`)
	a.call(a.org, "call_1", "1", 31)
	a.purger.Bucket = brokenBucket{}
	if err := a.purger.PurgeDue(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v", err)
	}
	if a.count("calls WHERE recording_key IS NOT NULL") != 1 {
		t.Error("the key of an undeleted recording was deleted")
	}
	a.purger.Bucket = a.bucket
	a.purge()
	if a.count("calls") != 0 || a.recorded("call_1") {
		t.Error("the call was not purged afterwards")
	}
}

func TestErase(t *testing.T) {
	a := newFixture(t)
	other, err := apikeys.EnsureOrganization(t.Context(), a.db.Pool, "globex")
	if err != nil {
		t.Fatal(err)
	}
	a.call(a.org, "call_1", "12025550123", 1)
	a.call(a.org, "call_2", "2025550123", 20)
	a.call(a.org, "call_3", "12025550199", 1)
	a.call(a.org, "call_4", "12025550123", 1)
	a.exec("UPDATE calls SET status = 'ongoing' WHERE id = 'call_4'")
	a.call(a.org, "call_5", "12025550123", 1)
	a.exec("UPDATE events SET done_at = NULL WHERE call_id = 'call_5'")
	a.call(other, "call_6", "12025550123", 1)
	n, left, err := a.purger.Erase(t.Context(), a.org, retention.Selection{Number: "+1 (202) 555-0123"})
	if err != nil || n != 2 || left != 2 {
		t.Errorf("%d erased, %d left: %v", n, left, err)
	}
	s := &store.Store{Pool: a.db.Pool}
	for id, gone := range map[string]bool{"call_1": true, "call_2": true, "call_3": false, "call_4": false, "call_5": false} {
		_, _, fault := s.CallWithTranscript(t.Context(), a.org, id)
		if (control.CodeOf(fault) == control.CodeCallNotFound) != gone || (a.contentRows(id) == 0) != gone || a.recorded(id) == gone {
			t.Errorf("%s: %v, %d rows with content, a recording %v", id, fault, a.contentRows(id), a.recorded(id))
		}
	}
	if a.contentRows("call_6") != 8 || !a.recorded("call_6") {
		t.Error("another organization's call is erased")
	}
	const marked = " WHERE call_id IN ('call_1', 'call_2')"
	if marks := a.count("call_tags"+marked) + a.count("call_scores"+marked); marks != 0 || a.count("call_tags") != 4 {
		t.Errorf("%d tags and scores of erased calls are left, and %d tags of all", marks, a.count("call_tags"))
	}
	// Data for frequency caps are kept for eight days, without the client's data.
	if a.count("calls WHERE id = 'call_1' AND to_number = '12025550123' AND name || metadata || variables = '{}{}'") != 1 || a.count("attempts WHERE call_id = 'call_1' AND number <> ''") != 0 || a.count("calls WHERE id = 'call_2'") != 0 {
		t.Error("yesterday's call is not counted, or last month's is")
	}
	a.now = a.now.AddDate(0, 0, 8)
	a.purge()
	if a.count("calls WHERE id = 'call_1'") != 0 {
		t.Error("an erased call is there after eight days")
	}
	if n, left, err = a.purger.Erase(t.Context(), a.org, retention.Selection{Call: "call_3"}); n != 1 || left != 0 || err != nil {
		t.Errorf("one call: %d erased, %d left: %v", n, left, err)
	}
	a.exec("UPDATE calls SET status = 'ended'")
	a.exec("UPDATE events SET done_at = now()")
	if n, left, err = a.purger.Erase(t.Context(), a.org, retention.Selection{All: true}); n != 2 || left != 0 || err != nil {
		t.Errorf("all: %d erased, %d left: %v", n, left, err)
	}
	for _, w := range []retention.Selection{{}, {Number: "x"}, {Call: "c", All: true}, {Call: "c", Number: "1"}} {
		if _, _, err = a.purger.Erase(t.Context(), a.org, w); err == nil {
			t.Errorf("%+v was accepted", w)
		}
	}
}

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		rules retention.Rules
		ok    bool
	}{
		{retention.Rules{}, true},
		{retention.Rules{Recordings: 8, Transcripts: 3650, Calls: 30}, true},
		{retention.Rules{Recordings: 7}, false},
		{retention.Rules{Calls: -1}, false},
		{retention.Rules{Transcripts: 3651}, false},
	} {
		if err := tt.rules.Check(); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.rules, err)
		}
	}
}
