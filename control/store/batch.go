package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/control/phonenumber"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

// groupWriter writes concurrent changes of calls in groups: one statement and one fsync for each group.
type groupWriter struct {
	pool   *pgxpool.Pool // the dial pool; Store.writers sets it
	prices *pricing.List
	once   sync.Once
	intent groupcommit.Group[control.Lease]
	mark   groupcommit.Group[mark]
	finish groupcommit.Group[finish]
	trace  groupcommit.Group[signalingTrace]
	part   groupcommit.Group[transcriptPart]
}

// Minimum intervals between two transactions of one kind. Only the interval of intents delays dialing.
const (
	intentsApart  = 5 * time.Millisecond
	marksApart    = 50 * time.Millisecond
	finishesApart = 50 * time.Millisecond
	tracesApart   = 100 * time.Millisecond
	partsApart    = 50 * time.Millisecond
)

func (s *Store) writers() *groupWriter {
	w := &s.groups
	w.once.Do(func() {
		w.pool, w.prices = s.dialPool(), s.Prices
		w.intent = groupcommit.Group[control.Lease]{Write: w.intents, MinInterval: intentsApart, IsItemError: IsRowError}
		w.mark = groupcommit.Group[mark]{Write: w.marks, MinInterval: marksApart, IsItemError: IsRowError}
		w.finish = groupcommit.Group[finish]{Write: w.finishes, MinInterval: finishesApart, IsItemError: IsRowError}
		w.trace = groupcommit.Group[signalingTrace]{Write: w.traces, MinInterval: tracesApart, IsItemError: IsRowError}
		w.part = groupcommit.Group[transcriptPart]{Write: w.parts, MinInterval: partsApart, Timeout: partTimeout, IsItemError: IsRowError}
	})
	return w
}

// IsRowError reports whether a written value caused the error, so that each row must be written alone. A deadlock
// counts too, because it does not occur when each row is written alone.
func IsRowError(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (!isDatabaseFault(refusal) || refusal.Code == "40P01")
}

// mark is an attempt's move to a new state.
type mark struct {
	lease control.Lease
	to    control.AttemptState
	at    time.Time
}

// finish is the end of an unanswered attempt.
type finish struct {
	lease control.Lease
	final control.CallResult
}

// heldSQL is the CTEs "asked" and "held". "held" locks, in id order, the attempts $1 that the owners $2 still lease
// with the epochs $3.
const heldSQL = `
asked AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS x (id, owner, epoch, n)),
held AS (
	SELECT a.id, a.call_id, a.state, a.home, x.n FROM attempts a JOIN asked x ON x.id = a.id
	WHERE a.owner = x.owner AND a.epoch = x.epoch ORDER BY a.id FOR UPDATE OF a
)`

// leaseArgs returns the arguments $1 to $3 of heldSQL.
func leaseArgs[T any](items []T, of func(T) control.Lease) []any {
	ids, owners, epochs := make([]string, len(items)), make([]string, len(items)), make([]int64, len(items))
	for n, item := range items {
		l := of(item)
		ids[n], owners[n], epochs[n] = l.AttemptID, l.Owner, l.Epoch
	}
	return []any{ids, owners, epochs}
}

// queryEach runs a statement that returns one row for each attempt that is still leased. The callback one scans a row
// and sets n to the attempt's index, counted from 1. An attempt without a row gets ErrFenced.
func queryEach(ctx context.Context, q db.Querier, items int, sql string, args []any, one func(row pgx.Row, n *int) error) ([]error, error) {
	each := make([]error, items)
	for n := range each {
		each[n] = control.ErrFenced
	}
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		n := 0
		err := one(rows, &n)
		if n < 1 || n > items {
			return nil, fmt.Errorf("row %d of %d: %w", n, items, err)
		}
		each[n-1] = err
	}
	return each, rows.Err()
}

// intentCheckSQL locks the attempts that are about to be dialed and reads their intentCheck. It turns
// synchronous_commit on for the transaction.
const intentCheckSQL = `
WITH sure AS (SELECT set_config('synchronous_commit', 'on', true)),` + heldSQL + `
SELECT h.n, h.state, c.end_requested_at IS NOT NULL, c.org_id, c.to_number, c.from_number, c.call_type = 'web', s.id IS NULL,
       coalesce(s.caller_numbers, '{}'), coalesce(t.caller_numbers, '{}'), coalesce(g.caller_numbers, '{}'),
       c.campaign_id IS NOT NULL AND k.status IS DISTINCT FROM 'running'
FROM sure, held h JOIN calls c ON c.id = h.call_id LEFT JOIN campaigns k ON k.id = c.campaign_id
LEFT JOIN subgroups s ON s.id = c.route_id LEFT JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id`

