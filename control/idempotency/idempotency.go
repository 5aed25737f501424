// Package idempotency stores the response to each request that has an Idempotency-Key. A repeated request gets the
// stored response and has no further effect.
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

// Retention is how long a key is kept.
const Retention = 24 * time.Hour

// abandoned is the default age at which a request that has not finished loses its key. Such a request had no effect,
// because the transaction of the effect also settles the key.
const abandoned = time.Minute

// Keys stores keys in Postgres.
type Keys struct {
	Pool *pgxpool.Pool
	// Hash hashes a key as the journal does; may be nil. With Hash, the key of a call that the database has lost
	// counts as in use until it expires.
	Hash func(scope, key string) [16]byte
	// Abandoned is the age at which a request that has not finished loses its key; 0 means one minute.
	Abandoned time.Duration
}

func (k *Keys) abandoned() time.Duration { return cmp.Or(k.Abandoned, abandoned) }

// Slot is a key that one request holds.
type Slot struct {
	scope, key, token string
	hash              []byte // nil if Keys.Hash is not set
}

// Answer is the response to the first request with a key.
type Answer struct {
	Status int
	Body   []byte
	CallID string // id of the call that the request created; empty if none
}

// errLost means that the request took so long that another request got its key.
var errLost = errors.New("the idempotency key was given to another request")

// Begin takes the key for the request, or returns the response to the first request with the key. It returns an error
// if the key was used for a different request, or if another request holds it.
func (k *Keys) Begin(ctx context.Context, scope, key string, fingerprint []byte) (*Slot, *Answer, error) {
	s := &Slot{scope: scope, key: key, token: control.NewID("", time.Now())}
	if k.Hash != nil {
		h := k.Hash(scope, key)
		s.hash = h[:]
	}
	// The INSERT need not be on disk when it returns. If the key is lost, the request had no effect, because settling
	// the key waits for the disk. The loop tries again if the key is released between the two statements.
	for range 5 {
		var token string
		err := k.Pool.QueryRow(ctx, `
			WITH soon AS (SELECT set_config('synchronous_commit', 'off', true))
			INSERT INTO idempotency_keys AS k (scope, key, fingerprint, token) SELECT $1, $2, $3, $4 FROM soon
			WHERE NOT EXISTS (SELECT FROM sent_facts WHERE key_hash = $7)
			ON CONFLICT (scope, key) DO UPDATE SET fingerprint = excluded.fingerprint, token = excluded.token,
				done = false, status = NULL, body = NULL, created_at = now()
			WHERE k.created_at < now() - $5::interval OR (NOT k.done AND k.created_at < now() - $6::interval)
			RETURNING token`, scope, key, fingerprint, s.token, Retention, k.abandoned(), s.hash).Scan(&token)
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

// Settle stores the response. It must run in the transaction of the request's effect; if Settle fails, the
// transaction must fail too.
func (s *Slot) Settle(ctx context.Context, q db.Querier, a Answer) error {
	return s.exec(ctx, q, settleSQL, a.Status, a.Body, a.CallID, s.hash)
}

// exec runs a statement that writes the key. It returns errLost if another request holds the key.
func (s *Slot) exec(ctx context.Context, q db.Querier, sql string, args ...any) error {
	n, err := db.Exec(ctx, q, "idempotency key", sql, append([]any{s.scope, s.key, s.token}, args...)...)
	if err == nil && n == 0 {
		return errLost
	}
	return err
}

// QueueSettle adds Settle to a batch. If another request holds the key, the statement fails and with it the
// transaction.
func (s *Slot) QueueSettle(b *pgx.Batch, a Answer) {
	q := b.Queue("WITH settled AS ("+settleSQL+" RETURNING key) SELECT 1 / count(*) FROM settled",
		s.scope, s.key, s.token, a.Status, a.Body, a.CallID, s.hash)
	q.Fn = func(br pgx.BatchResults) error {
		_, err := br.Exec()
		if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == divisionByZero {
			return errors.Join(errLost, err)
		}
		return err
	}
}

const settleSQL = `
UPDATE idempotency_keys SET done = true, status = $4, body = $5, call_id = nullif($6, '')
WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done AND NOT EXISTS (SELECT FROM sent_facts WHERE key_hash = $7)`

// divisionByZero is the SQLSTATE with which the statement of QueueSettle fails if it settled no key.
const divisionByZero = "22012"

// Hold keeps a key in use until it expires. It is for a request that had an effect but has no response to repeat. It
// must run in the transaction of the effect.
func (s *Slot) Hold(ctx context.Context, q db.Querier) error {
	return s.exec(ctx, q, "UPDATE idempotency_keys SET done = true WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done")
}

// KeepAlive renews the key of a long request until stop is called. stop waits for a renewal that is running.
func (k *Keys) KeepAlive(ctx context.Context, s *Slot) (stop func()) {
	ctx, quit := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() {
		tick := time.NewTicker(k.abandoned() / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// If this renewal fails, the next one follows soon. If all fail, another request may take the key.
				_, _ = k.Pool.Exec(
					ctx, "UPDATE idempotency_keys SET created_at = now() WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done",
					s.scope, s.key, s.token,
				)
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

// Release releases the key of a request that had no effect.
func (k *Keys) Release(ctx context.Context, s *Slot) error {
	_, err := db.Exec(ctx, k.Pool, "idempotency key",
		"DELETE FROM idempotency_keys WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done", s.scope, s.key, s.token)
	return err
}

// ReleaseTx releases the key in the transaction that records why the request was rejected.
func (s *Slot) ReleaseTx(ctx context.Context, q db.Querier) error {
	return s.exec(ctx, q, "DELETE FROM idempotency_keys WHERE scope = $1 AND key = $2 AND token = $3 AND NOT done")
}

// sweepStep is the number of keys that Sweep deletes in one transaction.
const sweepStep = 500

// Sweep deletes keys older than Retention.
func (k *Keys) Sweep(ctx context.Context) error {
	for {
		n, err := db.Exec(ctx, k.Pool, "idempotency keys", `
			DELETE FROM idempotency_keys WHERE (scope, key) IN (SELECT scope, key FROM idempotency_keys
				WHERE created_at < now() - $1::interval ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, Retention, sweepStep)
		if err != nil || n < sweepStep {
			return err
		}
	}
}
