package overview

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
)

// A Follower keeps the statistics of calls up to date. A transaction takes changed calls from the queue and updates the
// statistics, so each change counts once, whenever the process stops. One process at a time does it.
type Follower struct {
	Pool *pgxpool.Pool
	// Locate returns the name of the time zone of a number, or "" if it is unknown; nil knows no number.
	Locate func(digits string) string
	// Poll is the interval of checks; 0 means 2 s.
	Poll time.Duration
	Log  *slog.Logger // nil discards
}

// changesAtOnce is the maximum number of changes in a transaction. keysOfHour is the maximum number of rows of an hour of
// an organization: calls of further agents and campaigns share one row without names.
const (
	changesAtOnce = 500
	keysOfHour    = 100
)

// Run follows changes until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	db.Follower{
		Step: f.Step, Full: changesAtOnce, Poll: f.Poll, Failure: "failed to update the statistics of calls", Log: f.Log,
	}.Run(ctx)
}

// Step counts the next changes, and returns how many there were. It returns 0 while another process counts. Without a change it
// counts calls of the previous release again, in a transaction of their own: if one of them cannot be counted, changes still
// are.
func (f *Follower) Step(ctx context.Context) (n int, err error) {
	var changed, old bool
	if err = f.Pool.QueryRow(ctx, anyChangeSQL).Scan(&changed, &old); changed && err == nil {
		n, err = f.countNext(ctx, nextChangesSQL)
	}
	if old && n == 0 && err == nil {
		n, err = f.countNext(ctx, withoutSlowestSQL)
	}
	return n, db.Wrap(err, "statistics of calls")
}

// countNext counts the calls that a query selects, $1 at most, and returns how many there were.
func (f *Follower) countNext(ctx context.Context, sql string) (n int, err error) {
	err = db.Tx(ctx, f.Pool, func(tx pgx.Tx) error {
		var mine bool
		if fault := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock("+lockSQL+")").Scan(&mine); fault != nil || !mine {
			return fault
		}
		ids, fault := db.Collect(ctx, tx, "", pgx.RowTo[string], sql, changesAtOnce)
		if n = len(ids); fault != nil || n == 0 {
			return fault
		}
		return f.count(ctx, tx, distinct(ids))
	})
	return n, err
}

// nextChangesSQL takes the oldest changes. withoutSlowestSQL selects the newest calls whose slowest response is not stored: the
// previous release counted them. anyChangeSQL reports whether either has a row, without a transaction. It reads the indexes in
// order, because a scan of the table would read all dead rows.
const (
	anyChangeSQL = "SELECT (SELECT id FROM call_changes ORDER BY id LIMIT 1) IS NOT NULL, " +
		"(SELECT call_id FROM call_stats WHERE slowest_ms IS NULL AND times <> '' ORDER BY call_id DESC LIMIT 1) IS NOT NULL"
	nextChangesSQL    = "DELETE FROM call_changes WHERE id IN (SELECT id FROM call_changes ORDER BY id LIMIT $1) RETURNING call_id"
	withoutSlowestSQL = "SELECT call_id FROM call_stats WHERE slowest_ms IS NULL AND times <> '' ORDER BY call_id DESC LIMIT $1"
)

// lockSQL is the key of the advisory lock that only the process has that counts.
const lockSQL = "hashtextextended('statistics of calls', 0)"

