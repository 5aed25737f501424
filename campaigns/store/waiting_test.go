package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// countWaiting counts the contacts of EachWaiting one by one.
const countWaiting = `
SELECT coalesce(string_agg(concat_ws(' ', hours_group, cap, wait::text, early::text, late::text, n, next, last), E'\n' ORDER BY hours_group, cap, wait, early, late), '') FROM (
	SELECT hours_group, CASE WHEN wait THEN governing_cap ELSE '' END AS cap, wait, early, late, count(*) AS n,
		(extract(epoch FROM min(own) FILTER (WHERE own > at)) * 1000000)::bigint AS next, (extract(epoch FROM max(own) FILTER (WHERE own > at)) * 1000000)::bigint AS last
	FROM contacts, LATERAL (SELECT '%s'::timestamptz AS at) y, LATERAL (SELECT next_attempt_at > at IS TRUE AS wait, not_before > at IS TRUE AS early,
		not_after <= at IS TRUE AS late, greatest(next_attempt_at, not_before) AS own) z
	WHERE state = 'pending' GROUP BY 1, 2, 3, 4, 5) x`

// TestWaitingGroups compares the groups of waiting contacts with a count of all contacts, at times in and between the slots
// of the tally, while contacts change, the tally is folded, damaged and repaired.
func TestWaitingGroups(t *testing.T) {
	d := dbtest.New(t)
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) { t.Helper(); dbtest.Exec(t, d, sql, args...) }
	exec(`INSERT INTO campaigns (id, org_id, status, created_via, name, agent_id, agent_name, timezone, timezone_source, accepts_additions,
			calls_per_minute, call_strategy, classification, retry, duplicate_action, use_contact_timezone, working_hours, trunk_id, route_id, from_number, dnc, created_at, updated_at)
		VALUES ('cmp_1', $1, 'running', 'api', 'Ada', 'agt_1', 'sales', 'UTC', 'org', true, 60, '', 'marketing', '{}', 'skip', true, '[]', 'trk_1', 'rte_1', '1', 'skip', now(), now())`, org)
	exec(`INSERT INTO imports (id, org_id, campaign_id, kind, status, created_via, rows_seen, accepted, warned, rejected, duplicates, created_at)
		SELECT 'imp_1', $1, 'cmp_1', 'json', 'ready', 'api', 0, 0, 0, 0, 0, now()`, org)
	noon := time.Date(2027, 3, 2, 12, 0, 0, 0, time.UTC)
	folder := &store.TallyFolder{Pool: d.Pool}
	value := func(sql string) string { t.Helper(); return dbtest.Value[string](t, d, sql) }
	check := func(at time.Time) {
		t.Helper()
		all := map[store.WaitingGroup]int{} // contacts with and without times of their own are in groups of their own
		err := store.Contacts{}.EachWaiting(t.Context(), d.Pool, "cmp_1", at, func(w store.WaitingGroup) error {
			key := w
			key.N = 0
			all[key] += w.N
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for w, n := range all {
			line := fmt.Sprint(w.Group, " ", w.Cap, " ", w.Wait, " ", w.Early, " ", w.Late, " ", n)
			if !w.Next.IsZero() {
				line += fmt.Sprint(" ", w.Next.UnixMicro(), " ", w.Last.UnixMicro())
			}
			got = append(got, line)
		}
		slices.Sort(got)
		want := strings.Split(value(fmt.Sprintf(countWaiting, at.Format(time.RFC3339Nano))), "\n")
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("at %v\n%s\nwant\n%s", at, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	exec(`INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, state, hours_group, created_at, updated_at)
		SELECT 'con_' || g, $1, 'cmp_1', 'imp_1', g, '1', 'pending', (ARRAY['NY', 'CA'])[1 + g % 2], now(), now() FROM generate_series(1, 40) g`, org)
	r := rand.New(rand.NewPCG(3, 20))
	moment := func() any { // often the same, and often at the edge of a slot
		if r.IntN(2) == 0 {
			return nil
		}
		return noon.Add(time.Duration(r.IntN(17)-8)*5*time.Minute + time.Duration(r.IntN(3)-1)*time.Microsecond)
	}
	for range 200 {
		switch r.IntN(7) {
		case 0, 1:
			exec("UPDATE contacts SET next_attempt_at = $2, governing_cap = $3, hours_group = $4 WHERE n % 5 = $1",
				r.IntN(5), moment(), []string{"", "daily"}[r.IntN(2)], []string{"NY", "CA"}[r.IntN(2)])
		case 2:
			exec("UPDATE contacts SET not_before = $2, not_after = $3 WHERE n % 7 = $1", r.IntN(7), moment(), moment())
		case 3:
			exec("UPDATE contacts SET state = CASE state WHEN 'pending' THEN 'done' ELSE 'pending' END WHERE n % 9 = $1", r.IntN(9))
		case 4:
			exec(`WITH gone AS (DELETE FROM contacts WHERE n % 6 = $1 RETURNING *)
				INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, state, hours_group, not_before, created_at, updated_at)
				SELECT id || 'x', org_id, campaign_id, import_id, n + 1000, number, state, hours_group, $2, created_at, updated_at FROM gone`, r.IntN(6), moment())
		case 5:
			if err := folder.Fold(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 6:
			exec("DELETE FROM contact_times WHERE not_before > '-infinity'")
			check(noon)
			if _, err := folder.Repair(t.Context()); err != nil {
				t.Fatal(err)
			}
			if wrong, err := folder.Repair(t.Context()); err != nil || len(wrong) > 0 {
				t.Fatalf("still wrong: %v, %v", wrong, err)
			}
		}
		check(noon.Add(time.Duration(r.IntN(100)-50) * time.Minute))
	}
	exec("DELETE FROM campaigns")
	if n := dbtest.Value[int](t, d, "SELECT count(*) FROM contact_times"); n > 0 {
		t.Errorf("%d rows are left of a deleted campaign", n)
	}
}
