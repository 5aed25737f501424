package routehealth

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/circuitbreaker"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/trunks"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// env is an organization with a campaign that runs on a route.
type env struct {
	*testing.T

	db *db.DB
	n  int
}

func newEnv(t *testing.T) *env {
	t.Helper()
	r := &env{T: t, db: dbtest.New(t)}
	r.exec("INSERT INTO organizations (id, name) VALUES ('org_1', 'acme')")
	r.exec("INSERT INTO trunks (id, org_id, name, proxy) VALUES ('trk_1', 'org_1', 'main', 'sip:127.0.0.1:5080')")
	r.exec("INSERT INTO subgroups (id, org_id, trunk_id, name, concurrent_calls, calls_per_minute) VALUES ('rte_1', 'org_1', 'trk_1', 'one', 10, 60), ('rte_2', 'org_1', 'trk_1', 'two', 10, 60)")
	r.exec(`INSERT INTO campaigns (id, org_id, status, created_via, name, agent_id, agent_name, timezone, timezone_source, accepts_additions,
			calls_per_minute, call_strategy, classification, retry, duplicate_action, use_contact_timezone, working_hours, trunk_id, route_id, from_number,
			dnc, market, created_at, updated_at)
		VALUES ('cmp_1', 'org_1', 'running', 'api', 'Spring', 'agt_1', 'sales', 'UTC', 'organization', false, 200, 'standard', 'marketing',
			'{}', 'reject', false, '[]', 'trk_1', 'rte_1', '+77010000000', 'block', 'kz', now(), now())`)
	return r
}

func (r *env) exec(sql string, args ...any) {
	r.Helper()
	if _, err := r.db.Pool.Exec(context.WithoutCancel(r.Context()), sql, args...); err != nil {
		r.Fatal(err)
	}
}