func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// factsSQL reads facts of the calls $1.
const factsSQL = `
SELECT x.id, coalesce(c.erased_at IS NULL AND c.status IN ('ended', 'failed'), false),
	coalesce(c.created_at, 'epoch'), coalesce(c.org_id, r.org_id, ''), coalesce(date_trunc('hour', c.created_at, 'UTC'), r.hour, 'epoch'), coalesce(c.agent_id, r.agent_id, ''), coalesce(c.campaign_id, r.campaign_id, ''),
	c.dialed_at, c.answered_at, c.ended_at, coalesce(c.call_type, ''), coalesce(c.answered_by, ''), coalesce(c.disconnection_reason, ''),
	CASE c.call_analysis->>'success' WHEN 'true' THEN true WHEN 'false' THEN false END, c.cost_nano, coalesce(c.to_number, ''),
	coalesce((SELECT a.zone FROM contact_attempts a WHERE a.call_id = x.id), ''), coalesce(o.timezone, ''),
	ARRAY(SELECT item::text FROM call_turns WHERE call_id = x.id ORDER BY n), p.pack,
	r.id, coalesce(s.outcome, 0), s.successful, coalesce(s.talk_ms, 0), s.cost_nano, s.cell::int, coalesce(s.times, ''), coalesce(s.slowest_ms, 0)
FROM unnest($1::text[]) AS x (id) LEFT JOIN calls c ON c.id = x.id LEFT JOIN organizations o ON o.id = c.org_id
LEFT JOIN call_packs p ON p.call_id = x.id LEFT JOIN call_stats s ON s.call_id = x.id LEFT JOIN call_rollups r ON r.id = s.rollup_id`

func scanFacts(row pgx.CollectableRow) (f facts, err error) {
	b := &f.before
	err = row.Scan(
		&f.id, &f.counts, &f.created, &f.org, &f.hour, &f.agent, &f.campaign, &f.dialed, &f.answered, &f.ended, &f.callType,
		&f.answeredBy, &f.reason, &f.successful, &f.cost, &f.number, &f.zone, &f.organization, &f.turns, &f.pack,
		&f.rollup, &b.outcome, &b.successful, &b.talk, &b.cost, &b.cell, &b.times, &b.slowest)
	f.hour = f.hour.UTC()
	return f, err
}

// count brings the statistics of calls up to date. The caller has the lock.
func (f *Follower) count(ctx context.Context, tx pgx.Tx, ids []string) error {
	all, err := db.Collect(ctx, tx, "", scanFacts, factsSQL, ids)
	if err != nil {
		return err
	}
	rollups, err := readRollups(ctx, tx, all)
	if err != nil {
		return err
	}
	var changes statChanges
	for i := range all {
		if err = f.countOne(&all[i], rollups, &changes); err != nil {
			return err
		}
	}
	if err = rollups.write(ctx, tx, &changes); err != nil {
		return err
	}
	return changes.write(ctx, tx)
}

// countOne moves one call in the statistics.
func (f *Follower) countOne(c *facts, rollups *rollupSet, changes *statChanges) error {
	now, err := c.evaluate(f.Locate)
	if err != nil && f.Log != nil {
		f.Log.Warn("a call is counted without its response times", "err", err)
	}
	var at *rollup
	if c.rollup != nil {
		at = rollups.byID[*c.rollup]
	}
	switch {
	case at != nil && c.counts && now.equal(c.before):
		if now.slowest != c.before.slowest {
			changes.add(c, at, now)
		}
		return nil
	case at != nil:
		if err = at.add(c.before, -1); err != nil {
			return err
		}
	case c.counts:
		at = rollups.of(c.key)
	}
	if !c.counts {
		changes.gone = append(changes.gone, c.id)
		return nil
	}
	changes.add(c, at, now)
	return at.add(now, 1)
}

// statChanges are changes of the table call_stats.
type statChanges struct {
	gone     []string
	ids      []string
	rollups  []*rollup
	outcomes []int
	judged   []*bool
	talk     []int64
	cost     []*int64
	cells    []*int
	times    [][]byte
	orgs     []string
	created  []time.Time
	slowest  []int
}

func (w *statChanges) add(c *facts, at *rollup, s stat) {
	w.ids, w.rollups, w.times = append(w.ids, c.id), append(w.rollups, at), append(w.times, s.times)
	w.orgs, w.created, w.slowest = append(w.orgs, c.org), append(w.created, c.created), append(w.slowest, s.slowest)
	w.outcomes, w.judged = append(w.outcomes, int(s.outcome)), append(w.judged, s.successful)
	w.talk, w.cost, w.cells = append(w.talk, s.talk), append(w.cost, s.cost), append(w.cells, s.cell)
}

