package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// RecordingStore stores the recordings of calls. It implements recording.CallStore.
type RecordingStore struct{ *Store }

// SetJoined implements recording.CallStore. It marks the recording as truncated, because its end was on the lost node;
// SetRecording removes this mark.
func (s RecordingStore) SetJoined(ctx context.Context, callID, key string) (bool, error) {
	n, err := db.Exec(ctx, s.dialPool(), "failed to store the recording status", `
		UPDATE calls SET recording_status = 'ready', recording_key = $2, recording_truncated = true
		WHERE id = $1 AND erased_at IS NULL AND (recording_status = 'finalizing' OR recording_key = $2)`, callID, key)
	return n > 0, err
}

// CallNode implements recording.CallStore. A node without a sign of life counts as away since the end of the call.
func (s RecordingStore) CallNode(ctx context.Context, callID string) (home string, away time.Duration, err error) {
	err = s.Pool.QueryRow(ctx, `
		SELECT a.home, greatest('0', clock_timestamp() -
			coalesce((SELECT max(n.seen_at) FROM nodes n WHERE starts_with(n.name, a.home || '#')), c.ended_at, c.created_at))
		FROM calls c JOIN attempts a ON a.call_id = c.id AND a.leg = 'callee' WHERE c.id = $1
		ORDER BY a.attempt_no DESC LIMIT 1`, callID).Scan(&home, &away)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", 0, nil
	}
	return home, away, db.Wrap(err, "failed to read the node of a call")
}
