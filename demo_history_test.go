package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/retention"
)

// TestDemoFurnished checks the past calls and the campaigns of the demo, that all numbers are fictional and the only trunk
// leads to this machine, that the statistics equal a recount, and that a second start adds nothing.
func TestDemoFurnished(t *testing.T) {
	t.Parallel()
	carrier := demo.Carrier()
	if err := carrier.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = carrier.Close() })
	srv := runServer(t, testConfig(t), slog.New(slog.DiscardHandler))
	file := fmt.Sprintf(demo.FurnishedFile, "127.0.0.1:9", demo.Secret, carrier.Addr())
	key, err := createDemo(t.Context(), srv.db, file, demo.ChooseSpeech(nil, false).File())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err = furnishDemo(t.Context(), srv, &demo.Client{URL: srv.publicURL, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(want int, sql string, args ...any) {
		t.Helper()
		var n int
		if fault := srv.db.Pool.QueryRow(t.Context(), sql, args...).Scan(&n); fault != nil || n != want {
			t.Errorf("%s: %d, %v; want %d", sql, n, fault, want)
		}
	}
	count(200, "SELECT count(*) FROM calls WHERE created_at < now() - interval '1 hour'")
	count(80, "SELECT count(*) FROM calls c JOIN contact_attempts x ON x.call_id = c.id AND x.contact_id = c.contact_id WHERE c.created_at < now() - interval '1 hour'")
	count(0, "SELECT count(*) FROM contacts k JOIN campaigns c ON c.id = k.campaign_id WHERE c.status = 'completed' AND k.state NOT IN ('done', 'exhausted')")
	count(1, "SELECT count(*) FROM campaigns WHERE status = 'completed' AND completed_at > launched_at AND name = $1", demo.FinishedCampaign)
	count(1, "SELECT count(*) FROM campaigns WHERE status = 'running' AND name = $1", demo.RunningCampaign)
	count(300, "SELECT count(*) FROM contacts k JOIN campaigns c ON c.id = k.campaign_id WHERE c.name = $1 AND k.state <> 'suppressed'", demo.RunningCampaign)
	count(2, "SELECT count(*) FROM campaigns")
	count(12, "SELECT count(*) FROM suppressions")
	count(0, "SELECT count(*) FROM contacts WHERE number !~ '^[+]1[2-9][0-9]{2}55501[0-9]{2}$'")
	count(0, "SELECT count(*) FROM calls WHERE to_number !~ '^1[2-9][0-9]{2}55501[0-9]{2}$'")
	count(0, "SELECT count(*) FROM trunks WHERE proxy NOT LIKE 'sip:127.0.0.1:%'")
	count(0, "SELECT count(*) FROM calls WHERE status = 'ended' AND created_at < now() - interval '1 hour' AND (cost_nano IS NULL OR cost_nano = 0 OR call_analysis IS NULL)")
	count(0, "SELECT count(*) - count(DISTINCT recording_key) FROM calls WHERE recording_key IS NOT NULL")
	compareStatistics(t, srv)
	eraseOne(t, srv)
}

// eraseOne erases a call of each scene that others have too. Every other call keeps its recording.
func eraseOne(t *testing.T, srv *server) {
	t.Helper()
	read := func(sql string) (keys []string) {
		t.Helper()
		if err := srv.db.Pool.QueryRow(t.Context(), sql).Scan(&keys); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	isThere := func(key string) bool {
		info, err := os.Stat(filepath.Join(srv.config.DataDir, "bucket", key))
		return err == nil && info.Size() >= 50_000
	}
	const furnished = "FROM calls WHERE recording_key IS NOT NULL AND created_at < now() - interval '1 hour'"
	before := read("SELECT array_agg(recording_key) " + furnished)
	gone := read("SELECT array_agg(recording_key) FROM (SELECT min(recording_key) AS recording_key " + furnished + " GROUP BY ended_at - answered_at) x")
	if len(before) < 60 || len(gone) < 6 {
		t.Fatalf("%d recordings of %d lengths", len(before), len(gone))
	}
	org, err := apikeys.FindOrganization(t.Context(), srv.db.Pool, demo.Organization)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range gone {
		call := retention.Selection{Call: strings.TrimSuffix(filepath.Base(key), ".wav")}
		if n, _, fault := srv.purger.Erase(t.Context(), org, call); fault != nil || n != 1 {
			t.Errorf("erase %s: %d, %v", key, n, fault)
		}
	}
	for _, key := range before {
		if erased := slices.Contains(gone, key); isThere(key) == erased {
			t.Errorf("recording %s, erased %v, is there: %v", key, erased, !erased)
		}
	}
	left, err := filepath.Glob(filepath.Join(srv.config.DataDir, "bucket", "recordings", "demo-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("recordings without a call: %q, %v", left, err)
	}
}

// compareStatistics checks that a recount of the calls finds no wrong row.
func compareStatistics(t *testing.T, srv *server) {
	t.Helper()
	org, err := apikeys.FindOrganization(t.Context(), srv.db.Pool, demo.Organization)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		if n, fault := overview.Pending(t.Context(), srv.db.Pool, 1000); fault != nil || time.Now().After(deadline) {
			t.Fatalf("%d calls are not counted: %v", n, fault)
		} else if n == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	now := time.Now()
	calls, wrong, err := (&overview.Follower{Pool: srv.db.Pool, Locate: numberZone()}).Recount(t.Context(), org, now.AddDate(0, 0, -16), now.Add(-time.Hour))
	if err != nil || calls != 200 || wrong != 0 {
		t.Errorf("recount: %d calls, %d wrong rows, %v; want 200, 0", calls, wrong, err)
	}
	if hours, err := overview.Hours(t.Context(), srv.db.Pool, org, now.AddDate(0, 0, -16), now.Add(-time.Hour)); err != nil || len(hours) < 50 ||
		!slices.ContainsFunc(hours, func(h overview.Hour) bool { return h.Times.Count() > 0 }) {
		t.Errorf("%d hours: %v", len(hours), err)
	}
}
