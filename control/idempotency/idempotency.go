// Package idempotency remembers requests by the key that their sender gave
// them, so that a repeat finds the first answer instead of acting again.
package idempotency

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// Memory is how long a key is remembered.
const Memory = 24 * time.Hour

// abandoned is when a request that never came to its end usually gives its key up: it
// had no effect, since the effect would have settled the key.
const abandoned = time.Minute

// Keys are the keys in Postgres.
type Keys struct {
	Pool *pgxpool.Pool
	// Abandoned is when a request gives its key up that never came to its end; 0 means
	// a minute.
	Abandoned time.Duration
}

func (k *Keys) abandoned() time.Duration { return cmp.Or(k.Abandoned, abandoned) }

// A Slot is a key held by one request.
type Slot struct{ scope, key, token string }

// An Answer is what the first request of a key was answered.
type Answer struct {
	Status int
	Body   []byte
}

// errLost says that the request took so long that another one has its key.
var errLost = errors.New("the idempotency key was given to another request")

// Begin takes the key, or returns the answer to the request that had it. It
// refuses a key that was used for something else, or is in use.
func (k *Keys) Begin(ctx context.Context, scope, key string, fingerprint []byte) (*Slot, *Answer, error) {
	s := &Slot{scope, key, control.NewID("", time.Now())}
	// That a key is held need not be on disk: where it is lost the request has
	// had no effect, and what settles it waits for the disk.
	// A key that is released between the two statements is free for us.
	for range 5 {
		var token string
		err := k.Pool.QueryRow(ctx, `
			WITH soon AS (SELECT set_config('synchronous_commit', 'off', true))
			INSERT INTO idempotency_keys AS k (scope, key, fingerprint, token) SELECT $1, $2, $3, $4 FROM soon
			ON CONFLICT (scope, key) DO UPDATE SET fingerprint = excluded.fingerprint, token = excluded.token,
				done = false, status = NULL, body = NULL, created_at = now()
			WHERE k.created_at < now() - $5::interval OR (NOT k.done AND k.created_at < now() - $6::interval)
			RETURNING token`, scope, key, fingerprint, s.token, Memory, k.abandoned()).Scan(&token)
		if err == nil {
			return s, nil, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, nil, fmt.Errorf("idempotency key: %w", err)
		}
		a, err := k.answer(ctx, scope, key, fingerprint)
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, a, err
		}
	}
	return nil, nil, inFlight()
}

func (k *Keys) answer(ctx context.Context, scope, key string, fingerprint []byte) (*Answer, error) {
	var had []byte
	var done bool
	var status *int
	var a Answer
	err := k.Pool.QueryRow(ctx, "SELECT fingerprint, done, status, body FROM idempotency_keys WHERE scope = $1 AND key = $2", scope, key).
		Scan(&had, &done, &status, &a.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("idempotency key: %w", err)
	case !bytes.Equal(had, fingerprint):
		return nil, control.Refuse(control.CodeIdempotencyReuse, "this Idempotency-Key was used for a different body")
	case !done || status == nil:
		return nil, inFlight()
	}
	a.Status = *status
	return &a, nil
}

func inFlight() error {
	return control.Refuse(control.CodeIdempotencyInFlight, "a request with this Idempotency-Key is still processing")
}

// Settle remembers the answer, in the transaction of what the request did: if
// it fails, so must the transaction.
func (s *Slot) Settle(ctx context.Context, q db.Querier, a Answer) error {
	tag, err := q.Exec(ctx, settleSQL, s.scope, s.key, s.token, a.Status, a.Body)
	if err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	return nil
}

// QueueSettle is Settle among the statements of a batch: where another request has
// the key it fails in the database, and so does the transaction.
func (s *Slot) QueueSettle(b *pgx.Batch, a Answer) {
	b.Queue("WITH settled AS ("+settleSQL+" RETURNING key) SELECT 1 / count(*) FROM settled", s.scope, s.key, s.token, a.Status, a.Body).Fn = func(br pgx.BatchResults) error {
		_, err := br.Exec()
		if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == divisionByZero {
			return errors.Join(errLost, err)
		}
		return err
	}
}

const settleSQL = `
UPDATE idempotency_keys SET done = true, status = $4, body = $5
WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done`

// divisionByZero is how a statement fails that had nothing to settle.
const divisionByZero = "22012"

// Hold keeps the key of a request that had an effect but no answer to repeat,
// in the transaction of the effect: as long as it is remembered, whoever repeats
// the request is told that it is in flight.
func (s *Slot) Hold(ctx context.Context, q db.Querier) error {
	tag, err := q.Exec(ctx, "UPDATE idempotency_keys SET done = true WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done", s.scope, s.key, s.token)
	if err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	return nil
}

// Keep holds the key of a request that may be at work for longer than keys are held, until
// stop is called, which waits for that.
func (k *Keys) Keep(ctx context.Context, s *Slot) (stop func()) {
	ctx, quit := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() {
		tick := time.NewTicker(k.abandoned() / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// Where it fails the next does it; where none does, another has the key.
				_, _ = k.Pool.Exec(ctx, "UPDATE idempotency_keys SET created_at = now() WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done", s.scope, s.key, s.token)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		quit()
		over.Wait()
	}
}

// Release frees the key of a request that had no effect.
func (k *Keys) Release(ctx context.Context, s *Slot) error {
	_, err := k.Pool.Exec(ctx, "DELETE FROM idempotency_keys WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done", s.scope, s.key, s.token)
	if err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	return nil
}

// Free is Release in the transaction of what the refusal leaves behind.
func (s *Slot) Free(ctx context.Context, q db.Querier) error {
	tag, err := q.Exec(ctx, "DELETE FROM idempotency_keys WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done", s.scope, s.key, s.token)
	if err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	return nil
}

// Sweep forgets keys older than Memory.
func (k *Keys) Sweep(ctx context.Context) error {
	if _, err := k.Pool.Exec(ctx, "DELETE FROM idempotency_keys WHERE created_at < now() - $1::interval", Memory); err != nil {
		return fmt.Errorf("idempotency keys: %w", err)
	}
	return nil
}
