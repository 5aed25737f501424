package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/groupcommit"
)

// EventStore is the outbox of call events. It is safe for concurrent use.
type EventStore struct {
	Pool *pgxpool.Pool
	// HomeTimeout is the time for which an event is reserved for the node that has the call's files; 0 means
	// control.HomeTimeout.
	HomeTimeout time.Duration
	// AnyNodeSteps are the steps that need no files of the call. Another node runs them if the event's node has not
	// taken the event after 30 s.
	AnyNodeSteps []string
	// LossStep is the step that another node runs if the event's node has shown no sign of life for LossTimeout; empty
	// means that there is none.
	LossStep    string
	LossTimeout time.Duration
}

// awayAfter is the age of an event at which other nodes run its AnyNodeSteps.
const awayAfter = 30 * time.Second

// lostSQL is true for events e whose node has shown no sign of life for the interval $9. A node that was stopped
// properly has no row in nodes. The age of the event comes first, because it is cheap to check.
const lostSQL = `(e.home NOT IN ('', $1) AND e.created_at < clock_timestamp() - least($6::interval, $9::interval)
	AND coalesce((SELECT max(n.seen_at) FROM nodes n WHERE starts_with(n.name, e.home || '#')), e.created_at) < clock_timestamp() - $9::interval)`

// Take implements control.Outbox. An event whose files are on another node is reserved for that node during
// HomeTimeout. Other nodes run only its AnyNodeSteps, and only after awayAfter, and LossStep.
func (s *EventStore) Take(ctx context.Context, line control.Lane, home string, lease time.Duration, most int) ([]*control.Event, error) {
	all, err := db.Collect(ctx, s.Pool, "outbox", func(row pgx.CollectableRow) (*control.Event, error) {
		var e control.Event
		return &e, row.Scan(&e.ID, &e.CallID, &e.OrgID, &e.Kind, &e.Lane, &e.Done, &e.Tries, &e.At, &e.Status, &e.Reason, &e.Remote, &e.Lost)
	}, `
		WITH due AS (
			SELECT e.id FROM events e
			WHERE e.done_at IS NULL AND e.line = $4 AND e.next_at <= clock_timestamp()
			  AND (e.lease_until IS NULL OR e.lease_until < clock_timestamp())
			  AND (e.home IN ('', $1) OR e.created_at < clock_timestamp() - $3::interval
			       OR e.created_at < clock_timestamp() - $6::interval AND $7::text[] <> '{}' AND NOT e.followed @> $7
			       OR $8::text <> '' AND NOT $8 = ANY (e.followed) AND `+lostSQL+`)
			  AND NOT EXISTS (SELECT FROM events o WHERE o.call_id = e.call_id AND o.id < e.id AND o.done_at IS NULL)
			ORDER BY e.next_at, e.id LIMIT $5
			FOR UPDATE OF e SKIP LOCKED)
		UPDATE events e SET lease_until = clock_timestamp() + $2
		FROM due JOIN events o ON o.id = due.id JOIN calls c ON c.id = o.call_id WHERE e.id = due.id
		RETURNING e.id, e.call_id, e.org_id, e.kind, e.line, e.followed, e.tries, e.created_at, c.status, coalesce(c.disconnection_reason, ''),
			e.home NOT IN ('', $1) AND e.created_at >= clock_timestamp() - $3::interval, $8 <> '' AND `+lostSQL,
		home, lease, cmp.Or(s.HomeTimeout, control.HomeTimeout), line, most, awayAfter, s.AnyNodeSteps, s.LossStep, s.LossTimeout)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *control.Event) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// keep updates the state of events.
func (s *EventStore) keep(ctx context.Context, sql string, args ...any) error {
	_, err := db.Exec(ctx, s.Pool, "outbox", sql, args...)
	return err
}

// SaveProgress implements control.Outbox.
func (s *EventStore) SaveProgress(ctx context.Context, e *control.Event, lease time.Duration) error {
	return s.keep(ctx, "UPDATE events SET followed = $2, tries = 0, lease_until = clock_timestamp() + $3 WHERE id = $1", e.ID, e.Done, lease)
}

// Complete implements control.Outbox.
func (s *EventStore) Complete(ctx context.Context, all []*control.Event) error {
	return s.keep(
		ctx,
		`
		UPDATE events e SET followed = string_to_array(x.followed, ' '), tries = 0, done_at = clock_timestamp()
		FROM unnest($1::bigint[], $2::text[]) AS x (id, followed) WHERE e.id = x.id`,
		groupcommit.Column(all, func(e *control.Event) int64 { return e.ID }),
		groupcommit.Column(all, func(e *control.Event) string { return strings.Join(e.Done, " ") }),
	)
}

// MoveToSlowLane implements control.Outbox.
func (s *EventStore) MoveToSlowLane(ctx context.Context, e *control.Event) error {
	return s.keep(ctx, `
		WITH moved AS (UPDATE events SET line = $2, home = '', followed = $4, lease_until = NULL, tries = 0, next_at = clock_timestamp() WHERE id = $1)
		SELECT pg_notify($3, '')`, e.ID, control.SlowLane, ChannelEvents, e.Done)
}

// Retry implements control.Outbox.
func (s *EventStore) Retry(ctx context.Context, e *control.Event, wait time.Duration) error {
	return s.keep(ctx, `
		UPDATE events SET tries = $3, followed = $4, lease_until = NULL, next_at = clock_timestamp() + $2, home = CASE WHEN $5 THEN '' ELSE home END
		WHERE id = $1`, e.ID, wait, e.Tries, e.Done, e.Released)
}
