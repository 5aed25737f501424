package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/control/journal"
)

// forgottenSQL selects one of the attempts $1 that the database does not know as sent. $2 is the claimed attempt.
const forgottenSQL = `
SELECT x.id FROM unnest($1::text[]) AS x (id)
WHERE NOT EXISTS (SELECT FROM attempts a WHERE a.id = x.id AND a.state NOT IN ('scheduled', 'claimed'))
  AND (x.id = $2 OR NOT EXISTS (SELECT FROM sent_facts f WHERE f.attempt_id = x.id))
LIMIT 1`

// Allow implements control.SendLog. It detects a revert even if the timeline has not changed: this node has sent the
// claimed call before, or the database lacks another call to the same number.
func (w *Monitor) Allow(ctx context.Context, c *control.Claim) error {
	var number journal.Hash
	if c.Call.Type != control.Web {
		number = w.NumberHash(c.Call.OrgID, c.Call.To)
	}
	sent := w.Journal.SentTo(number, c.Lease.AttemptID)
	if len(sent) == 0 {
		return nil
	}
	var id string
	err := w.Pool.QueryRow(ctx, forgottenSQL, groupcommit.Column(sent, func(e journal.Entry) string { return e.Attempt }), c.Lease.AttemptID).
		Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to read calls sent to the number: %w", err)
	}
	w.log().ErrorContext(ctx, "call not made: the database forgot an earlier call", "forgotten", id, "attempt", c.Lease.AttemptID)
	w.mu.Lock()
	known := w.epoch
	w.mu.Unlock()
	if err = w.beginAgain(ctx, known); err != nil {
		return fmt.Errorf("%w: %w", control.ErrForgotten, err)
	}
	return control.ErrForgotten
}

// RecordIntent implements control.SendLog. Many calls share one fsync.
func (w *Monitor) RecordIntent(ctx context.Context, c *control.Claim) error {
	w.once.Do(func() { w.sending = groupcommit.Group[*control.Claim]{Write: w.send, Wait: true} })
	return w.sending.Do(ctx, c)
}

// rowsSQL reads the rows of attempts that are about to be sent.
const rowsSQL = `
SELECT a.id, row_to_json(c)::text, row_to_json(a)::text,
	coalesce((SELECT row_to_json(x)::text FROM contact_attempts x WHERE x.call_id = c.id), ''),
	coalesce((SELECT row_to_json(k)::text FROM (SELECT id, attempts FROM contacts WHERE id = c.contact_id) k), ''),
	coalesce((SELECT row_to_json(i)::text FROM idempotency_keys i WHERE i.call_id = c.id LIMIT 1), ''),
	coalesce((SELECT i.scope FROM idempotency_keys i WHERE i.call_id = c.id LIMIT 1), ''),
	coalesce((SELECT i.key FROM idempotency_keys i WHERE i.call_id = c.id LIMIT 1), '')
FROM attempts a JOIN calls c ON c.id = a.call_id WHERE a.id = ANY ($1)`

// send writes the journal entries of calls before their INVITEs leave. If it cannot read the rows of the calls, the
// calls are sent anyway. A revert then loses part of them.
func (w *Monitor) send(ctx context.Context, claims []*control.Claim) ([]error, error) {
	now := time.Now()
	made, keys := map[string]rows{}, map[string]journal.Hash{}
	if err := w.read(ctx, claims, made, keys); err != nil {
		w.log().WarnContext(ctx, "failed to copy the rows of calls: a database failover may lose part of them",
			"calls", len(claims), "err", err)
	}
	entries := make([]journal.Entry, len(claims))
	for n, c := range claims {
		e := journal.Entry{
			Attempt: c.Lease.AttemptID, Call: c.Call.ID, Org: c.Call.OrgID, Contact: c.Call.ContactID, Key: keys[c.Lease.AttemptID], At: now,
		}
		if c.Call.Type != control.Web {
			e.Number = w.NumberHash(c.Call.OrgID, c.Call.To)
		}
		entries[n] = e
	}
	w.mu.Lock()
	for _, c := range claims {
		w.calls.add(&call{lease: c.Lease, rows: made[c.Lease.AttemptID], state: control.Intent, changes: w.stats.Changes})
	}
	w.mu.Unlock()
	return make([]error, len(claims)), w.Journal.Append(entries...)
}

func (w *Monitor) read(ctx context.Context, claims []*control.Claim, made map[string]rows, keys map[string]journal.Hash) error {
	var id, scope, key string
	var r rows
	return db.Each(ctx, w.Pool, "", []any{&id, &r.call, &r.attempt, &r.contactAttempt, &r.contact, &r.key, &scope, &key}, func() error {
		made[id] = r
		if key != "" {
			keys[id] = w.KeyHash(scope, key)
		}
		return nil
	}, rowsSQL, groupcommit.Column(claims, func(c *control.Claim) string { return c.Lease.AttemptID }))
}

// RecordState implements control.SendLog.
func (w *Monitor) RecordState(l control.Lease, s control.AttemptState, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.calls.all[l.AttemptID]
	if c == nil {
		return
	}
	if s == control.Closed {
		w.calls.end(c, time.Now())
		return
	}
	c.moved(s, at)
	if s == control.Answered {
		w.Journal.Change(l.AttemptID, func(e *journal.Entry) { e.Answered = at })
	}
}

// RecordEnd implements control.SendLog. If no INVITE left, RecordEnd stores that on disk before it returns, because
// the call may be placed again.
func (w *Monitor) RecordEnd(l control.Lease, f *control.CallResult) error {
	if f == nil {
		w.mu.Lock()
		delete(w.calls.all, l.AttemptID)
		w.mu.Unlock()
		w.Journal.Change(l.AttemptID, func(e *journal.Entry) { e.Void = true })
		return w.Journal.Append()
	}
	w.mu.Lock()
	if c := w.calls.all[l.AttemptID]; c != nil {
		c.final = f
	}
	w.mu.Unlock()
	w.Journal.Change(l.AttemptID, func(e *journal.Entry) { e.End = journal.NewEnd(*f) })
	return nil
}

// IsRestored implements control.SendLog.
func (w *Monitor) IsRestored(ctx context.Context, l control.Lease) (bool, error) {
	w.mu.Lock()
	_, ours := w.calls.all[l.AttemptID]
	w.mu.Unlock()
	if !ours {
		return false, nil
	}
	if _, err := w.Check(ctx); err != nil {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.calls.all[l.AttemptID]
	if c == nil || c.detached || c.changes == w.stats.Changes {
		return false, nil
	}
	c.changes = w.stats.Changes
	return true, nil
}

// IsDetached implements control.Continuity.
func (w *Monitor) IsDetached(attempt string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.calls.all[attempt]
	return c != nil && c.detached
}
