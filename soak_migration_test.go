package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
)

const (
	migratedRows = 1_000_000 // calls, and as many contacts
	longestStall = 200 * time.Millisecond
)

// migratedData fills the schema of the previous release. $1 is the number of rows.
func migratedData() []string {
	return []string{
		`INSERT INTO organizations (id, name) VALUES ('org', 'org')`,
		`INSERT INTO campaigns (id, org_id, status, created_via, name, agent_id, agent_name, timezone, timezone_source, accepts_additions,
			calls_per_minute, call_strategy, classification, retry, duplicate_action, use_contact_timezone, working_hours, trunk_id, route_id, from_number,
			dnc, created_at, updated_at)
		VALUES ('cmp', 'org', 'paused', 'api', 'n', 'a', 'a', 'UTC', 'organization', false, 20, 'standard', 'marketing', '{}', 'reject', false, '[]', 't', 'r', '1',
			'block', now(), now())`,
		`INSERT INTO imports (id, org_id, campaign_id, kind, status, created_via, rows_seen, accepted, warned, rejected, duplicates, created_at)
		VALUES ('imp', 'org', 'cmp', 'launch', 'accepted', 'api', 0, 0, 0, 0, 0, now())`,
		`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
			metadata, ring_seconds, created_at, ended_at, disconnection_reason)
		SELECT 'call_' || lpad(g::text, 26, '0'), 'org', 'phone', 'ended', 'agt_' || g % 20, 'a', 1, '1212555' || g % 10000, '1', '1', 'trk_' || g % 5, 'rte_' || g % 20,
			'{"order": "A-1001"}', 45, now() - make_interval(secs => g), now(), 'callee_hangup' FROM generate_series(1, $1) g`,
		`INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, state, created_at)
		SELECT 'att_' || g, 'call_' || lpad(g::text, 26, '0'), 'org', 'trk_' || g % 5, 'rte_' || g % 20, 'ended', now() FROM generate_series(1, $1) g`,
		`INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, zones, state, created_at, updated_at)
		SELECT 'con_' || g, 'org', 'cmp', 'imp', g, '+7701' || lpad(g::text, 7, '0'), '{Asia/Almaty}', 'pending', now(), now() FROM generate_series(1, $1) g`,
	}
}

// prober reads and writes the large tables, and measures how long each statement takes.
type prober struct {
	pool *pgxpool.Pool
	mu   sync.Mutex
	took map[string][]time.Duration
	wait time.Duration // the longest wait for a lock in pg_locks
	errs []string
}

// probes are the statements by name. $1 is a row number.
func probes() map[string]string {
	return map[string]string{
		"read a call":  "SELECT to_number FROM calls WHERE id = 'call_' || lpad($1::int::text, 26, '0')",
		"write a call": "UPDATE calls SET status = 'ended' WHERE id = 'call_' || lpad($1::int::text, 26, '0')",
		"insert a call": `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
			metadata, ring_seconds, created_at)
		SELECT 'new_' || clock_timestamp(), 'org', 'phone', 'ended', 'a', 'a', 1, '1212555' || $1::int, '1', '1', 't', 'r', '{}', 45, now()`,
		"write a contact": "UPDATE contacts SET updated_at = now() WHERE id = 'con_' || $1::int",
		"read the epoch":  "SELECT dialing_since() WHERE $1::int > 0",
	}
}

// run probes until ctx ends.
func (p *prober) run(ctx context.Context) {
	var all sync.WaitGroup
	for name, sql := range probes() {
		all.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				began := time.Now()
				_, err := p.pool.Exec(context.WithoutCancel(ctx), sql, n*7919%migratedRows+1)
				p.mu.Lock()
				p.took[name] = append(p.took[name], time.Since(began))
				if err != nil {
					p.errs = append(p.errs, name+": "+err.Error())
				}
				p.mu.Unlock()
				<-time.After(5 * time.Millisecond)
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			var seconds float64
			err := p.pool.QueryRow(context.WithoutCancel(ctx),
				"SELECT coalesce(extract(epoch FROM max(clock_timestamp() - waitstart)), 0) FROM pg_locks WHERE NOT granted AND locktype = 'relation'").Scan(&seconds)
			p.mu.Lock()
			p.wait = max(p.wait, time.Duration(seconds*float64(time.Second)))
			if err != nil {
				p.errs = append(p.errs, err.Error())
			}
			p.mu.Unlock()
			<-time.After(10 * time.Millisecond)
		}
	})
	all.Wait()
}

// report logs the times of each statement, and returns the longest.
func (p *prober) report(t *testing.T, when string) (longest time.Duration) {
	t.Helper()
	for name, took := range p.took {
		slices.Sort(took)
		longest = max(longest, took[len(took)-1])
		t.Logf("%s: %-16s %5d times, p50 %v, p99 %v, longest %v", when, name, len(took), took[len(took)/2].Round(10*time.Microsecond),
			took[len(took)*99/100].Round(10*time.Microsecond), took[len(took)-1].Round(100*time.Microsecond))
	}
	t.Logf("%s: the longest wait for a lock %v", when, p.wait.Round(time.Millisecond))
	if len(p.errs) > 0 {
		t.Errorf("%s: %d errors, the first %s", when, len(p.errs), p.errs[0])
	}
	return max(longest, p.wait)
}

// TestSoakMigrations applies the migrations since the previous release to a million calls and a million contacts, while
// other connections read and write them. No statement may take longer than 200 ms.
func TestSoakMigrations(t *testing.T) {
	soakOnly(t)
	old, url := buildPrevious(t), dbtest.Empty(t)
	u := &upgrade{t: t, old: old}
	u.environ[0] = []string{"PARLEY_DATABASE_URL=" + url, "PARLEY_DATA_DIR=" + openDir(t)}
	u.command("failover", "status") // creates the schema of the previous release
	pool, err := pgxpool.New(t.Context(), url+" pool_max_conns=12")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	began := time.Now()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Neither triggers nor checks of foreign keys run for this data.
	for _, sql := range append([]string{"SET LOCAL session_replication_role = replica"}, migratedData()...) {
		var args []any
		if strings.Contains(sql, "$1") {
			args = []any{migratedRows}
		}
		if _, err = tx.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%.60s: %v", sql, err)
		}
	}
	if err = tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err = pool.Exec(t.Context(), "VACUUM ANALYZE"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls and contacts written in %v", migratedRows, time.Since(began).Round(time.Second))
	measure := func(when string, do func()) time.Duration {
		p := &prober{pool: pool, took: map[string][]time.Duration{}}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { p.run(ctx) })
		<-time.After(2 * time.Second)
		do()
		<-time.After(2 * time.Second)
		cancel()
		all.Wait()
		return p.report(t, when)
	}
	measure("without migration", func() { <-time.After(2 * time.Second) })
	took := time.Duration(0)
	longest := measure("migration", func() {
		began := time.Now()
		d, err := db.Open(t.Context(), db.Config{URL: url, MaxConns: 4})
		if err != nil {
			t.Error(err)
			return
		}
		took = time.Since(began)
		d.Close()
	})
	if longest > longestStall {
		t.Errorf("a statement waited %v for the migrations, at most %v is allowed", longest, longestStall)
	}
	applied := dbtest.Value[string](t, &db.DB{Pool: pool}, fmt.Sprintf("SELECT string_agg(version_id::text, ', ' ORDER BY version_id) FROM goose_db_version WHERE tstamp > now() - interval '%d seconds'", 30))
	t.Logf("migrations %s took %v; the longest stall %v", applied, took.Round(time.Millisecond), longest.Round(100*time.Microsecond))
}