// call adds a past call of a route and returns its id. An empty reason means an active
// call.
func (r *env) call(route, reason string, code int, rang bool, ago time.Duration) string {
	r.Helper()
	r.n++
	id, status := fmt.Sprintf("call_%d", r.n), "failed"
	if reason == "" {
		status = "queued"
	}
	r.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, trunk_id, route_id, dial_number,
			ring_seconds, created_at, ringing_at, disconnection_reason, sip_status)
		VALUES ($1, 'org_1', 'phone', $2, 'agt_1', 'sales', 1, '77010000001', '', 'trk_1', $3, '77010000001', 45,
			clock_timestamp() - $4::interval, CASE WHEN $5 THEN clock_timestamp() END, nullif($6, ''), nullif($7, 0))`, id, status, route, ago, rang, reason, code)
	return id
}

// state returns the state of a route's breaker.
func (r *env) state(route string) (s string) {
	r.Helper()
	err := r.db.Pool.QueryRow(r.Context(), `SELECT coalesce((SELECT CASE WHEN open THEN 'open ' || why || ' ' || extract(epoch FROM wait)::int ELSE 'closed' END
		FROM route_breakers WHERE subgroup_id = $1), 'never')`, route).Scan(&s)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func (r *env) monitor(owner string) *Monitor {
	return &Monitor{Pool: r.db.Pool, Rules: circuitbreaker.DefaultRules(), Owner: owner}
}

func (r *env) step(w *Monitor) bool {
	r.Helper()
	mine, err := w.Step(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return mine
}

// wantState runs a step and checks the state of the breaker of rte_1.
func (r *env) wantState(w *Monitor, what, state string) {
	r.Helper()
	if !r.step(w) {
		r.Fatalf("%s: it is not this node's duty", what)
	}
	if got := r.state("rte_1"); got != state {
		r.Fatalf("%s: %s, want %s", what, got, state)
	}
}

// TestBreakerOfFailingRoute follows a breaker from its opening by failures, through failed probes,
// to its closing.
func TestBreakerOfFailingRoute(t *testing.T) {
	r := newEnv(t)
	w := r.monitor("a")
	for range 8 {
		r.call("rte_1", "route_error", 503, false, time.Minute)
		r.call("rte_2", "route_error", 503, false, time.Minute)
	}
	for range 30 {
		r.call("rte_1", "route_error", 503, false, 11*time.Minute) // these calls are too old to count
	}
	r.call("rte_1", "", 0, false, time.Second)
	r.call("rte_1", "internal_error", 0, false, time.Second)
	r.call("rte_1", "busy", 486, false, 2*time.Minute)
	r.wantState(w, "nine calls with a result", "never")
	r.call("rte_1", "congestion", 503, false, time.Second)
	r.wantState(w, "nine of ten have failed", "open failures 10")
	if got := r.state("rte_2"); got != "never" {
		t.Errorf("a route without a running campaign: %s", got)
	}
	r.call("rte_1", "busy", 486, false, 0)
	r.wantState(w, "a single call succeeds", "open failures 10")

	setProbe := func(id string) {
		t.Helper()
		r.exec("UPDATE route_breakers SET probe_call = $1 WHERE subgroup_id = 'rte_1'", id)
	}
	probe := r.call("rte_1", "", 0, false, 0)
	setProbe(probe)
	r.wantState(w, "a probe is active", "open failures 10")
	r.exec("UPDATE calls SET status = 'failed', disconnection_reason = 'no_answer', sip_status = 408 WHERE id = $1", probe)
	r.wantState(w, "a probe failed", "open failures 20")
	var call string
	var wait time.Duration
	if err := r.db.Pool.QueryRow(t.Context(), "SELECT probe_call, probe_at - clock_timestamp() FROM route_breakers").Scan(&call, &wait); err != nil || call != "" || wait < 9*time.Second || wait > 10*time.Second {
		t.Errorf("after the probe: probe %q, the next in %v (%v)", call, wait, err)
	}
	setProbe("call_gone")
	r.wantState(w, "a probe never left", "open failures 20")
	setProbe(r.call("rte_1", "", 0, true, 0))
	r.wantState(w, "a probe rings", "closed")
	r.wantState(w, "earlier failures no longer count", "closed")
	for range 10 {
		r.call("rte_1", "blocked", 403, false, 0)
	}
	r.wantState(w, "ten more have failed", "open failures 10")
}

// TestUnreachableTrunk checks that a trunk is used only if at least one node reaches it.
func TestUnreachableTrunk(t *testing.T) {
	r := newEnv(t)
	down := map[string]bool{"a": true}
	nodes := map[string]*Monitor{}
	for _, name := range []string{"a", "b"} {
		nodes[name] = r.monitor(name)
		nodes[name].Down = func(m trunks.Trunk) bool { return m.Proxy == "sip:127.0.0.1:5080" && down[name] }
	}
	report := func() {
		t.Helper()
		for _, n := range nodes {
			if err := n.ReportTrunks(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	report()
	r.wantState(nodes["a"], "one node does not reach the trunk", "never")
	if !nodes["a"].Unreachable("trk_1") || nodes["b"].Unreachable("trk_1") {
		t.Error("a node uses the report of another")
	}
	down["b"] = true
	report()
	r.wantState(nodes["a"], "no node reaches the trunk", "open unreachable 10")
	down["a"] = false
	report()
	r.wantState(nodes["a"], "one node reaches it again", "closed")
	down["a"] = true
	report()
	r.wantState(nodes["a"], "no node reaches the trunk", "open unreachable 10")
	probe := r.call("rte_1", "", 0, true, 0)
	r.exec("UPDATE route_breakers SET probe_call = $1", probe)
	r.wantState(nodes["a"], "the probe rings", "closed")
	r.wantState(nodes["a"], "before the next report", "closed")
	r.exec("UPDATE trunk_sights SET at = clock_timestamp() - interval '20 seconds'")
	r.wantState(nodes["a"], "expired reports do not count", "closed")
	report()
	r.wantState(nodes["a"], "still no node reaches it", "open unreachable 10")
}

// TestOneNodeHoldsDuty checks that one node monitors until it stops.
func TestOneNodeHoldsDuty(t *testing.T) {
	r := newEnv(t)
	a, b := r.monitor("a"), r.monitor("b")
	if !r.step(a) || r.step(b) || !r.step(a) {
		t.Error("the first node does not keep the duty")
	}
	r.exec("UPDATE duties SET until = clock_timestamp() - interval '1 millisecond'")
	if !r.step(b) || r.step(a) {
		t.Error("a node keeps an expired duty")
	}
	b.release(t.Context())
	if !r.step(a) {
		t.Error("a node keeps the duty that it released")
	}
}

// TestIdleStep checks that a step is one statement while no campaign runs, no route has an open breaker and no campaign has a
// probe, and that a step with work takes the duty only once.
func TestIdleStep(t *testing.T) {
	r := newEnv(t)
	pool, statements := dbtest.Traced(t, r.db)
	w := r.monitor("a")
	w.Pool = pool
	for _, tt := range []struct {
		sql  string
		idle bool
	}{
		{"UPDATE campaigns SET status = 'paused'", true},
		{"INSERT INTO route_breakers (subgroup_id, open) VALUES ('rte_2', true)", false},
		{"UPDATE route_breakers SET open = false", true},
		{"INSERT INTO campaign_breakers (campaign_id, open) VALUES ('cmp_1', true)", true},
		{"UPDATE campaign_breakers SET probe_call = 'call_1'", false},
		{"UPDATE campaigns SET status = 'running'", false},
	} {
		r.exec(tt.sql)
		r.step(w) // finds out whether there is work
		statements()
		mine, duties := r.step(w), 0
		all := statements()
		for _, sql := range all {
			duties += strings.Count(sql, "INTO duties")
		}
		if !mine || (len(all) == 1) != tt.idle || duties != 1 {
			t.Errorf("%s: has the duty: %t; statements %q", tt.sql, mine, all)
		}
	}
}

// TestDeletesOldReports checks that the reports of nodes that stopped are deleted.
func TestDeletesOldReports(t *testing.T) {
	r := newEnv(t)
	r.exec("INSERT INTO agents (id, org_id, name, draft) VALUES ('agt_1', 'org_1', 'sales', '{}')")
	for node, ago := range map[string]string{"old": "61 seconds", "new": "50 seconds"} {
		r.exec("INSERT INTO trunk_sights (trunk_id, node, down, at) VALUES ('trk_1', $1, true, now() - $2::interval)", node, ago)
		r.exec("INSERT INTO agent_sights (agent_id, version, node, down, at) VALUES ('agt_1', 1, $1, true, now() - $2::interval)", node, ago)
	}
	if err := r.monitor("a").deleteReports(t.Context()); err != nil {
		t.Fatal(err)
	}
	const left = "SELECT (SELECT string_agg(node, ',') FROM trunk_sights) || ' ' || (SELECT string_agg(node, ',') FROM agent_sights)"
	if got := dbtest.Value[string](t, r.db, left); got != "new new" {
		t.Errorf("left: %s", got)
	}
}

// TestCountsMatchCircuitBreaker compares the counts of the database with control/circuitbreaker for
// the same calls.
func TestCountsMatchCircuitBreaker(t *testing.T) {
	reasons := append(circuitbreaker.RouteFaults(), "no_answer", "busy", "declined", "invalid_number", "cancelled", "internal_error", "queue_expired", "dnc_blocked", "unknown_after_restart")
	r := newEnv(t)
	w := r.monitor("a")
	for _, code := range []int{0, 403, 408, 480, 487, 503} {
		for _, rang := range []bool{false, true} {
			good, bad := 0, 0
			r.exec("DELETE FROM calls")
			for _, reason := range reasons {
				r.call("rte_1", reason, code, rang, time.Second)
				if circuitbreaker.IsRouteFault(reason, code, rang) {
					bad++
				}
				if circuitbreaker.IsReached(reason, code, rang) {
					good++
				}
			}
			var all []route
			err := db.Tx(t.Context(), r.db.Pool, func(tx pgx.Tx) (fault error) {
				all, fault = w.routes(t.Context(), tx, time.Now().Add(time.Second))
				return fault
			})
			if err != nil || len(all) != 1 {
				t.Fatalf("%d routes, %v", len(all), err)
			}
			if got := all[0].seen; got.Good != good || got.Bad != bad {
				t.Errorf("status %d, rang %v: %d good and %d bad, want %d and %d", code, rang, got.Good, got.Bad, good, bad)
			}
		}
	}
}

// TestPausedTrunk checks that a trunk whose carrier asked for a pause does not count as unreachable. Every node
// reports the pause, even if no campaign uses the trunk.
func TestPausedTrunk(t *testing.T) {
	r := newEnv(t)
	r.exec("UPDATE campaigns SET status = 'paused'")
	down := func(trunks.Trunk) bool { return true }
	paused, other := r.monitor("a"), r.monitor("b")
	paused.Down, other.Down = down, func(trunks.Trunk) bool { return false }
	paused.Paused = func() map[string]time.Time { return map[string]time.Time{"trk_1": time.Now().Add(20 * time.Second)} }
	reports := func() (s string) {
		if err := r.db.Pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(node || ' ' || down || ' ' || (paused_until > now()), ', ' ORDER BY node), '')
			FROM trunk_sights`).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, step := range []struct {
		w    *Monitor
		want string
	}{
		{other, ""}, {paused, "a false true"}, {other, "a false true, b false false"},
	} {
		if err := step.w.ReportTrunks(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := reports(); got != step.want {
			t.Errorf("after the report of %s: %q, want %q", step.w.Owner, got, step.want)
		}
	}
	if paused.Unreachable("trk_1") {
		t.Error("a paused trunk is unreachable")
	}
}