// intentSQL moves the claimed attempts $4 to the state "intent", except those with a suppressed number. $1 to $3 are
// attempt ids, organizations and numbers, with one item for each form of each attempt's number.
const intentSQL = `
UPDATE attempts a SET state = 'intent'
WHERE a.id = ANY ($4) AND NOT EXISTS (
	SELECT FROM unnest($1::text[], $2::text[], $3::text[]) AS x (id, org_id, number) JOIN suppressions s USING (org_id, number)
	WHERE x.id = a.id)
RETURNING a.id`

// intentCheck holds the facts that decide whether an attempt may be dialed.
type intentCheck struct {
	state             control.AttemptState
	endRequested      bool
	org, to, from     string
	web, routeDeleted bool           // the call is a web call; its subgroup was deleted
	numbers           trunks.Numbers // caller numbers that are allowed now
	campaignStopped   bool           // the call's campaign is not running
}

// targets returns the scan targets of a row of intentCheckSQL after its first column, the index.
func (st *intentCheck) targets() []any {
	return []any{
		&st.state, &st.endRequested, &st.org, &st.to, &st.from, &st.web, &st.routeDeleted, &st.numbers.Subgroup,
		&st.numbers.Trunk, &st.numbers.Grant, &st.campaignStopped,
	}
}

// blocker returns an error if the attempt must not be dialed. The caller number was chosen when the call was accepted.
// If it is no longer allowed, the call ends; no other number is used.
func (st *intentCheck) blocker() error {
	if !control.CanMove(st.state, control.Intent) {
		return control.ErrFenced
	}
	if st.endRequested {
		return &control.HaltError{Reason: control.ReasonCanceled}
	}
	if st.campaignStopped {
		return control.ErrStopped
	}
	if st.web {
		return nil
	}
	if st.routeDeleted {
		return &control.HaltError{Reason: control.Reason(media.RouteError)}
	}
	if _, ok := trunks.FindNumber(st.numbers.Usable(), st.from); !ok {
		return &control.HaltError{Reason: control.ReasonCallerNumber}
	}
	return nil
}

// intents commits the intents of attempts. It obeys end requests and suppressions that came after the call was
// accepted.
func (w *groupWriter) intents(ctx context.Context, leases []control.Lease) (each []error, err error) {
	stands := make([]intentCheck, len(leases))
	err = db.Tx(ctx, w.pool, func(tx pgx.Tx) (fault error) {
		each, fault = queryEach(
			ctx,
			tx,
			len(leases),
			intentCheckSQL,
			leaseArgs(leases, func(l control.Lease) control.Lease { return l }),
			func(row pgx.Row, n *int) error {
				var st intentCheck
				if bad := row.Scan(append([]any{n}, st.targets()...)...); bad != nil {
					return bad
				}
				stands[*n-1] = st
				return st.blocker()
			},
		)
		if fault != nil {
			return fault
		}
		free, fault := writeIntents(ctx, tx, leases, stands, each)
		for n, l := range leases {
			if each[n] == nil && !slices.Contains(free, l.AttemptID) {
				each[n] = &control.HaltError{Reason: control.ReasonDNCBlocked}
			}
		}
		return fault
	})
	return each, err
}

// writeIntents writes the intents of the attempts for which no error is recorded yet, and returns those whose number
// is not suppressed.
func writeIntents(ctx context.Context, tx pgx.Tx, leases []control.Lease, stands []intentCheck, each []error) ([]string, error) {
	var free, ids, orgs, numbers []string
	for n, st := range stands {
		if each[n] != nil {
			continue
		}
		free = append(free, leases[n].AttemptID)
		for _, d := range phonenumber.ListedForms(st.to) {
			ids, orgs, numbers = append(ids, leases[n].AttemptID), append(orgs, st.org), append(numbers, d)
		}
	}
	if len(free) == 0 {
		return nil, nil
	}
	return db.Collect(ctx, tx, "", pgx.RowTo[string], intentSQL, ids, orgs, numbers, free)
}

// marksSQL moves leased attempts to the states $4, reached at the times $5, and updates their calls.
const marksSQL = `
WITH` + heldSQL + `,
fit AS (
	SELECT h.id, h.call_id, x.to, x.at FROM held h JOIN unnest($4::text[], $5::timestamptz[]) WITH ORDINALITY AS x ("to", at, n) USING (n)
	WHERE (h.state, x.to) IN (('intent', 'sent'), ('intent', 'ringing'), ('sent', 'ringing'), ('intent', 'answered'), ('sent', 'answered'), ('ringing', 'answered'))
), moved AS (
	UPDATE attempts a SET state = f.to FROM fit f WHERE a.id = f.id
), updated AS (
	UPDATE calls c SET
		status = CASE f.to WHEN 'ringing' THEN 'ringing' WHEN 'answered' THEN CASE c.call_type WHEN 'web' THEN c.status ELSE 'ongoing' END ELSE 'queued' END,
		dialed_at = CASE WHEN f.to = 'sent' THEN f.at ELSE c.dialed_at END,
		ringing_at = CASE WHEN f.to = 'ringing' THEN f.at ELSE c.ringing_at END,
		answered_at = CASE WHEN f.to = 'answered' THEN f.at ELSE c.answered_at END,
		recording_status = CASE WHEN f.to = 'answered' AND c.recording_status = 'none' THEN 'in_progress' ELSE c.recording_status END
	FROM fit f WHERE c.id = f.call_id
)
SELECT n, state FROM held`

