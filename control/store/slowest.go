package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// SlowestPosition returns the value of Filter.AfterTime after a call with this slowest response.
func SlowestPosition(ms int) time.Time { return time.UnixMilli(int64(ms)) }

// createdBetween returns when the first and the last call of an organization were created, narrowed by the filter's times.
// until is the end of the time range. It returns false if the range is empty.
func createdBetween(ctx context.Context, tx pgx.Tx, f Filter) (from, until time.Time, ok bool, err error) {
	var first, last *time.Time
	err = tx.QueryRow(ctx,
		"SELECT min(created_at), max(created_at) FROM calls WHERE org_id = $1 AND erased_at IS NULL", f.OrgID).Scan(&first, &last)
	if err != nil || first == nil {
		return from, until, false, err
	}
	from, until = *first, last.Add(time.Microsecond)
	if t := f.CreatedAfter; t != nil && t.After(from) {
		from = *t
	}
	if t := f.CreatedBefore; t != nil && t.Before(until) {
		until = *t
	}
	return from, until, from.Before(until), nil
}

// listSlowest scans the next calls by their slowest response, and returns those that match the filter.
func listSlowest(ctx context.Context, tx pgx.Tx, f Filter, scan int) (p Page, err error) {
	from, until, ok, err := createdBetween(ctx, tx, f)
	if err != nil || !ok {
		return Page{}, err
	}
	q := f.planSlowest(scan, from, until)
	var times []int
	p.Calls, err = db.Collect(ctx, tx, "", func(row pgx.CollectableRow) (control.Call, error) {
		times = append(times, 0)
		return scanCall(row, &times[len(times)-1])
	}, q.Page, append([]any{pgx.QueryExecModeExec}, q.Args...)...)
	if err != nil {
		return Page{}, err
	}
	if n := f.Limit; len(p.Calls) > n {
		p.Calls, p.More = p.Calls[:n], true
		p.EndTime, p.EndID = SlowestPosition(times[n-1]), p.Calls[n-1].ID
		return p, nil
	}
	var ms int
	err = tx.QueryRow(ctx, q.End, append([]any{pgx.QueryExecModeExec}, q.Args[:q.ScanArgs]...)...).Scan(&ms, &p.EndID)
	if errors.Is(err, pgx.ErrNoRows) { // no further call exists
		return p, nil
	}
	p.More, p.EndTime = err == nil, SlowestPosition(ms)
	return p, err
}

// planSlowest returns the query of a page of calls by their slowest response. An index holds each day of UTC in this
// order, so the query merges the first rows of each day. A filter that few calls meet is looked up first instead. The
// statistics of an hour tell which calls can be of an agent or a campaign, so that the others are not read.
func (f Filter) planSlowest(scan int, from, until time.Time) listQuery {
	var l listQuery
	order, before := "DESC", "<"
	if f.Ascending {
		order, before = "ASC", ">"
	}
	rest, look := f.clauses(), f.Limit+1
	if len(rest) > 0 {
		look = max(scan, look)
	}
	org, first, end := l.arg(f.OrgID), l.arg(from), l.arg(until)
	found := []string{"s.slowest_ms IS NOT NULL", "s.created_at >= " + first, "s.created_at < " + end}
	if f.CreatedAfter != nil {
		found = append(found, "s.created_at > "+l.arg(*f.CreatedAfter))
	}
	if f.AfterID != "" {
		found = append(found, fmt.Sprintf("(s.slowest_ms, s.call_id) %s (%s::int, %s)", before, l.arg(f.AfterTime.UnixMilli()), l.arg(f.AfterID)))
	}
	by := fmt.Sprintf(" ORDER BY s.slowest_ms %s, s.call_id %s LIMIT ", order, order)
	next := by + strconv.Itoa(look)
	const columns = "s.slowest_ms, s.call_id, s.rollup_id"
	var looked string
	if f.hasFewCalls() {
		found = append(found, "c.org_id = "+org, "("+strings.Join(rest[0].conditions(&l), " OR ")+")")
		looked = "calls c JOIN call_stats s ON s.call_id = c.id WHERE " + strings.Join(found, " AND ")
	} else {
		found = append(found, "s.org_id = "+org, "(s.created_at AT TIME ZONE 'UTC')::date = d.day::date")
		looked = fmt.Sprintf("generate_series((%s::timestamptz AT TIME ZONE 'UTC')::date::timestamp, "+
			"%s::timestamptz AT TIME ZONE 'UTC', interval '1 day') AS d (day), ", first, end)
		looked += "LATERAL (SELECT " + columns + " FROM call_stats s WHERE " + strings.Join(found, " AND ") + next + ") s"
	}
	looked = "(SELECT " + columns + " FROM " + looked + next + ") s"
	l.ScanArgs = len(l.Args)
	narrow := ""
	if f.selectsHours() {
		narrow = "JOIN call_rollups r ON r.id = s.rollup_id AND (r.agent_id = '' OR " + strings.Join(f.hours(&l), " AND ") + ") "
	}
	where := []string{"c.org_id = " + l.arg(f.OrgID), "c.erased_at IS NULL"}
	for _, c := range rest {
		where = append(where, c.condition(&l))
	}
	l.Page = fmt.Sprintf("SELECT %s, s.slowest_ms FROM %s %sJOIN calls c ON c.id = s.call_id WHERE %s%s%d",
		selectListed, looked, narrow, strings.Join(where, " AND "), by, f.Limit+1)
	l.End = fmt.Sprintf("SELECT s.slowest_ms, s.call_id FROM %s%s1 OFFSET %d", looked, by, look-1)
	return l
}

// selectsHours reports whether rows of call_rollups tell which calls cannot match the filter.
func (f Filter) selectsHours() bool {
	return len(f.AgentIDs) > 0 || len(f.Campaigns) > 0 || f.WithoutCampaign
}

// hours returns the conditions on call_rollups of the filter's agents and campaigns. Rows without an agent count calls of
// any agent and campaign.
func (f Filter) hours(l *listQuery) (all []string) {
	if len(f.AgentIDs) > 0 {
		all = append(all, "r.agent_id = ANY ("+l.arg(f.AgentIDs)+")")
	}
	if len(f.Campaigns) > 0 {
		all = append(all, "r.campaign_id = ANY ("+l.arg(f.Campaigns)+")")
	}
	if f.WithoutCampaign {
		all = append(all, "r.campaign_id = ''")
	}
	return all
}

// hasFewCalls reports whether the first clause of the filter selects few calls.
func (f Filter) hasFewCalls() bool {
	return len(f.Contacts) > 0 || len(f.ExternalIDs) > 0 || f.To != ""
}
