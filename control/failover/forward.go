package failover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/control/journal"
)

// foundAtOnce is the maximum number of attempts in one query.
const foundAtOnce = 1000

// forward restores the calls of this node that the database has lost. It counts a call that it cannot restore and
// continues with the next one.
func (w *Monitor) forward(ctx context.Context) error {
	all := w.Journal.Entries()
	for len(all) > 0 {
		some := all[:min(len(all), foundAtOnce)]
		all = all[len(some):]
		known, err := w.find(ctx, some)
		if err != nil {
			return err
		}
		for _, e := range some {
			f := known[e.Attempt]
			if e.Void || f.fact && f.state == "" {
				continue
			}
			if err := w.apply(ctx, e, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// find reads attempts from the database.
func (w *Monitor) find(ctx context.Context, entries []journal.Entry) (map[string]found, error) {
	ids := groupcommit.Column(entries, func(e journal.Entry) string { return e.Attempt })
	known := map[string]found{}
	var id string
	var f found
	do := func() error { known[id] = f; return nil }
	err := db.Each(ctx, w.Pool, "", []any{&id, &f.state, &f.owner, &f.epoch, &f.over, &f.fact}, do, `
		SELECT x.id, coalesce(a.state, ''), coalesce(a.owner, ''), coalesce(a.epoch, 0), coalesce(c.status IN ('ended', 'failed'), false),
			EXISTS (SELECT FROM sent_facts f WHERE f.attempt_id = x.id)
		FROM unnest($1::text[]) AS x (id) LEFT JOIN attempts a ON a.id = x.id LEFT JOIN calls c ON c.id = a.call_id`, ids)
	return known, err
}

// apply restores one call. It returns an error only if the database fails.
func (w *Monitor) apply(ctx context.Context, e journal.Entry, f found) error {
	w.mu.Lock()
	var c *call
	if kept := w.calls.all[e.Attempt]; kept != nil && kept.rows.attempt != "" {
		copied := *kept // a copy, because other goroutines still change the call
		c = &copied
	}
	w.mu.Unlock()
	do, err := w.write(ctx, e, f, c)
	if do == leave || err != nil && (ctx.Err() != nil || db.IsUnavailable(err)) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.stats.Lost++
		if kept := w.calls.all[e.Attempt]; kept != nil {
			kept.detached = true
		}
		w.log().ErrorContext(ctx, "failed to restore a call that the database lost", "call", e.Call, "attempt", e.Attempt, "err", err)
	case do == restore:
		w.stats.Restored++
	case do == conclude:
		w.stats.Settled++
	default:
		w.stats.Facts++
		w.log().ErrorContext(ctx, "database lost a call; only the fact that it was sent is known",
			"call", e.Call, "attempt", e.Attempt, "at", e.At)
	}
	return nil
}

// write carries out the action for a call, and returns the action that was carried out.
func (w *Monitor) write(ctx context.Context, e journal.Entry, f found, c *call) (do action, err error) {
	switch do = decide(f, c); do {
	case restore:
		err = w.restore(ctx, c)
	case conclude:
		err = w.conclude(ctx, e)
	case state:
		do, err = w.recordSent(ctx, e)
	default:
		return leave, nil
	}
	if err != nil && ctx.Err() == nil && !db.IsUnavailable(err) && f.state == "" {
		// Without a row in sent_facts, Allow would take each later call to the number for another failover.
		if fault := w.writeFact(ctx, e); fault != nil {
			err = fault
		}
	}
	return do, err
}

// insert inserts a row that was read as JSON, unless the row exists.
func insert(ctx context.Context, tx pgx.Tx, table, row, conflict string) error {
	if row == "" {
		return nil
	}
	columns, err := columnsOf(ctx, tx, table)
	if err != nil {
		return err
	}
	_, err = tx.Exec(
		ctx,
		"INSERT INTO "+table+" ("+columns+") SELECT "+columns+" FROM json_populate_record(NULL::"+table+", $1::json) ON CONFLICT "+conflict,
		row,
	)
	return db.Wrap(err, table)
}

// columnsOf lists the columns of a table, except generated columns.
func columnsOf(ctx context.Context, tx pgx.Tx, table string) (string, error) {
	names, err := db.Collect(ctx, tx, "", pgx.RowTo[string], `
		SELECT quote_ident(attname) FROM pg_attribute
		WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`, table)
	return strings.Join(names, ", "), err
}

// restore writes the rows of a call of this process in the current state, with its contact and its Idempotency-Key.
func (w *Monitor) restore(ctx context.Context, c *call) error {
	err := db.Tx(ctx, w.Pool, func(tx pgx.Tx) error {
		if err := insert(ctx, tx, "calls", c.rows.call, "(id) DO NOTHING"); err != nil {
			return err
		}
		if err := insert(ctx, tx, "attempts", c.rows.attempt, "(id) DO NOTHING"); err != nil {
			return err
		}
		if err := w.holdAttempt(ctx, tx, c); err != nil {
			return err
		}
		if err := insert(ctx, tx, "contact_attempts", c.rows.contactAttempt, "DO NOTHING"); err != nil {
			return err
		}
		if c.rows.contact != "" {
			_, err := tx.Exec(ctx, `
				UPDATE contacts SET state = 'in_call', attempts = ($1::json ->> 'attempts')::integer, call_id = $2,
					next_attempt_at = NULL, governing_cap = '', updated_at = clock_timestamp()
				WHERE id = $1::json ->> 'id' AND state = 'pending'`, c.rows.contact, c.lease.CallID)
			if err != nil {
				return fmt.Errorf("contact: %w", err)
			}
		}
		return insert(ctx, tx, "idempotency_keys", c.rows.key, `(scope, key) DO UPDATE SET
			fingerprint = excluded.fingerprint, token = excluded.token, done = excluded.done, status = excluded.status,
			body = excluded.body, created_at = excluded.created_at, call_id = excluded.call_id WHERE NOT idempotency_keys.done`)
	})
	if err != nil || c.over.IsZero() || c.final == nil {
		return err
	}
	if err = w.Attempts.Finish(ctx, c.lease, *c.final); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

// holdAttempt leases the attempt to this node again, in its current state.
func (w *Monitor) holdAttempt(ctx context.Context, tx pgx.Tx, c *call) error {
	lease := w.lease()
	if !c.over.IsZero() && c.final == nil {
		lease = -time.Second // an expired lease, so that the attempt is settled like that of a lost node
	}
	_, err := tx.Exec(ctx, `
		UPDATE attempts SET state = $2, owner = $3, home = $4, epoch = $5, lease_until = clock_timestamp() + $6::interval
		WHERE id = $1 AND epoch <= $5 AND state NOT IN ('ended', 'unknown')`,
		c.lease.AttemptID, c.state, c.lease.Owner, w.Node.Home, c.lease.Epoch, lease)
	if err != nil {
		return fmt.Errorf("attempt: %w", err)
	}
	_, err = db.Exec(ctx, tx, "call", `
		UPDATE calls SET
			status = CASE WHEN $2 = 'answered' THEN 'ongoing' WHEN $2 = 'ringing' AND status = 'queued' THEN 'ringing' ELSE status END,
			dialed_at = coalesce($3, dialed_at), ringing_at = coalesce($4, ringing_at), answered_at = coalesce($5, answered_at),
			recording_status = CASE WHEN $2 = 'answered' AND recording_status = 'none' THEN 'in_progress' ELSE recording_status END
		WHERE id = $1 AND status NOT IN ('ended', 'failed')`,
		c.lease.CallID, string(c.state), orNull(c.dialed), orNull(c.ringing), orNull(c.answered))
	return err
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// conclude ends an attempt that is still queued in the database, with the result in the journal entry. Without a
// result, the attempt gets an expired lease and is settled like that of a lost node.
func (w *Monitor) conclude(ctx context.Context, e journal.Entry) error {
	lease := control.Lease{AttemptID: e.Attempt, CallID: e.Call, Owner: w.Node.Owner}
	to, until := control.Sent, -time.Second // an expired lease
	switch {
	case e.End != nil:
		until = w.lease()
	case !e.Answered.IsZero():
		to = control.Answered
	}
	err := w.Pool.QueryRow(ctx, `
		WITH updated AS (
			UPDATE calls SET dialed_at = coalesce(dialed_at, $6), answered_at = coalesce($7, answered_at) WHERE id = $8
		)
		UPDATE attempts SET state = $2, owner = $3, home = $4, epoch = epoch + 1, claimed_at = coalesce(claimed_at, $6), lease_until = clock_timestamp() + $5::interval
		WHERE id = $1 AND state IN ('scheduled', 'claimed') RETURNING epoch`,
		e.Attempt, to, w.Node.Owner, w.Node.Home, until, e.At, orNull(e.Answered), e.Call).Scan(&lease.Epoch)
	if err != nil || e.End == nil {
		return err
	}
	return w.Attempts.Finish(ctx, lease, e.End.Result())
}

// contactSQL creates the call of a contact again and counts the attempt.
const contactSQL = `
WITH one AS (
	SELECT k.*, c.agent_id, c.agent_name, c.agent_version, c.trunk_id, c.route_id, c.from_number, s.dial_prefix
	FROM contacts k JOIN campaigns c ON c.id = k.campaign_id JOIN subgroups s ON s.id = c.route_id
	WHERE k.id = $1 AND k.state = 'pending'
	  AND NOT EXISTS (SELECT FROM contact_attempts x WHERE x.org_id = k.org_id AND x.number = k.number AND x.ended_at IS NULL)
	FOR UPDATE OF k
), call AS (
	INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
		trunk_id, route_id, campaign_id, contact_id, import_id, external_id, attempt, name, metadata, variables, ring_seconds, created_at)
	SELECT $2, org_id, 'phone', 'queued', agent_id, agent_name, agent_version, regexp_replace(number, '\D', '', 'g'), from_number,
		dial_prefix || regexp_replace(number, '\D', '', 'g'), trunk_id, route_id, campaign_id, id, import_id, nullif(external_id, ''),
		attempts + 1, name, metadata, variables, 45, $4
	FROM one RETURNING org_id, trunk_id, route_id
), attempt AS (
	INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no, state, created_at)
	SELECT $3, $2, org_id, trunk_id, route_id, 1, 'claimed', $4 FROM call
), counted AS (
	INSERT INTO contact_attempts (contact_id, n, org_id, campaign_id, number, call_id, began_at)
	SELECT id, coalesce((SELECT max(n) FROM contact_attempts x WHERE x.contact_id = one.id), 0) + 1, org_id, campaign_id, number, $2, $4 FROM one
)
UPDATE contacts k SET state = 'in_call', attempts = k.attempts + 1, call_id = $2, next_attempt_at = NULL, governing_cap = '', updated_at = clock_timestamp()
FROM one WHERE k.id = one.id`

// recordSent records that a call was sent although the database and this process have lost its rows. If the call's
// contact is still waiting, it creates the call again from the contact and concludes it. Otherwise it writes a sent
// fact.
func (w *Monitor) recordSent(ctx context.Context, e journal.Entry) (action, error) {
	if e.Contact != "" {
		tag, err := w.Pool.Exec(ctx, contactSQL, e.Contact, e.Call, e.Attempt, e.At)
		if err != nil {
			return conclude, fmt.Errorf("contact %s: %w", e.Contact, err)
		}
		if tag.RowsAffected() > 0 {
			return conclude, w.conclude(ctx, e)
		}
	}
	return state, w.writeFact(ctx, e)
}

// writeFact writes a row of table sent_facts, which says only that the call was sent.
func (w *Monitor) writeFact(ctx context.Context, e journal.Entry) error {
	_, err := w.Pool.Exec(ctx, `
		INSERT INTO sent_facts (attempt_id, call_id, org_id, number_hash, key_hash, sent_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (attempt_id) DO NOTHING`, e.Attempt, e.Call, e.Org, e.Number[:], e.Key[:], e.At)
	return err
}
