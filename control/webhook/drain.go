package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// shift is how long an endpoint is drained before others get their turn.
const shift = 30 * time.Second

// look is how often a drain looks for more while notices are on their way.
const look = 200 * time.Millisecond

// A landing is what became of a delivery that was on its way.
type landing struct {
	id        string
	delivered bool
	err       error // it could not be noted
}

// drain delivers what is due at one endpoint and gives it back when all is over, or
// leaves it to its lease where an attempt could not be noted.
// It begins with one notice at a time, has more beside each other as they are
// taken, and one again as soon as one is not.
func (s *Sender) drain(ctx context.Context, e Endpoint) {
	flying := map[string]bool{} // ids of the deliveries on their way
	landed := make(chan landing)
	until := time.Now().Add(shift)
	tick := time.NewTicker(look)
	defer tick.Stop()
	going := true
	for window := 1; ; {
		for going && len(flying) < window && ctx.Err() == nil && time.Now().Before(until) {
			d := s.next(ctx, &e, flying)
			if d == nil {
				break
			}
			flying[d.id] = true
			now := e // with the secrets of now
			go func() { landed <- s.attempt(ctx, now, *d) }()
		}
		if len(flying) == 0 {
			break
		}
		select {
		case l := <-landed:
			delete(flying, l.id)
			if window = 1; l.delivered {
				window = min(2*(len(flying)+1), s.beside())
			}
			if l.err != nil {
				s.log().WarnContext(ctx, "an attempt to deliver a webhook is not noted", "endpoint", e.ID, "err", l.err)
				going = false
			}
		case <-tick.C:
		}
	}
	if !going {
		return // given back now, the attempt would be made again at once
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := s.Pool.Exec(ctx, "UPDATE webhook_endpoints SET lease_until = NULL WHERE id = $1 AND owner = $2", e.ID, s.Owner); err != nil {
		s.log().WarnContext(ctx, "a webhook endpoint is not released until its lease ends", "endpoint", e.ID, "err", err)
	}
}

// next is the delivery that waits longest and is not flying, nil where there is
// none, or the endpoint was disabled, slowed down or taken over meanwhile. The
// lease goes on, and the endpoint gets the secrets that it has by now.
func (s *Sender) next(ctx context.Context, e *Endpoint, flying map[string]bool) *delivery {
	ids := make([]string, 0, len(flying))
	for id := range flying {
		ids = append(ids, id)
	}
	var d delivery
	now := s.now()
	err := db.Tx(ctx, s.Pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			UPDATE webhook_endpoints SET lease_until = $3
			WHERE id = $1 AND owner = $2 AND disabled_at IS NULL AND (throttled_until IS NULL OR throttled_until <= $4)
			RETURNING secret, previous_secret`,
			e.ID, s.Owner, now.Add(lease), now).Scan(&e.Secret, &e.Previous)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			SELECT d.id, d.payload, d.tries FROM webhook_deliveries d
			WHERE d.endpoint_id = $1 AND NOT d.id = ANY ($3) AND `+due+`
			ORDER BY d.next_at, d.created_at, d.id LIMIT 1`, e.ID, now, ids).Scan(&d.id, &d.payload, &d.tries)
	})
	if err != nil {
		if !errors.Is(err, pgx.ErrNoRows) && ctx.Err() == nil {
			s.log().WarnContext(ctx, "a webhook endpoint is not drained", "endpoint", e.ID, "err", err)
		}
		return nil
	}
	return &d
}

func (s *Sender) beside() int {
	if s.Beside == 0 {
		return 8
	}
	return s.Beside
}