func (w *statChanges) write(ctx context.Context, tx pgx.Tx) error {
	if len(w.gone) > 0 {
		if _, err := tx.Exec(ctx, "DELETE FROM call_stats WHERE call_id = ANY ($1)", w.gone); err != nil {
			return err
		}
	}
	if len(w.ids) == 0 {
		return nil
	}
	rollups := make([]int64, len(w.rollups))
	for i, r := range w.rollups {
		rollups[i] = r.id
	}
	// Only calls with a response time need the columns of the list that begins with the slowest.
	_, err := tx.Exec(ctx, `
		INSERT INTO call_stats (call_id, rollup_id, outcome, successful, talk_ms, cost_nano, cell, times, slowest_ms, org_id, created_at)
		SELECT id, rollup, outcome, successful, talk, cost, cell, times, nullif(slowest, 0),
			CASE WHEN slowest > 0 THEN org END, CASE WHEN slowest > 0 THEN created END
		FROM unnest($1::text[], $2::bigint[], $3::int[], $4::boolean[], $5::bigint[], $6::bigint[], $7::int[], $8::bytea[], $9::int[], $10::text[], $11::timestamptz[])
			AS x (id, rollup, outcome, successful, talk, cost, cell, times, slowest, org, created)
		ON CONFLICT (call_id) DO UPDATE SET rollup_id = excluded.rollup_id, outcome = excluded.outcome, successful = excluded.successful,
			talk_ms = excluded.talk_ms, cost_nano = excluded.cost_nano, cell = excluded.cell, times = excluded.times,
			slowest_ms = excluded.slowest_ms, org_id = excluded.org_id, created_at = excluded.created_at`,
		w.ids, rollups, w.outcomes, w.judged, w.talk, w.cost, w.cells, w.times, w.slowest, w.orgs, w.created)
	return err
}

// Recount evaluates all calls of an organization in a time range again, and rebuilds their statistics. The range is
// extended to whole hours. It returns the numbers of calls, and of rows that were wrong.
func (f *Follower) Recount(ctx context.Context, orgID string, from, to time.Time) (calls, wrong int, err error) {
	for hour := from.UTC().Truncate(time.Hour); hour.Before(to); hour = hour.Add(time.Hour) {
		err = db.Tx(ctx, f.Pool, func(tx pgx.Tx) error {
			c, w, fault := f.recountHour(ctx, tx, orgID, hour)
			calls, wrong = calls+c, wrong+w
			return fault
		})
		if err != nil {
			return calls, wrong, fmt.Errorf("recount %s: %w", hour.Format(time.RFC3339), err)
		}
	}
	return calls, wrong, nil
}

func (f *Follower) recountHour(ctx context.Context, tx pgx.Tx, orgID string, hour time.Time) (calls, wrong int, err error) {
	if _, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock("+lockSQL+")"); err != nil {
		return 0, 0, err
	}
	ids, err := db.Collect(ctx, tx, "", pgx.RowTo[string], `
		SELECT id FROM calls WHERE org_id = $1 AND created_at >= $2 AND created_at < $2::timestamptz + interval '1 hour'
			AND status IN ('ended', 'failed') AND erased_at IS NULL
		UNION SELECT call_id FROM call_stats WHERE rollup_id IN (SELECT id FROM call_rollups WHERE org_id = $1 AND hour = $2)`, orgID, hour)
	if err != nil {
		return 0, 0, err
	}
	before, err := readHour(ctx, tx, orgID, hour)
	if err != nil {
		return 0, 0, err
	}
	for some := range slices.Chunk(ids, changesAtOnce) {
		if err = f.count(ctx, tx, some); err != nil {
			return 0, 0, err
		}
	}
	now, err := readHour(ctx, tx, orgID, hour)
	if err != nil {
		return 0, 0, err
	}
	var all []int64
	for id := range now.byID {
		all = append(all, id)
	}
	if err = now.rebuild(ctx, tx, all); err != nil {
		return 0, 0, err
	}
	return len(ids), before.differences(now), now.write(ctx, tx, &statChanges{})
}
