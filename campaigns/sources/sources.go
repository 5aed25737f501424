// Package sources keeps the rows of lists as they came, in a bucket, and sweeps
// those that belong to no list.
package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
)

// A Bucket keeps files.
type Bucket interface {
	Put(ctx context.Context, key string, r io.Reader) error
	// Delete is no error where there is nothing.
	Delete(ctx context.Context, key string) error
}

// Sources are the files of rows. They are safe for concurrent use.
type Sources struct {
	Pool   *pgxpool.Pool
	Bucket Bucket
}

// How files that nobody needs are swept.
const (
	unclaimed = time.Hour // how long a request may be at work
	batch     = 100       // files of a transaction
	pace      = 10 * time.Minute
)

// ErrGone tells that the rows of a request were swept: it took too long.
var ErrGone = errors.New("the rows that were kept are gone: the request took too long")

// Keep puts a file into the bucket. Unless it is claimed it is swept in time.
func (s *Sources) Keep(ctx context.Context, key string, r io.Reader) error {
	if _, err := s.Pool.Exec(ctx, "INSERT INTO source_files (key) VALUES ($1)", key); err != nil {
		return fmt.Errorf("file of rows: %w", err)
	}
	return s.Bucket.Put(ctx, key, r)
}

// KeepRows is Keep for the rows of a request, as a JSON array.
func (s *Sources) KeepRows(ctx context.Context, key string, rows []json.RawMessage) error {
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(json.NewEncoder(pw).Encode(rows)) }()
	return errors.Join(s.Keep(ctx, key, pr), pr.Close())
}

// Claim keeps a file for good: an import names it.
func Claim(ctx context.Context, tx pgx.Tx, key string) error {
	tag, err := tx.Exec(ctx, "DELETE FROM source_files WHERE key = $1", key)
	if err != nil {
		return fmt.Errorf("file of rows: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrGone
	}
	return nil
}

// Sweep deletes the files that belong to no import: of requests that failed, and
// of imports that were deleted.
func (s *Sources) Sweep(ctx context.Context) error {
	for n := batch; n == batch; {
		err := db.Tx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
			n, err = s.some(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// some sweeps a batch, which is the transaction's until it ends.
func (s *Sources) some(ctx context.Context, tx pgx.Tx) (n int, err error) {
	found, err := tx.Query(ctx, `
		SELECT key FROM source_files WHERE at < now() - $1::interval ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED`, unclaimed, batch)
	if err != nil {
		return 0, fmt.Errorf("files of rows: %w", err)
	}
	keys, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("files of rows: %w", err)
	}
	for _, key := range keys {
		err = s.Bucket.Delete(ctx, key)
		if err == nil {
			err = Claim(ctx, tx, key)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

// Run sweeps now and then, until ctx ends.
func (s *Sources) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "files of rows that nobody needs were left", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
