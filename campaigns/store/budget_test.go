package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// TestCostTallies checks that the cost of calls is summed exactly, whatever is folded, lost or repaired.
func TestCostTallies(t *testing.T) {
	d := dbtest.New(t)
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) { t.Helper(); dbtest.Exec(t, d, sql, args...) }
	exec(`UPDATE organizations SET timezone = 'Asia/Kolkata', settings = '{"limits": {"monthly_cost": 9}}'`)
	for hour := range 24 * 10 { // one call in each hour of ten days
		exec(`INSERT INTO calls (id, org_id, campaign_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, trunk_id,
				route_id, dial_number, ring_seconds, created_at)
			VALUES ('call_' || $2::int, $1, 'cmp_1', 'phone', 'ongoing', 'a', 'a', 1, '1', '1', 't', 'r', '1', 30, now() - $2 * interval '1 hour')`, org, hour)
	}
	exec("UPDATE calls SET status = 'ended', cost_nano = 5")
	exec("UPDATE calls SET cost_nano = cost_nano + 2 WHERE id < 'call_2'") // the cost of an analysis
	exec("UPDATE calls SET cost_nano = NULL WHERE id = 'call_99'")         // the tallies keep the cost
	days := func(query string) string { return dbtest.Value[string](t, d, query) }
	const ofTallies = `SELECT string_agg(n::text, ' ' ORDER BY day) FROM (SELECT date_trunc('day', slot AT TIME ZONE 'Asia/Kolkata') AS day, sum(cost_nano) AS n
		FROM cost_tallies WHERE slot > '-infinity' GROUP BY 1) x`
	const ofCalls = `SELECT string_agg(n::text, ' ' ORDER BY day) FROM (SELECT date_trunc('day', created_at AT TIME ZONE 'Asia/Kolkata') AS day, sum(coalesce(cost_nano, 5)) AS n
		FROM calls GROUP BY 1) x`
	want := days(ofCalls)
	campaign := func() int64 {
		return dbtest.Value[int64](t, d, "SELECT sum(cost_nano)::bigint FROM cost_tallies WHERE owner = 'cmp_1'")
	}
	sum := campaign()
	folder := &store.TallyFolder{Pool: d.Pool}
	check := func(when string) {
		t.Helper()
		if got := days(ofTallies); got != want || campaign() != sum {
			t.Errorf("%s: %s and %d, want %s and %d", when, got, campaign(), want, sum)
		}
	}
	check("appended")
	for range 2 {
		if err := folder.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("folded")
	}
	if n := dbtest.Value[int64](t, d, "SELECT count(*) FROM cost_tallies"); n > 1+10+72 {
		t.Errorf("%d rows are left", n)
	}
	if repaired, err := folder.Repair(t.Context()); err != nil || len(repaired) > 0 {
		t.Errorf("repaired %v, %v", repaired, err)
	}
	exec("DELETE FROM cost_tallies WHERE slot < now() - interval '3 days' AND slot > '-infinity'")
	if repaired, err := folder.Repair(t.Context()); err != nil || !slices.Contains(repaired, org) {
		t.Errorf("repaired %v, %v", repaired, err)
	}
	exec("DELETE FROM calls WHERE id < 'call_2'") // deleted calls stay counted
	exec("INSERT INTO cost_tallies (owner, slot, cost_nano) VALUES ($1, $2, 1)", org, time.Now().AddDate(0, 0, -63))
	if err := folder.Fold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := dbtest.Value[int64](t, d, "SELECT count(*) FROM cost_tallies WHERE slot > '-infinity' AND slot < now() - interval '62 days'"); got != 0 {
		t.Error("an old day is kept")
	}
}
