package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/control/phonenumber"
	"github.com/parley-voice/parley/control/store"
)

// insertCalls writes n calls. Three calls share each second, and each property repeats with a period of its own.
func (b *fixture) insertCalls(n int) {
	b.t.Helper()
	b.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
			trunk_id, route_id, campaign_id, contact_id, import_id, external_id, ring_seconds, created_at, answered_at, ended_at,
			answered_by, disconnection_reason, erased_at)
		SELECT 'call_' || lpad(g::text, 26, '0'), $1, CASE WHEN g % 13 = 0 THEN 'web' ELSE 'phone' END,
			(ARRAY['ended', 'failed', 'ended', 'ongoing', 'ringing', 'queued'])[1 + g % 6], 'agt_x', 'agent' || g % 3, 1,
			(ARRAY['12025550123', '2025550123', '77012345678', '87012345678', '442079460000'])[1 + g % 5],
			(ARRAY['+12025550100', '12025550100', '+77010000000'])[1 + g % 3], '1',
			'trk_' || g % 2, 'rte_' || g % 4, CASE WHEN g % 7 = 0 THEN 'cmp_' || g % 2 END, CASE WHEN g % 7 = 0 THEN 'con_' || g END,
			CASE WHEN g % 7 = 0 THEN 'imp_1' END, CASE WHEN g % 11 = 0 THEN 'x' || g % 2 END, 45,
			timestamptz '2026-01-01 00:00:00Z' + make_interval(secs => g / 3),
			CASE WHEN g % 6 < 4 AND g % 6 <> 1 THEN timestamptz '2026-01-01 00:00:00Z' + make_interval(secs => g / 3) END,
			CASE WHEN g % 6 < 3 THEN timestamptz '2026-01-01 00:00:00Z' + make_interval(secs => g / 3 + g % 97) END,
			CASE WHEN g % 6 = 0 THEN 'human' WHEN g % 6 = 2 THEN 'voicemail' END,
			CASE WHEN g % 6 = 1 THEN 'busy' WHEN g % 6 < 3 THEN 'callee_hangup' END,
			CASE WHEN g % 29 = 0 THEN now() END
		FROM generate_series(1, $2) g`, b.org, n)
	// Every tenth call is counted without its agent and campaign.
	b.exec(`INSERT INTO call_rollups (org_id, hour, agent_id, campaign_id, calls, outcomes, judged, successful, talk_ms, costed, cost_nano, times, cells)
		SELECT DISTINCT $1, timestamptz '2026-01-01 00:00:00Z', agent_id, coalesce(campaign_id, ''), 1, '{}'::int[], 0, 0, 0, 0, 0, ''::bytea, ''::bytea FROM calls
		UNION SELECT $1, timestamptz '2026-01-01 00:00:00Z', '', '', 1, '{}'::int[], 0, 0, 0, 0, 0, ''::bytea, ''::bytea`, b.org)
	b.exec(`INSERT INTO call_stats (call_id, rollup_id, outcome, successful, talk_ms, cost_nano, times, slowest_ms, org_id, created_at)
		SELECT c.id, r.id, CASE WHEN answered_by = 'voicemail' THEN 1 WHEN disconnection_reason = 'busy' THEN 3 ELSE 0 END,
			CASE WHEN n % 2 = 0 THEN n % 4 = 0 END, 1000, CASE WHEN n % 3 = 0 THEN 5 END, CASE WHEN n % 5 = 0 THEN '\x0101'::bytea ELSE '' END,
			CASE WHEN n % 5 = 0 THEN 300 + n % 7 END, CASE WHEN n % 5 = 0 THEN c.org_id END, CASE WHEN n % 5 = 0 THEN created_at END
		FROM calls c, LATERAL (SELECT right(c.id, 9)::int AS n) x,
			LATERAL (SELECT id FROM call_rollups r WHERE (r.agent_id, r.campaign_id) = (CASE WHEN n % 10 = 0 THEN '' ELSE c.agent_id END, CASE WHEN n % 10 = 0 THEN '' ELSE coalesce(c.campaign_id, '') END)) r WHERE status IN ('ended', 'failed') AND erased_at IS NULL`)
}

// listAll reads a list page by page and returns the ids of the calls.
func (b *fixture) listAll(t *rapid.T, f store.Filter, most int) (ids []string) {
	for range 10 * most {
		p, err := b.store.List(b.t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Calls) > f.Limit || p.More && len(p.Calls) < f.Limit {
			t.Fatalf("%d calls on a page of %d, more: %v", len(p.Calls), f.Limit, p.More)
		}
		for _, c := range p.Calls {
			ids = append(ids, c.ID)
		}
		if !p.More {
			return ids
		}
		f.AfterTime, f.AfterID = p.EndTime, p.EndID
	}
	t.Fatal("the list does not end")
	return nil
}

// TestListMatchesFilter checks lists with random filters, read in small pages, against the result of one plain query.
func TestListMatchesFilter(t *testing.T) {
	const calls = 150
	b := newFixture(t, 10, 60)
	b.insertCalls(calls)
	rapid.Check(t, func(t *rapid.T) {
		f := store.Filter{OrgID: b.org, Limit: rapid.IntRange(1, 60).Draw(t, "limit"), Ascending: rapid.Bool().Draw(t, "ascending")}
		conds := []string{"org_id = '" + b.org + "'", "erased_at IS NULL"}
		some := func(to *[]string, column string, of ...string) {
			if rapid.IntRange(0, 4).Draw(t, column) > 0 {
				return
			}
			*to = rapid.SliceOfNDistinct(rapid.SampledFrom(of), 1, 2, rapid.ID).Draw(t, column)
			conds = append(conds, column+" IN ('"+strings.Join(*to, "','")+"')")
		}
		some(&f.Statuses, "status", "ended", "failed", "ongoing", "ringing", "queued")
		some(&f.Types, "call_type", "phone", "web")
		some(&f.Agents, "agent_name", "agent0", "agent1", "nobody")
		some(&f.Campaigns, "campaign_id", "cmp_0", "cmp_1")
		some(&f.Contacts, "contact_id", "con_7", "con_70", "con_1")
		some(&f.Imports, "import_id", "imp_1", "imp_2")
		some(&f.ExternalIDs, "external_id", "x0", "x1")
		some(&f.Trunks, "trunk_id", "trk_0", "trk_1")
		some(&f.Routes, "route_id", "rte_0", "rte_3")
		some(&f.Reasons, "disconnection_reason", "busy", "callee_hangup", "node_lost")
		some(&f.AnsweredBy, "answered_by", "human", "voicemail", "fax")
		if rapid.IntRange(0, 4).Draw(t, "to") == 0 {
			f.To = rapid.SampledFrom([]string{"12025550123", "77012345678", "442079460000", "1"}).Draw(t, "number")
			conds = append(conds, "to_number IN ('"+strings.Join(phonenumber.Forms(f.To), "','")+"')")
		}
		if rapid.IntRange(0, 4).Draw(t, "from") == 0 {
			f.From = "2025550100"
			conds = append(conds, "ltrim(from_number, '+') IN ('2025550100', '12025550100')")
		}
		bound := func(name, column, op string, to **float64) {
			if rapid.IntRange(0, 5).Draw(t, name) == 0 {
				s := float64(rapid.IntRange(0, 100).Draw(t, name+" s"))
				*to = &s
				conds = append(conds, fmt.Sprintf("%s %s %g", column, op, s))
			}
		}
		bound("longer", "extract(epoch FROM ended_at - answered_at)", ">=", &f.MinDurationS)
		bound("shorter", "extract(epoch FROM ended_at - answered_at)", "<=", &f.MaxDurationS)
		var after, before *float64
		bound("after", "extract(epoch FROM created_at - timestamptz '2026-01-01 00:00:00Z')", ">", &after)
		bound("before", "extract(epoch FROM created_at - timestamptz '2026-01-01 00:00:00Z')", "<", &before)
		for from, to := range map[*float64]**time.Time{after: &f.CreatedAfter, before: &f.CreatedBefore} {
			if from != nil {
				at := time.Date(2026, 1, 1, 0, 0, int(*from), 0, time.UTC)
				*to = &at
			}
		}
		conds = append(conds, counted(t, &f)...)
		b.store.Scan = rapid.SampledFrom([]int{3, 20, 1000}).Draw(t, "scan")

		order, from := " ORDER BY created_at, id", "calls"
		if f.Slowest = rapid.Bool().Draw(t, "slowest first"); f.Slowest {
			order, from = " ORDER BY slowest_ms, id", "calls JOIN (SELECT call_id, slowest_ms FROM call_stats WHERE slowest_ms IS NOT NULL) s ON s.call_id = id"
		}
		var want []string
		sql := "SELECT coalesce(array_agg(id" + order + "), '{}') FROM " + from + " WHERE " + strings.Join(conds, " AND ")
		if err := b.db.Pool.QueryRow(b.t.Context(), sql).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if !f.Ascending {
			slices.Reverse(want)
		}
		if got := b.listAll(t, f, calls); !slices.Equal(got, want) {
			t.Fatalf("got %d calls, want %d: %s", len(got), len(want), sql)
		}
	})
}

// counted adds random conditions of the statistics, and of time spans, to a filter, and returns them in SQL.
func counted(t *rapid.T, f *store.Filter) (conds []string) {
	some := func(name string) bool { return rapid.IntRange(0, 5).Draw(t, name) == 0 }
	stats := func(condition string) {
		conds = append(conds, "id IN (SELECT call_id FROM call_stats WHERE "+condition+")")
	}
	if some("outcomes") {
		f.Counted.Outcomes = rapid.SliceOfNDistinct(rapid.SampledFrom([]int{0, 1, 3, 4}), 1, 3, rapid.ID).Draw(t, "of")
		stats("outcome = ANY ('{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(f.Counted.Outcomes), " ", ","), "[]") + "}')")
	}
	if some("successful") {
		yes := rapid.Bool().Draw(t, "yes")
		f.Counted.Successful = &yes
		stats(fmt.Sprintf("successful = %v", yes))
	}
	for i, to := range []*bool{&f.Counted.KnownSuccess, &f.Counted.Timed, &f.Counted.Costed} {
		name := []string{"successful IS NOT NULL", "times <> ''", "cost_nano IS NOT NULL"}[i]
		if *to = some(name); *to {
			stats(name)
		}
	}
	if f.WithoutCampaign = some("without a campaign"); f.WithoutCampaign {
		conds = append(conds, "campaign_id IS NULL")
	}
	if some("agent id") {
		f.AgentIDs = []string{rapid.SampledFrom([]string{"agt_x", "agt_y"}).Draw(t, "agent")}
		conds = append(conds, "agent_id = '"+f.AgentIDs[0]+"'")
	}
	if some("spans") {
		var either []string
		for i := range rapid.IntRange(1, 3).Draw(t, "spans") {
			from := time.Date(2026, 1, 1, 0, 0, 15*i, 0, time.UTC)
			f.Created = append(f.Created, store.Span{From: from, To: from.Add(7 * time.Second)})
			either = append(either, fmt.Sprintf("extract(epoch FROM created_at - timestamptz '2026-01-01 00:00:00Z') >= %d AND created_at < timestamptz '2026-01-01 00:00:00Z' + interval '%d s'", 15*i, 15*i+7))
		}
		conds = append(conds, "("+strings.Join(either, " OR ")+")")
	}
	return conds
}

// TestListReadsFewRows checks that a list with any single filter reads its page in order from an index.
func TestListReadsFewRows(t *testing.T) {
	b := newFixture(t, 10, 60)
	b.insertCalls(20_000)
	b.exec("ANALYZE calls, call_stats")
	least, most := 30.0, 31.0
	for name, f := range map[string]store.Filter{
		"all": {}, "oldest first": {Ascending: true}, "status": {Statuses: []string{"ringing", "ended"}}, "web": {Types: []string{"web"}},
		"phone": {Types: []string{"phone"}}, "agent": {Agents: []string{"agent1"}}, "campaign": {Campaigns: []string{"cmp_1"}}, "contact": {Contacts: []string{"con_7"}},
		"import": {Imports: []string{"imp_1"}}, "trunk": {Trunks: []string{"trk_1"}}, "route": {Routes: []string{"rte_1"}}, "reason": {Reasons: []string{"busy"}},
		"reason that nobody has": {Reasons: []string{"node_lost"}}, "answered by": {AnsweredBy: []string{"human", "fax"}}, "external": {ExternalIDs: []string{"x1"}},
		"to": {To: "12025550123"}, "from": {From: "77010000000"}, "long": {MinDurationS: &least}, "duration": {MinDurationS: &least, MaxDurationS: &most},
		"spans":   {Created: []store.Span{{From: time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC), To: time.Date(2026, 1, 1, 0, 11, 0, 0, time.UTC)}}},
		"outcome": {Counted: store.Counted{Outcomes: []int{3}}}, "success": {Counted: store.Counted{KnownSuccess: true}}, "agent id": {AgentIDs: []string{"agt_x"}},
		"no campaign": {WithoutCampaign: true}, "slowest": {Slowest: true}, "slowest of an agent": {Slowest: true, Agents: []string{"agent1"}}, "slowest of a campaign": {Slowest: true, Campaigns: []string{"cmp_1"}}, "slowest of a contact": {Slowest: true, Contacts: []string{"con_70"}},
		"two": {Statuses: []string{"ended"}, Agents: []string{"agent1"}}, "two that nobody has": {Statuses: []string{"ended"}, Reasons: []string{"busy"}},
	} {
		for _, last := range []string{"", fmt.Sprintf("call_%026d", 9000)} {
			f.OrgID, f.Limit, f.AfterID = b.org, 50, last
			if f.AfterTime = time.Date(2026, 1, 1, 0, 50, 0, 0, time.UTC); f.Slowest {
				f.AfterTime = store.SlowestPosition(303)
			}
			plan, read, err := b.store.Explain(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			// A query may read one page for each value of the filter. With two filters it may also read a window of
			// 1,000 calls.
			if read < 0 || read > 1600 {
				t.Errorf("%s, after %q: %d rows read\n%s", name, last, read, plan)
			}
		}
	}
}
