package store

import (
	"context"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// Trace implements control.Tracer. It stores the messages even after the lease was lost.
func (s *Store) Trace(ctx context.Context, l control.Lease, ladder []media.Message) error {
	return db.Wrap(s.writers().trace.Do(ctx, signalingTrace{l, callview.Rungs(ladder)}), "store signaling")
}

// Signaling returns the stored messages of a call's last attempt, oldest first. It does not check the organization.
// For an unknown call it returns an error with CodeCallNotFound.
func (s *Store) Signaling(ctx context.Context, callID string) ([]media.Message, error) {
	var rungs []callview.Rung
	err := s.Pool.QueryRow(ctx, `
		SELECT coalesce(g.messages, '[]') FROM calls c
		LEFT JOIN call_signalling g ON g.call_id = c.id
		LEFT JOIN attempts a ON a.id = g.attempt_id
		WHERE c.id = $1 ORDER BY a.leg = 'callee' DESC NULLS LAST, a.attempt_no DESC NULLS LAST LIMIT 1`, callID).Scan(&rungs)
	if err = db.RowError(err, "failed to read signaling", NotFound()); err != nil {
		return nil, err
	}
	return callview.Ladder(rungs), nil
}
