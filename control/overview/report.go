package overview

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// A Period has the statistics of a time range.
type Period struct {
	Hours  []Hour  // hours with calls, in order
	Groups []Group // by agent and campaign; largest first
}

// An Hour has the statistics of one hour.
type Hour struct {
	Sums

	At time.Time
}

// A Group has the statistics of the calls of an agent in a campaign. Agent is empty for the calls that are counted
// together because an hour had too many agents and campaigns. Campaign is empty for calls without campaign.
type Group struct {
	Sums

	Agent, Campaign string
}

// Total returns the statistics of the whole period.
func (p *Period) Total() (all Sums) {
	for i := range p.Hours {
		all.Merge(&p.Hours[i].Sums)
	}
	return all
}

// sumsSQL adds up rows of call_rollups. Encoded statistics are added up by writing them one after the other.
const sumsSQL = `sum(calls), sum(outcomes[1]), sum(outcomes[2]), sum(outcomes[3]), sum(outcomes[4]), sum(outcomes[5]), sum(outcomes[6]), sum(outcomes[7]),
	sum(judged), sum(successful), sum(talk_ms)::bigint, sum(costed), sum(cost_nano)::bigint, string_agg(times, ''), string_agg(cells, '')
FROM call_rollups WHERE org_id = $1 AND hour >= $2 AND hour < $3`

func scanSums(row pgx.CollectableRow, s *Sums, more ...any) error {
	var times, cells []byte
	into := append(more, &s.Calls)
	for i := range s.Outcomes {
		into = append(into, &s.Outcomes[i])
	}
	err := row.Scan(append(into, &s.KnownSuccess, &s.Successful, &s.TalkMS, &s.Costed, &s.CostNano, &times, &cells)...)
	if err == nil {
		err = s.decode(times, cells)
	}
	return err
}

// Report returns the statistics of an organization's calls that were created from from, and before to. Both are
// whole hours.
func Report(ctx context.Context, q db.Querier, orgID string, from, to time.Time) (p Period, err error) {
	if p.Hours, err = Hours(ctx, q, orgID, from, to); err == nil {
		p.Groups, err = Groups(ctx, q, orgID, from, to)
	}
	return p, err
}

// Groups returns the statistics of each agent in each campaign, the largest first.
func Groups(ctx context.Context, q db.Querier, orgID string, from, to time.Time) ([]Group, error) {
	return db.Collect(ctx, q, "statistics", func(row pgx.CollectableRow) (g Group, err error) {
		return g, scanSums(row, &g.Sums, &g.Agent, &g.Campaign)
	}, "SELECT agent_id, campaign_id, "+sumsSQL+" GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2", orgID, from, to)
}

// Names returns the names of an organization's agents and campaigns by id. Deleted ones have none.
func Names(ctx context.Context, q db.Querier, orgID string, groups []Group) (map[string]string, error) {
	var ids []string
	for _, g := range groups {
		ids = append(ids, g.Agent, g.Campaign)
	}
	names := map[string]string{}
	var id, name string
	return names, db.Each(ctx, q, "names", []any{&id, &name}, func() error { names[id] = name; return nil }, `
		SELECT id, name FROM agents WHERE org_id = $1 AND id = ANY ($2)
		UNION ALL SELECT id, name FROM campaigns WHERE org_id = $1 AND id = ANY ($2)`, orgID, distinct(ids))
}

// HasCalls reports whether an organization ever had a call that is still stored.
func HasCalls(ctx context.Context, q db.Querier, orgID string) (has bool, err error) {
	err = q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM calls WHERE org_id = $1 AND erased_at IS NULL)", orgID).Scan(&has)
	return has, db.Wrap(err, "calls")
}

// Hours returns the statistics of each hour with calls.
func Hours(ctx context.Context, q db.Querier, orgID string, from, to time.Time) ([]Hour, error) {
	return db.Collect(ctx, q, "statistics", func(row pgx.CollectableRow) (h Hour, err error) {
		return h, scanSums(row, &h.Sums, &h.At)
	}, "SELECT hour, "+sumsSQL+" GROUP BY 1 ORDER BY 1", orgID, from, to)
}

// Total returns the statistics of all calls of a time range.
func Total(ctx context.Context, q db.Querier, orgID string, from, to time.Time) (s Sums, err error) {
	all, err := db.Collect(ctx, q, "statistics", func(row pgx.CollectableRow) (t Sums, err error) {
		var org string
		return t, scanSums(row, &t, &org)
	}, "SELECT org_id, "+sumsSQL+" GROUP BY 1", orgID, from, to)
	if len(all) > 0 {
		s = all[0]
	}
	return s, err
}

// Success returns how many calls of a campaign since a time have a known result, and how many of these succeeded.
func Success(ctx context.Context, q db.Querier, orgID, campaignID string, since time.Time) (known, successful int, err error) {
	const sum = `SELECT coalesce(sum(judged), 0), coalesce(sum(successful), 0) FROM call_rollups
		WHERE org_id = $1 AND campaign_id = $2 AND hour >= date_trunc('hour', $3::timestamptz, 'UTC')`
	err = q.QueryRow(ctx, sum, orgID, campaignID, since).Scan(&known, &successful)
	return known, successful, db.Wrap(err, "statistics")
}

// Pending returns the number of changed calls that are not counted yet, at most most. They are of all organizations.
func Pending(ctx context.Context, q db.Querier, most int) (n int, err error) {
	err = q.QueryRow(ctx, "SELECT count(*) FROM (SELECT FROM call_changes LIMIT $1) x", most).Scan(&n)
	return n, db.Wrap(err, "statistics")
}

// A Response has the response times of a call in ms.
type Response struct {
	P95     float64
	Slowest int // 0 until it is counted
}

// ResponseTimes returns the response times of calls by id. It has no call without one.
func ResponseTimes(ctx context.Context, q db.Querier, ids []string) (map[string]Response, error) {
	all := map[string]Response{}
	var id string
	var times []byte
	var slowest int
	return all, db.Each(ctx, q, "response times", []any{&id, &times, &slowest}, func() error {
		var h Histogram
		err := h.merge(times, 1)
		if ms, ok := h.Percentile(.95); ok && err == nil {
			all[id] = Response{ms, slowest}
		}
		return err
	}, "SELECT call_id, times, coalesce(slowest_ms, 0) FROM call_stats WHERE call_id = ANY ($1) AND times <> ''", ids)
}