// marks moves attempts to their new states. It ignores a state that the attempt has passed already.
func (w *groupWriter) marks(ctx context.Context, marks []mark) ([]error, error) {
	args := append(leaseArgs(marks, func(m mark) control.Lease { return m.lease }),
		groupcommit.Column(marks, func(m mark) string { return string(m.to) }), groupcommit.Column(marks, func(m mark) time.Time { return m.at }))
	return queryEach(ctx, w.pool, len(marks), marksSQL, args, func(row pgx.Row, n *int) error {
		var state control.AttemptState
		if err := row.Scan(n, &state); err != nil {
			return err
		}
		if !control.CanMove(state, marks[*n-1].to) && !control.CanMove(state, control.Closed) {
			return control.ErrFenced
		}
		return nil
	})
}

// unansweredColumns are the columns that the end of an unanswered attempt sets.
//
//nolint:gochecknoglobals // read-only table
var unansweredColumns = endColumns.Except("answered_at", "answered_by", "transfer", "quality", "usage", "amd", "recording_truncated")

// finishesSQL ends unanswered attempts and their calls, and writes the end events.
//
//nolint:gochecknoglobals // made once
var finishesSQL = `
WITH` + heldSQL + `,
fit AS (
	SELECT h.id, h.call_id, h.home, x.* FROM held h JOIN unnest(` + unansweredColumns.ArrayParams(4) + `)
		WITH ORDINALITY AS x (` + unansweredColumns.ArgNames() + `, n) USING (n)
	WHERE h.state IN ` + ActiveStates + `
), over AS (
	UPDATE calls c SET ` + unansweredColumns.SetFrom("f") + `
	FROM fit f WHERE c.id = f.call_id AND c.status NOT IN ('ended', 'failed')
	RETURNING c.id AS call_id, c.org_id, f.id, f.home, f.n
), moved AS (
	UPDATE attempts a SET state = 'ended' FROM over o WHERE a.id = o.id
), event AS (
	INSERT INTO events (call_id, org_id, kind, home) SELECT call_id, org_id, '` + control.CallEnded + `', home FROM over ON CONFLICT (call_id, kind) DO NOTHING
), notified AS (
	SELECT pg_notify('` + ChannelEvents + `', ''), pg_notify('` + ChannelQueue + `', '') FROM over LIMIT 1
)
SELECT o.n FROM over o LEFT JOIN notified ON true`

func (w *groupWriter) finishes(ctx context.Context, ends []finish) ([]error, error) {
	var none CallRow
	if err := none.setCost(w.prices.Cost(nil, nil)); err != nil {
		return nil, err
	}
	results := groupcommit.Column(ends, func(f finish) CallRow {
		row := resultRow(&f.final)
		row.CostNano, row.Cost = none.CostNano, none.Cost
		return row
	})
	args := append(leaseArgs(ends, func(f finish) control.Lease { return f.lease }), unansweredColumns.ArrayArgs(results)...)
	return queryEach(ctx, w.pool, len(ends), finishesSQL, args, func(row pgx.Row, n *int) error { return row.Scan(n) })
}

// signalingTrace is the list of SIP messages of an attempt.
type signalingTrace struct {
	lease control.Lease
	rungs []callview.Rung
}

func (w *groupWriter) traces(ctx context.Context, all []signalingTrace) ([]error, error) {
	ladders := make([]string, len(all))
	for n, t := range all {
		text, err := json.Marshal(t.rungs)
		if err != nil {
			return nil, err
		}
		ladders[n] = string(text)
	}
	_, err := w.pool.Exec(ctx, `
		INSERT INTO call_signalling (call_id, attempt_id, org_id, messages)
		SELECT c.id, x.attempt, c.org_id, x.messages::jsonb FROM unnest($1::text[], $2::text[], $3::text[]) AS x (call, attempt, messages) JOIN calls c ON c.id = x.call
		ON CONFLICT (call_id, attempt_id) DO UPDATE SET messages = excluded.messages`,
		groupcommit.Column(all, func(t signalingTrace) string { return t.lease.CallID }),
		groupcommit.Column(all, func(t signalingTrace) string { return t.lease.AttemptID }), ladders)
	return make([]error, len(all)), err
}
