package overview_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/overview"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const fixture = `
INSERT INTO organizations (id, name) VALUES ('org_1', 'acme'), ('org_2', 'globex');
INSERT INTO trunks (id, org_id, name, proxy, caller_numbers) VALUES ('trk_1', 'org_1', 'main', 'sip:127.0.0.1:5080', '{+12025550100}');
INSERT INTO subgroups (id, org_id, trunk_id, name, concurrent_calls, calls_per_minute) VALUES ('rte_1', 'org_1', 'trk_1', 'default', 10, 30);
INSERT INTO agents (id, org_id, name, draft) VALUES ('agt_1', 'org_1', 'sales', '{}');
INSERT INTO agent_versions (agent_id, version, definition) VALUES ('agt_1', 1, '{"speech":{"asr":{"provider":"a"},"llm":{"provider":"b"},"tts":{"provider":"c"}}}');
INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, ring_seconds, created_at, answered_at)
SELECT 'call_' || n, CASE WHEN n = 9 THEN 'org_2' ELSE 'org_1' END, 'phone', (ARRAY['queued', 'ringing', 'ongoing', 'ended'])[1 + n % 4], 'agt_1', 'sales', 1, '12025550123', '', '', 'trk_1', 'rte_1', 45, now() - n * interval '1 second', now()
FROM generate_series(0, 9) n;
INSERT INTO call_lines (call_id, n, item) VALUES ('call_2', 0, '{"role":"agent","text":"Hello"}'), ('call_2', 1, '{"role":"caller","text":"Hi"}');
INSERT INTO call_turns (call_id, n, item) SELECT 'call_2', n, ('{"turn":' || n || ',"ending":"' || CASE WHEN n = 7 THEN 'failed' ELSE 'answered' END || '","metrics":{"turn_ms":' || 100 * n || '}}')::json FROM generate_series(1, 8) n;
INSERT INTO call_turns (call_id, n, item) VALUES ('call_6', 0, '{"turn":0,"ending":"answered","metrics":{"eou_wait_ms":6400,"turn_ms":6400}}'), ('call_5', 0, '{"turn":0,"ending":"answered","metrics":{"vad_ms":100,"turn_ms":800}}');
INSERT INTO route_breakers (subgroup_id, open, why, since, probe_at) VALUES ('rte_1', true, 'failures', now(), now());`

// TestOverview checks that an organization sees only its own active calls, and calls in conversation first.
func TestOverview(t *testing.T) {
	d := dbtest.New(t)
	ctx := t.Context()
	if _, err := d.Pool.Exec(ctx, fixture); err != nil {
		t.Fatal(err)
	}
	on, counts, err := overview.ActiveCalls(ctx, d.Pool, "org_1", 4)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range on {
		ids = append(ids, c.ID)
	}
	if strings.Join(ids, " ") != "call_6 call_2 call_5 call_1" || counts[control.Ongoing] != 2 || counts[control.Ringing] != 2 || counts[control.Queued] != 3 {
		t.Errorf("%v, %v", ids, counts)
	}
	if c := on[1]; c.Said != "Hi" || c.By != "caller" || c.Trunk != "main" || c.Route != "default" || len(c.Turns) != 6 {
		t.Errorf("%+v", c)
	}
	var last struct{ Turn int }
	if err = json.Unmarshal(on[1].Turns[5], &last); err != nil || last.Turn != 8 {
		t.Errorf("got last turn %d, %v; want 8", last.Turn, err)
	}
	routes, err := overview.Routes(ctx, d.Pool, "org_1")
	if err != nil || len(routes) != 1 || routes[0].Breaker != "open" || routes[0].Why != "failures" || routes[0].InUse != 8 || routes[0].Most != 10 || routes[0].CallerNumbers[0] != "+12025550100" {
		t.Errorf("%+v, %v", routes, err)
	}
	agents, err := overview.Agents(ctx, d.Pool, "org_1")
	if err != nil || len(agents) != 1 || agents[0].Turns != 10 || agents[0].Failed != 1 || agents[0].LLM != "b" || *agents[0].P50 != 500 || *agents[0].P95 != 800 {
		t.Errorf("%+v, %v", agents, err)
	}
	if on, _, err = overview.ActiveCalls(ctx, d.Pool, "org_2", 4); err != nil || len(on) != 1 {
		t.Errorf("%v, %v", on, err)
	}
}

// TestQueriesUseIndexes checks that indexes are used to find active calls.
func TestQueriesUseIndexes(t *testing.T) {
	d := dbtest.New(t)
	tx, err := d.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // never committed
	if _, err = tx.Exec(t.Context(), fixture+"SET LOCAL enable_seqscan = off"); err != nil {
		t.Fatal(err)
	}
	q := explained{tx, t}
	_, _, err = overview.ActiveCalls(t.Context(), q, "org_1", 50)
	if err == nil {
		_, err = overview.Routes(t.Context(), q, "org_1")
	}
	if err == nil {
		_, err = overview.Agents(t.Context(), q, "org_1")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// explained checks the plan of each query. The test discourages sequential scans in the planner. A sequential scan
// therefore means that no index fits.
type explained struct {
	pgx.Tx

	t *testing.T
}

func (e explained) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := e.Tx.Query(ctx, "EXPLAIN "+sql, args...)
	if err != nil {
		return nil, err
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	for _, line := range plan {
		for _, large := range []string{"calls", "call_turns", "call_lines"} {
			if strings.Contains(line, "Seq Scan on "+large+" ") {
				e.t.Errorf("%s\n%s", sql, strings.Join(plan, "\n"))
			}
		}
	}
	return e.Tx.Query(ctx, sql, args...)
}
