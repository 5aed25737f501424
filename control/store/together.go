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

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/group"
	"github.com/parley-voice/parley/control/spelling"
	"github.com/parley-voice/parley/control/trace"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

// What many calls write at the same time goes to the database together: one
// statement, one transaction, one wait for the disk.
type together struct {
	once   sync.Once
	intent group.Group[control.Lease]
	mark   group.Group[mark]
	finish group.Group[finish]
	trace  group.Group[traced]
}

// Least times between two transactions of a kind. A call's dialling waits for
// the first alone.
const (
	intentsApart  = 5 * time.Millisecond
	marksApart    = 50 * time.Millisecond
	finishesApart = 50 * time.Millisecond
	tracesApart   = 100 * time.Millisecond
)

func (s *Store) writers() *together {
	s.together.once.Do(func() {
		t := &s.together
		t.intent = group.Group[control.Lease]{Write: s.intents, Apart: intentsApart, Blames: OfTheRow}
		t.mark = group.Group[mark]{Write: s.marks, Apart: marksApart, Blames: OfTheRow}
		t.finish = group.Group[finish]{Write: s.finishes, Apart: finishesApart, Blames: OfTheRow}
		t.trace = group.Group[traced]{Write: s.traces, Apart: tracesApart, Blames: OfTheRow}
	})
	return &s.together
}

// OfTheRow tells an error that a value brought about from one of the database. A
// deadlock is over when each is tried alone.
func OfTheRow(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (!ofTheDatabase(refusal) || refusal.Code == "40P01")
}

// A mark moves an attempt on.
type mark struct {
	lease control.Lease
	to    control.AttemptState
	at    time.Time
}

// A finish ends an attempt that nobody answered.
type finish struct {
	lease control.Lease
	final control.Final
}

// heldSQL locks those of the attempts named in $1, $2 and $3 that their nodes
// still hold, in an order that others lock in too.
const heldSQL = `
asked AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS x (id, owner, epoch, n)),
held AS (
	SELECT a.id, a.call_id, a.state, a.home, x.n FROM attempts a JOIN asked x ON x.id = a.id
	WHERE a.owner = x.owner AND a.epoch = x.epoch ORDER BY a.id FOR UPDATE OF a
)`

// holders are the arguments of heldSQL.
func holders[T any](items []T, of func(T) control.Lease) []any {
	ids, owners, epochs := make([]string, len(items)), make([]string, len(items)), make([]int64, len(items))
	for n, item := range items {
		l := of(item)
		ids[n], owners[n], epochs[n] = l.AttemptID, l.Owner, l.Epoch
	}
	return []any{ids, owners, epochs}
}

