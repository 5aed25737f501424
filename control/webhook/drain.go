package webhook

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// drainTime is the maximum time that a node delivers to one endpoint without a break. Then other endpoints get their
// turn.
const drainTime = 30 * time.Second

// drainPoll is the interval at which drain looks for more deliveries while attempts are running.
const drainPoll = 200 * time.Millisecond

type attemptResult struct {
	id        string
	delivered bool
	err       error // set if the result could not be stored
}

// drain sends the due deliveries of an endpoint and then releases the lease of the endpoint. It starts with one
// delivery at a time. It doubles the number while deliveries succeed, and returns to one after a failure. If the result
// of an attempt could not be stored, drain leaves the lease to expire.
func (s *Sender) drain(ctx context.Context, e Endpoint) {
	inFlight := map[string]bool{} // ids of the deliveries that are being sent
	results := make(chan attemptResult)
	until := time.Now().Add(drainTime)
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	stored := true
	for window := 1; ; {
		for stored && len(inFlight) < window && ctx.Err() == nil && time.Now().Before(until) {
			d := s.next(ctx, &e, inFlight)
			if d == nil {
				break
			}
			inFlight[d.id] = true
			now := e // the endpoint with its current secrets
			go func() { results <- s.attempt(ctx, now, *d) }()
		}
		if len(inFlight) == 0 {
			break
		}
		select {
		case l := <-results:
			delete(inFlight, l.id)
			if window = 1; l.delivered {
				window = min(2*(len(inFlight)+1), s.perEndpoint())
			}
			if l.err != nil {
				s.log().WarnContext(ctx, "failed to store a webhook attempt", "endpoint", e.ID, "err", l.err)
				stored = false
			}
		case <-tick.C:
		}
	}
	if !stored {
		return // a released endpoint would get the same delivery again at once
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := s.Pool.Exec(ctx, "UPDATE webhook_endpoints SET lease_until = NULL WHERE id = $1 AND owner = $2", e.ID, s.Owner); err != nil {
		s.log().WarnContext(ctx, "failed to release a webhook endpoint; its lease will expire", "endpoint", e.ID, "err", err)
	}
}

// next returns the oldest due delivery that is not being sent. It returns nil if there is none, or if the endpoint is
// disabled, throttled, or leased by another node. It also extends the lease and updates the secrets of e.
func (s *Sender) next(ctx context.Context, e *Endpoint, inFlight map[string]bool) *delivery {
	ids := make([]string, 0, len(inFlight))
	for id := range inFlight {
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
		var packed []byte
		err = tx.QueryRow(ctx, `
			SELECT d.id, d.call_id, d.type, d.payload, `+packSQL+`, d.tries FROM webhook_deliveries d
			WHERE d.endpoint_id = $1 AND NOT d.id = ANY ($3) AND `+dueSQL+`
			ORDER BY d.next_at, d.created_at, d.id LIMIT 1`, e.ID, now, ids).Scan(&d.id, &d.callID, &d.kind, &d.payload, &packed, &d.tries)
		if err == nil {
			d.payload, err = unpack(d.id, d.payload, packed)
		}
		return err
	})
	if err != nil {
		if !errors.Is(err, pgx.ErrNoRows) && ctx.Err() == nil {
			s.log().WarnContext(ctx, "failed to read the next webhook delivery", "endpoint", e.ID, "err", err)
		}
		return nil
	}
	return &d
}

func (s *Sender) perEndpoint() int { return cmp.Or(s.PerEndpoint, 8) }
