package retention_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/pipeline"
)

// claims places and claims calls of one agent, one after the other.
type claims struct {
	*fixture

	controller *admission.Controller
	store      *store.Store
}

func newClaims(a *fixture) *claims {
	a.t.Helper()
	check := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
	}
	ctx, q := a.t.Context(), a.db.Pool
	trunk, err := trunks.Save(ctx, q, trunks.Trunk{OrgID: a.org, Name: "main", Proxy: "sip:127.0.0.1", CallerNumbers: []string{"+12025550100"}})
	check(err)
	d, fake := agents.Default(), pipeline.Engine{Provider: "fake"}
	d.Speech = pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
	id, err := agents.Save(ctx, q, a.org, "agent", d)
	check(err)
	_, err = agents.Publish(ctx, q, a.org, "agent")
	check(err)
	group, err := trunks.SaveSubgroup(ctx, q, trunks.Subgroup{
		OrgID: a.org, TrunkID: trunk, Name: "agent", AllowedDestinations: []string{"1"}, ConcurrentCalls: 1 << 20, CallsPerMinute: 1 << 20,
	})
	check(err)
	check(trunks.Attach(ctx, q, a.org, group, []string{id}))
	s := &store.Store{Pool: q, Dial: a.db.DialPool}
	return &claims{a, &admission.Controller{Pool: q, OrderPool: a.db.OrderPool, Store: s, QueueDepth: 1 << 20}, s}
}

// run returns how long each claim took until over is closed.
func (c *claims) run(over <-chan struct{}) (all []time.Duration) {
	for {
		select {
		case <-over:
			slices.Sort(all)
			return all
		default:
		}
		if _, err := c.controller.Place(c.t.Context(), c.org, admission.Order{Agent: "agent", To: "+12025550123"}, nil); err != nil {
			c.t.Error(err)
			return all
		}
		began := time.Now()
		got, err := c.store.Claim(c.t.Context(), control.NodeID{Owner: "node", Home: "home"}, time.Hour, 1)
		if err != nil || len(got) != 1 {
			c.t.Errorf("%d claims: %v", len(got), err)
			return all
		}
		all = append(all, time.Since(began))
	}
}

func figures(all []time.Duration) string {
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))].Round(10 * time.Microsecond) }
	return fmt.Sprintf("%d claims, p50 %v, p99 %v, max %v", len(all), at(0.5), at(0.99), at(1))
}

// TestSoakRetention deletes more than a million rows of expired calls while calls are claimed. It compares the times of
// claims with those before.
func TestSoakRetention(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	const expired, recent = 60_000, 20_000
	a := newFixture(t)
	a.now = time.Now()
	a.exec(`UPDATE organizations SET settings = '{"retention": {"calls_days": 30}}'`)
	a.exec("INSERT INTO webhook_endpoints (id, org_id, url, secret, events) VALUES ($1, $1, 'https://example.com', '', '{}')", a.org)
	fill(a, expired, recent)
	c := newClaims(a)
	explain(a)
	rest := make(chan struct{})
	time.AfterFunc(15*time.Second, func() { close(rest) })
	before := c.run(rest)
	over := make(chan struct{})
	var during []time.Duration
	var claiming sync.WaitGroup
	claiming.Go(func() { during = c.run(over) })
	began := time.Now()
	a.purge()
	took := time.Since(began)
	close(over)
	claiming.Wait()
	if t.Failed() {
		return
	}
	if left := a.count("calls WHERE created_at < now() - interval '30 days'"); left != 0 {
		t.Errorf("%d expired calls are left", left)
	}
	if n := a.count("call_lines"); n != 8*recent {
		t.Errorf("%d lines, want %d", n, 8*recent)
	}
	t.Logf("%d calls of 18 rows deleted in %v, %.0f calls/s", expired, took.Round(time.Second), expired/took.Seconds())
	t.Logf("before: %s", figures(before))
	t.Logf("during: %s", figures(during))
	if p99, was := during[len(during)*99/100], before[len(before)*99/100]; p99 > 10*was {
		t.Errorf("claims take up to %v during retention (p99), before %v", p99, was)
	}
}

