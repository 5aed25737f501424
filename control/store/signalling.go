package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/trace"
	"github.com/parley-voice/parley/media"
)

// Trace implements control.Tracer. It does not ask whether the attempt is still
// the node's: what went over the wire did so in any case.
func (s *Store) Trace(ctx context.Context, l control.Lease, ladder []media.Message) error {
	return named("keep signalling", s.writers().trace.Do(ctx, traced{l, trace.Rungs(ladder)}))
}

// Signalling returns the messages of a call's last attempt of which some were
// kept, oldest first. It does not ask whose call it is. Of a call that there is
// not, it returns a refusal with CodeCallNotFound.
func (s *Store) Signalling(ctx context.Context, callID string) ([]media.Message, error) {
	var rungs []trace.Rung
	err := s.Pool.QueryRow(ctx, `
		SELECT coalesce(g.messages, '[]') FROM calls c
		LEFT JOIN call_signalling g ON g.call_id = c.id
		LEFT JOIN attempts a ON a.id = g.attempt_id
		WHERE c.id = $1 ORDER BY a.leg = 'callee' DESC NULLS LAST, a.attempt_no DESC NULLS LAST LIMIT 1`, callID).Scan(&rungs)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, NotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("read signalling: %w", err)
	}
	return trace.Ladder(rungs), nil
}