// askEach runs a statement that returns a row of each attempt that is held, and
// its place among the items; the others are fenced.
func askEach(ctx context.Context, q db.Querier, items int, sql string, args []any, one func(row pgx.Row, n *int) error) ([]error, error) {
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

// standSQL locks attempts that are about to be dialled, and tells where they stand.
// Their intents go to the disk whatever the database does otherwise.
const standSQL = `
WITH sure AS (SELECT set_config('synchronous_commit', 'on', true)),` + heldSQL + `
SELECT h.n, h.state, c.end_requested_at IS NOT NULL, c.org_id, c.to_number, c.from_number, c.call_type = 'web', s.id IS NULL,
       coalesce(s.caller_numbers, '{}'), coalesce(t.caller_numbers, '{}'), coalesce(g.caller_numbers, '{}'),
       c.campaign_id IS NOT NULL AND k.status IS DISTINCT FROM 'running'
FROM sure, held h JOIN calls c ON c.id = h.call_id LEFT JOIN campaigns k ON k.id = c.campaign_id
LEFT JOIN subgroups s ON s.id = c.route_id LEFT JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id`

// intendSQL moves those of them on that are claimed and free to be dialled: $2
// and $3 are how the number of each of $1 may be written on its organization's list.
const intendSQL = `
UPDATE attempts a SET state = 'intent'
WHERE a.id = ANY ($4) AND NOT EXISTS (
	SELECT FROM unnest($1::text[], $2::text[], $3::text[]) AS x (id, org_id, number) JOIN suppressions s USING (org_id, number)
	WHERE x.id = a.id)
RETURNING a.id`

// A stand is where an attempt stands whose intent is to be committed.
type stand struct {
	state         control.AttemptState
	asked         bool
	org, to, from string
	web, gone     bool           // a browser's call; one whose subgroup was deleted
	numbers       trunks.Numbers // that its way may show now
	stopped       bool           // its campaign does not run any more
}

// columns are where a row of standSQL goes, behind its number.
func (st *stand) columns() []any {
	return []any{&st.state, &st.asked, &st.org, &st.to, &st.from, &st.web, &st.gone, &st.numbers.Subgroup, &st.numbers.Trunk, &st.numbers.Grant, &st.stopped}
}

// against is what keeps an attempt from being dialled, if anything does. What its
// call shows was settled when it was accepted: no other number is shown instead.
func (st *stand) against() error {
	if !control.May(st.state, control.Intent) {
		return control.ErrFenced
	}
	if st.asked {
		return &control.HaltError{Reason: control.ReasonCancelled}
	}
	if st.stopped {
		return control.ErrStopped
	}
	if st.web {
		return nil
	}
	if st.gone {
		return &control.HaltError{Reason: control.Reason(media.RouteError)}
	}
	if _, ok := trunks.Among(st.numbers.Shown(), st.from); !ok {
		return &control.HaltError{Reason: control.ReasonCallerNumber}
	}
	return nil
}

// intents commits what is about to leave. What was asked, or forbidden, since a
// call was accepted counts.
func (s *Store) intents(ctx context.Context, leases []control.Lease) (each []error, err error) {
	stands := make([]stand, len(leases))
	err = db.Tx(ctx, s.dial(), func(tx pgx.Tx) (fault error) {
		each, fault = askEach(ctx, tx, len(leases), standSQL, holders(leases, func(l control.Lease) control.Lease { return l }), func(row pgx.Row, n *int) error {
			var st stand
			if bad := row.Scan(append([]any{n}, st.columns()...)...); bad != nil {
				return bad
			}
			stands[*n-1] = st
			return st.against()
		})
		if fault != nil {
			return fault
		}
		free, fault := intend(ctx, tx, leases, stands, each)
		for n, l := range leases {
			if each[n] == nil && !slices.Contains(free, l.AttemptID) {
				each[n] = &control.HaltError{Reason: control.ReasonDNCBlocked}
			}
		}
		return fault
	})
	return each, err
}

// intend writes the intents of those attempts that nothing is said against, and
// returns those that no list forbids.
func intend(ctx context.Context, tx pgx.Tx, leases []control.Lease, stands []stand, each []error) ([]string, error) {
	var free, ids, orgs, numbers []string
	for n, st := range stands {
		if each[n] != nil {
			continue
		}
		free = append(free, leases[n].AttemptID)
		for _, d := range spelling.All(st.to) {
			ids, orgs, numbers = append(ids, leases[n].AttemptID), append(orgs, st.org), append(numbers, d)
		}
	}
	if len(free) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, intendSQL, ids, orgs, numbers, free)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// marksSQL moves attempts to $4 at $5, and their calls with them.
const marksSQL = `
WITH` + heldSQL + `,
fit AS (
	SELECT h.id, h.call_id, x.to, x.at FROM held h JOIN unnest($4::text[], $5::timestamptz[]) WITH ORDINALITY AS x ("to", at, n) USING (n)
	WHERE (h.state, x.to) IN (('intent', 'sent'), ('intent', 'ringing'), ('sent', 'ringing'), ('intent', 'answered'), ('sent', 'answered'), ('ringing', 'answered'))
), moved AS (
	UPDATE attempts a SET state = f.to FROM fit f WHERE a.id = f.id
), told AS (
	UPDATE calls c SET
		status = CASE f.to WHEN 'ringing' THEN 'ringing' WHEN 'answered' THEN CASE c.call_type WHEN 'web' THEN c.status ELSE 'ongoing' END ELSE 'queued' END,
		dialed_at = CASE WHEN f.to = 'sent' THEN f.at ELSE c.dialed_at END,
		ringing_at = CASE WHEN f.to = 'ringing' THEN f.at ELSE c.ringing_at END,
		answered_at = CASE WHEN f.to = 'answered' THEN f.at ELSE c.answered_at END,
		recording_status = CASE WHEN f.to = 'answered' AND c.recording_status = 'none' THEN 'in_progress' ELSE c.recording_status END
	FROM fit f WHERE c.id = f.call_id
)
SELECT n, state FROM held`

// marks moves attempts on. A state that was passed already is no error.
func (s *Store) marks(ctx context.Context, marks []mark) ([]error, error) {
	args := append(holders(marks, func(m mark) control.Lease { return m.lease }),
		group.Column(marks, func(m mark) string { return string(m.to) }), group.Column(marks, func(m mark) time.Time { return m.at }))
	return askEach(ctx, s.dial(), len(marks), marksSQL, args, func(row pgx.Row, n *int) error {
		var state control.AttemptState
		if err := row.Scan(n, &state); err != nil {
			return err
		}
		if !control.May(state, marks[*n-1].to) && !control.May(state, control.Closed) {
			return control.ErrFenced
		}
		return nil
	})
}

// finishesSQL ends attempts that nobody answered, their calls, and writes the
// events of it.
const finishesSQL = `
WITH` + heldSQL + `,
fit AS (
	SELECT h.id, h.call_id, h.home, x.* FROM held h JOIN unnest($4::text[], $5::text[], $6::text[], $7::int[], $8::text[],
		$9::timestamptz[], $10::timestamptz[], $11::timestamptz[], $12::text[])
		WITH ORDINALITY AS x (status, reason, by, code, phrase, dialed, rang, ended, recording, n) USING (n)
	WHERE h.state IN ` + Alive + `
), over AS (
	UPDATE calls c SET status = f.status, disconnection_reason = f.reason, hangup_by = f.by, sip_status = f.code, sip_reason = f.phrase,
		dialed_at = coalesce(f.dialed, c.dialed_at), ringing_at = coalesce(f.rang, c.ringing_at), ended_at = f.ended,
		recording_status = CASE WHEN c.recording_status = 'disabled' THEN 'disabled' ELSE f.recording END
	FROM fit f WHERE c.id = f.call_id AND c.status NOT IN ('ended', 'failed')
	RETURNING c.id AS call_id, c.org_id, f.id, f.home, f.n
), moved AS (
	UPDATE attempts a SET state = 'ended' FROM over o WHERE a.id = o.id
), told AS (
	INSERT INTO events (call_id, org_id, kind, home) SELECT call_id, org_id, '` + control.CallEnded + `', home FROM over ON CONFLICT (call_id, kind) DO NOTHING
), rung AS (
	SELECT pg_notify('` + BellEvents + `', ''), pg_notify('` + BellQueue + `', '') FROM over LIMIT 1
)
SELECT o.n FROM over o LEFT JOIN rung ON true`

func (s *Store) finishes(ctx context.Context, ends []finish) ([]error, error) {
	args := append(holders(ends, func(f finish) control.Lease { return f.lease }),
		group.Column(ends, func(f finish) string { return string(f.final.Status) }),
		group.Column(ends, func(f finish) *string { return orNull(string(f.final.Reason)) }),
		group.Column(ends, func(f finish) *string { return orNull(string(f.final.HangupBy)) }),
		group.Column(ends, func(f finish) *int { return orNull(f.final.SIPStatus) }),
		group.Column(ends, func(f finish) *string { return orNull(f.final.SIPReason) }),
		group.Column(ends, func(f finish) *time.Time { return orNull(f.final.DialedAt) }),
		group.Column(ends, func(f finish) *time.Time { return orNull(f.final.RingingAt) }),
		group.Column(ends, func(f finish) time.Time { return f.final.EndedAt }),
		group.Column(ends, func(f finish) string { return string(f.final.Recording) }))
	return askEach(ctx, s.dial(), len(ends), finishesSQL, args, func(row pgx.Row, n *int) error { return row.Scan(n) })
}

// A traced is the signalling of an attempt.
type traced struct {
	lease control.Lease
	rungs []trace.Rung
}

func (s *Store) traces(ctx context.Context, all []traced) ([]error, error) {
	ladders := make([]string, len(all))
	for n, t := range all {
		text, err := json.Marshal(t.rungs)
		if err != nil {
			return nil, err
		}
		ladders[n] = string(text)
	}
	_, err := s.dial().Exec(ctx, `
		INSERT INTO call_signalling (call_id, attempt_id, org_id, messages)
		SELECT c.id, x.attempt, c.org_id, x.messages::jsonb FROM unnest($1::text[], $2::text[], $3::text[]) AS x (call, attempt, messages) JOIN calls c ON c.id = x.call
		ON CONFLICT (call_id, attempt_id) DO UPDATE SET messages = excluded.messages`,
		group.Column(all, func(t traced) string { return t.lease.CallID }), group.Column(all, func(t traced) string { return t.lease.AttemptID }), ladders)
	return make([]error, len(all)), err
}
