package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
)

// Take implements control.Outbox. An event whose files lie on another node
// waits for that node for HomeFor, and is then anybody's.
func (s *Store) Take(ctx context.Context, line control.Line, home string, lease time.Duration) (*control.Event, error) {
	wait := s.HomeFor
	if wait == 0 {
		wait = 10 * time.Minute
	}
	var e control.Event
	err := s.Pool.QueryRow(ctx, `
		UPDATE events SET lease_until = clock_timestamp() + $2
		WHERE id = (
			SELECT e.id FROM events e
			WHERE e.done_at IS NULL AND e.line = $4 AND e.next_at <= clock_timestamp()
			  AND (e.lease_until IS NULL OR e.lease_until < clock_timestamp())
			  AND (e.home IN ('', $1) OR e.created_at < clock_timestamp() - $3::interval)
			  AND NOT EXISTS (SELECT FROM events o WHERE o.call_id = e.call_id AND o.id < e.id AND o.done_at IS NULL)
			ORDER BY e.next_at, e.id LIMIT 1
			FOR UPDATE SKIP LOCKED)
		RETURNING id, call_id, org_id, kind, line, followed, tries, created_at`, home, lease, wait, line).
		Scan(&e.ID, &e.CallID, &e.OrgID, &e.Kind, &e.Line, &e.Followed, &e.Tries, &e.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return &e, nil
}

// Followed implements control.Outbox.
func (s *Store) Followed(ctx context.Context, e *control.Event, step string, over bool, lease time.Duration) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE events SET followed = array_append(followed, $2), tries = 0, lease_until = clock_timestamp() + $4,
			done_at = CASE WHEN $3 THEN clock_timestamp() END
		WHERE id = $1 AND NOT $2 = ANY (followed)`, e.ID, step, over, lease)
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// Onward implements control.Outbox.
func (s *Store) Onward(ctx context.Context, e *control.Event) error {
	_, err := s.Pool.Exec(ctx, `
		WITH moved AS (UPDATE events SET line = $2, home = '', lease_until = NULL, tries = 0, next_at = clock_timestamp() WHERE id = $1)
		SELECT pg_notify($3, '')`, e.ID, control.Slow, BellEvents)
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// Again implements control.Outbox.
func (s *Store) Again(ctx context.Context, e *control.Event, wait time.Duration) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE events SET tries = $3, lease_until = NULL, next_at = clock_timestamp() + $2
		WHERE id = $1`, e.ID, wait, e.Tries)
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// Recorded notes where a call's recording lies, or that there is none. Only a
// recording that is still awaited can fail.
func (s *Store) Recorded(ctx context.Context, callID string, status control.RecordingStatus, key string) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE calls SET recording_status = $2, recording_key = $3
		WHERE id = $1 AND ($2 <> 'failed' OR recording_status = 'finalizing')`, callID, status, orNull(key))
	if err != nil {
		return fmt.Errorf("note recording: %w", err)
	}
	return nil
}
