package overview

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// A rollup is a row of the table call_rollups.
type rollup struct {
	key
	Sums

	id      int64 // 0 until it is inserted
	changed bool
}

func (r *rollup) add(s stat, sign int) error {
	r.changed = true
	return r.Sums.add(s, sign)
}

// A rollupSet holds all rows of some hours.
type rollupSet struct {
	byID  map[int64]*rollup
	byKey map[key]*rollup
	keys  map[key]int // number of rows by organization and hour
}

func (s *rollupSet) put(r *rollup) {
	if r.id != 0 {
		s.byID[r.id] = r
	}
	s.byKey[r.key] = r
	s.keys[key{org: r.org, hour: r.hour}]++
}

// of returns the row that counts calls with the key.
func (s *rollupSet) of(k key) *rollup {
	r := s.byKey[k]
	if r == nil && s.keys[key{org: k.org, hour: k.hour}] >= keysOfHour {
		k.agent, k.campaign = "", ""
		r = s.byKey[k]
	}
	if r == nil {
		r = &rollup{key: k}
		s.put(r)
	}
	return r
}

const rollupColumns = "r.id, r.org_id, r.hour, r.agent_id, r.campaign_id, r.calls, r.outcomes, r.judged, r.successful, " +
	"r.talk_ms, r.costed, r.cost_nano, r.times, r.cells"

func scanRollup(row pgx.CollectableRow) (*rollup, error) {
	r := &rollup{}
	var outcomes []int
	var times, cells []byte
	err := row.Scan(&r.id, &r.org, &r.hour, &r.agent, &r.campaign, &r.Calls, &outcomes, &r.KnownSuccess, &r.Successful, &r.TalkMS, &r.Costed,
		&r.CostNano, &times, &cells)
	r.hour = r.hour.UTC()
	copy(r.Outcomes[:], outcomes)
	if err == nil {
		err = r.decode(times, cells)
	}
	return r, err
}

func collectRollups(ctx context.Context, tx pgx.Tx, where string, args ...any) (*rollupSet, error) {
	all, err := db.Collect(ctx, tx, "", scanRollup, "SELECT "+rollupColumns+" FROM call_rollups r WHERE "+where, args...)
	s := &rollupSet{byID: map[int64]*rollup{}, byKey: map[key]*rollup{}, keys: map[key]int{}}
	for _, r := range all {
		s.put(r)
	}
	return s, err
}

// readRollups returns all rows of the hours of some calls.
func readRollups(ctx context.Context, tx pgx.Tx, all []facts) (*rollupSet, error) {
	var orgs []string
	var hours []time.Time
	seen := map[key]bool{}
	for _, f := range all {
		if k := (key{org: f.org, hour: f.hour}); !seen[k] {
			seen[k] = true
			orgs, hours = append(orgs, f.org), append(hours, f.hour)
		}
	}
	return collectRollups(ctx, tx, "(r.org_id, r.hour) IN (SELECT * FROM unnest($1::text[], $2::timestamptz[]))", orgs, hours)
}

func readHour(ctx context.Context, tx pgx.Tx, orgID string, hour time.Time) (*rollupSet, error) {
	return collectRollups(ctx, tx, "r.org_id = $1 AND r.hour = $2", orgID, hour)
}

// write stores the changed rows. A row that would become negative is rebuilt from call_stats, where the changes are
// written first.
func (s *rollupSet) write(ctx context.Context, tx pgx.Tx, changes *statChanges) error {
	var wrong []int64
	for _, r := range s.byKey {
		if r.changed && r.check() != nil {
			wrong = append(wrong, r.id)
		}
	}
	if len(wrong) > 0 {
		if err := s.insertNew(ctx, tx); err != nil {
			return err
		}
		if err := changes.write(ctx, tx); err != nil {
			return err
		}
		if err := s.rebuild(ctx, tx, wrong); err != nil {
			return err
		}
	}
	if err := s.insertNew(ctx, tx); err != nil {
		return err
	}
	return s.update(ctx, tx)
}

// insertNew inserts rows without counts for new keys.
func (s *rollupSet) insertNew(ctx context.Context, tx pgx.Tx) error {
	for _, r := range s.byKey {
		if r.id != 0 {
			continue
		}
		err := tx.QueryRow(ctx, `
			INSERT INTO call_rollups (org_id, hour, agent_id, campaign_id, calls, outcomes, judged, successful, talk_ms, costed, cost_nano, times, cells)
			VALUES ($1, $2, $3, $4, 0, '{}', 0, 0, 0, 0, 0, '', '') RETURNING id`, r.org, r.hour, r.agent, r.campaign).Scan(&r.id)
		if err != nil {
			return err
		}
		s.byID[r.id] = r
	}
	return nil
}

func (s *rollupSet) update(ctx context.Context, tx pgx.Tx) error {
	var gone []int64
	batch := &db.Batch{}
	for _, r := range s.byKey {
		switch {
		case !r.changed:
		case r.Calls == 0:
			gone = append(gone, r.id)
		default:
			batch.Queue(`
				UPDATE call_rollups SET calls = $2, outcomes = $3, judged = $4, successful = $5, talk_ms = $6, costed = $7, cost_nano = $8, times = $9, cells = $10
				WHERE id = $1`, r.id, r.Calls, r.Outcomes[:], r.KnownSuccess, r.Successful, r.TalkMS, r.Costed, r.CostNano, r.Times.encode(), r.Week.encode())
		}
	}
	if len(gone) > 0 {
		batch.Queue("DELETE FROM call_rollups WHERE id = ANY ($1)", gone)
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, batch).Close()
}

// rebuild adds up rows from call_stats.
func (s *rollupSet) rebuild(ctx context.Context, tx pgx.Tx, ids []int64) error {
	for _, id := range ids {
		if r := s.byID[id]; r != nil {
			r.Sums, r.changed = Sums{}, true
		}
	}
	var id int64
	var c stat
	return db.Each(ctx, tx, "", []any{&id, &c.outcome, &c.successful, &c.talk, &c.cost, &c.cell, &c.times}, func() error {
		if r := s.byID[id]; r != nil {
			return r.add(c, 1)
		}
		return nil
	}, "SELECT rollup_id, outcome, successful, talk_ms, cost_nano, cell::int, times FROM call_stats WHERE rollup_id = ANY ($1)", ids)
}

// differences returns the number of rows that differ between two sets.
func (s *rollupSet) differences(o *rollupSet) (n int) {
	for k, r := range s.byKey {
		if other := o.byKey[k]; other == nil && r.Calls != 0 || other != nil && other.Sums != r.Sums {
			n++
		}
	}
	for k, r := range o.byKey {
		if s.byKey[k] == nil && r.Calls != 0 {
			n++
		}
	}
	return n
}
