package store

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

// A Bucket stores files.
type Bucket interface {
	Put(ctx context.Context, key string, r io.Reader) error
	// Delete returns no error for a missing key.
	Delete(ctx context.Context, key string) error
}

// ImportFiles keeps the original files and rows of imports in a bucket, and deletes those that
// no import refers to. It is safe for concurrent use.
type ImportFiles struct {
	Pool   *pgxpool.Pool
	Bucket Bucket
}

const (
	unclaimedFor  = time.Hour // a file that no import has claimed by then is deleted
	sweepBatch    = 100       // files per transaction
	sweepInterval = 10 * time.Minute
)

// ErrImportFileGone is returned if the stored rows were deleted because the request took too long.
var ErrImportFileGone = errors.New("the stored rows were deleted because the request took too long: send it again")

// Put stores a file. It is deleted after an hour unless ClaimImportFile is called.
func (s *ImportFiles) Put(ctx context.Context, key string, r io.Reader) error {
	if _, err := s.Pool.Exec(ctx, "INSERT INTO source_files (key) VALUES ($1)", key); err != nil {
		return fmt.Errorf("file of rows: %w", err)
	}
	return s.Bucket.Put(ctx, key, r)
}

// PutRows stores the rows of a request as a JSON array; see Put.
func (s *ImportFiles) PutRows(ctx context.Context, key string, rows []json.RawMessage) error {
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(json.NewEncoder(pw).Encode(rows)) }()
	return errors.Join(s.Put(ctx, key, pr), pr.Close())
}

// ClaimImportFile keeps a file permanently, for an import that refers to it.
func ClaimImportFile(ctx context.Context, tx pgx.Tx, key string) error {
	n, err := db.Exec(ctx, tx, "file of rows", "DELETE FROM source_files WHERE key = $1", key)
	if err == nil && n == 0 {
		return ErrImportFileGone
	}
	return err
}

// Sweep deletes the files of failed requests and of deleted imports.
func (s *ImportFiles) Sweep(ctx context.Context) error {
	for n := sweepBatch; n == sweepBatch; {
		err := db.Tx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
			n, err = s.sweepSome(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepSome deletes one batch of files. The transaction locks their rows, and other nodes skip locked rows.
func (s *ImportFiles) sweepSome(ctx context.Context, tx pgx.Tx) (n int, err error) {
	keys, err := db.Collect(ctx, tx, "files of rows", pgx.RowTo[string], `
		SELECT key FROM source_files WHERE at < now() - $1::interval ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED`, unclaimedFor, sweepBatch)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		err = s.Bucket.Delete(ctx, key)
		if err == nil {
			err = ClaimImportFile(ctx, tx, key)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

// Run sweeps periodically until ctx ends.
func (s *ImportFiles) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "failed to delete unused import files", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
