package dnc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

const (
	tidyEvery     = time.Hour
	partialMaxAge = 24 * time.Hour // age from which a partial download counts as abandoned
)

// Tidy deletes local files that interrupted loads and fetches left. Files of an active
// load stay.
func (s *Catalog) Tidy(ctx context.Context) error {
	sample, err := s.path("registries/us_national")
	if err != nil {
		return err
	}
	all, err := os.ReadDir(filepath.Dir(sample))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	seen := map[string]bool{}
	for _, f := range all {
		if strings.HasPrefix(f.Name(), ".part-") {
			if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > partialMaxAge {
				errs = append(errs, os.Remove(filepath.Join(filepath.Dir(sample), f.Name())))
			}
			continue
		}
		registry, _, _ := strings.Cut(f.Name(), "-")
		if !seen[registry] && CheckName(registry) == nil {
			errs = append(errs, s.tidy(ctx, registry))
		}
		seen[registry] = true
	}
	return errors.Join(errs...)
}

// tidy deletes all local files of a registry except the newest. During a load it does nothing, because the load
// deletes old files itself.
func (s *Catalog) tidy(ctx context.Context, registry string) error {
	return db.Tx(ctx, s.Pool, func(tx pgx.Tx) error {
		var free bool
		err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended('registry ' || $1, 0))", registry).Scan(&free)
		if err != nil || !free {
			return err
		}
		all, err := newestCopies(ctx, tx)
		if err != nil {
			return err
		}
		key := "registries/" + registry + "-" // matches no file
		for _, c := range all {
			if c.Name == registry {
				key = c.File
			}
		}
		newest, err := s.path(key)
		if err != nil {
			return err
		}
		if _, err = os.Stat(newest); err != nil && !strings.HasSuffix(key, "-") {
			return nil // the newest copy was not fetched yet, so the previous one is still in use
		}
		return deleteOthers(registry, newest)
	})
}