// fill adds calls of 18 rows each: expired ones, and recent ones.
func fill(a *fixture, expired, recent int) {
	a.t.Helper()
	err := db.Tx(a.t.Context(), a.db.Pool, func(tx pgx.Tx) error {
		for _, sql := range []string{
			"SET LOCAL session_replication_role = replica", "SET LOCAL statement_timeout = 0",
			`CREATE TEMPORARY TABLE made ON COMMIT DROP AS SELECT 'call_' || lpad(n::text, 26, '0') AS id, $1::text AS org,
				now() - CASE WHEN n <= $2 THEN interval '40 days' ELSE interval '20 days' END + n * interval '1 second' AS at FROM generate_series(1, $2::int + $3::int) n`,
			`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, name, metadata, variables,
				trunk_id, route_id, ring_seconds, created_at, answered_at, ended_at, recording_status)
			SELECT id, org, 'phone', 'ended', 'a', 'a', 1, '12025550123', '+12025550100', '12025550123', '', '{}', '{}', 't', 'r', 45, at, at, at, 'none' FROM made`,
			"INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, state, leg) SELECT id, id, org, 't', 'r', 'ended', 'callee' FROM made",
			"INSERT INTO call_lines (call_id, n, item) SELECT id, g, json_build_object('role', 'caller', 'text', repeat('word ', 20)) FROM made, generate_series(0, 7) g",
			"INSERT INTO call_turns (call_id, n, item) SELECT id, g, json_build_object('turn', g) FROM made, generate_series(0, 4) g",
			"INSERT INTO call_signalling (call_id, attempt_id, org_id, messages) SELECT id, id, org, '[]' FROM made",
			"INSERT INTO events (call_id, org_id, kind, done_at) SELECT id, org, 'call.ended', at FROM made",
			`INSERT INTO webhook_deliveries (id, endpoint_id, call_id, type, payload, state, next_at, created_at, settled_at, org_id)
			SELECT 'evt_' || id, org, id, 'call_ended', convert_to(repeat(id, 30), 'UTF8'), 'delivered', at, at, now(), org FROM made`,
		} {
			args := []any{a.org, expired, recent}
			if !strings.Contains(sql, "$1") {
				args = nil
			}
			if _, err := tx.Exec(a.t.Context(), sql, args...); err != nil {
				return fmt.Errorf("%.60s: %w", sql, err)
			}
		}
		return nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err = a.db.Pool.Exec(context.WithoutCancel(a.t.Context()), "VACUUM ANALYZE"); err != nil {
		a.t.Fatal(err)
	}
}

// explain checks that the statements of retention use indexes, and that each reference to a call has an index.
func explain(a *fixture) {
	a.t.Helper()
	for _, sql := range []string{
		"SELECT id FROM calls WHERE created_at >= 'epoch' AND org_id = '" + a.org + "' AND created_at < now() - interval '30 days' AND recording_key IS NULL ORDER BY created_at LIMIT 500",
		"SELECT id FROM webhook_deliveries WHERE settled_at >= 'epoch' AND state = 'delivered' AND settled_at < now() - interval '7 days' ORDER BY settled_at LIMIT 500",
	} {
		plan, err := db.Collect(a.t.Context(), a.db.Pool, "plan", pgx.RowTo[string], "EXPLAIN "+sql)
		if err != nil {
			a.t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		if strings.Contains(text, "Seq Scan") || strings.Contains(text, "Sort") {
			a.t.Errorf("%s\n%s", sql, text)
		}
		a.t.Log("\n" + text)
	}
	bare, err := db.Collect(a.t.Context(), a.db.Pool, "references", pgx.RowTo[string], `
		SELECT conrelid::regclass || ' ' || conname FROM pg_constraint k WHERE contype = 'f' AND confrelid = 'calls'::regclass AND NOT EXISTS (
			SELECT FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indpred IS NULL AND i.indkey[0] = ANY (k.conkey))`)
	if err != nil || len(bare) > 0 {
		a.t.Errorf("references to calls without an index: %v, %v", bare, err)
	}
}
