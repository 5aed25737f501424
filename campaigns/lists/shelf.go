// Package lists brings do-not-call lists into the service: registries that
// operators load, organizations' own lists, and what is known of reassigned
// numbers.
package lists

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns/registry"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/control/db"
)

// Bell is the channel on which servers are told of a new copy of a registry.
const Bell = "parley_registries"

// A Bucket keeps the files of registries.
type Bucket interface {
	Put(ctx context.Context, key string, r io.Reader) error
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
	Delete(ctx context.Context, key string) error
}

// A local bucket is a folder: what it keeps is mapped where it lies.
type local interface {
	Path(key string) (string, error)
}

// A Shelf holds the registries that are in use. It is safe for concurrent use.
type Shelf struct {
	Pool   *pgxpool.Pool
	Bucket Bucket
	// Dir keeps copies of files of a bucket that is no folder.
	Dir string
	// Wake, where set, tells that there may be a new copy.
	Wake <-chan struct{}
	Log  *slog.Logger

	first sync.Mutex // of the first look
	mu    sync.Mutex
	held  map[string]held
	names []string // of the registries that there are, as of the last look; nil before the first
}

// A held registry is one that is open. Whoever asks an older one goes on with it.
type held struct {
	copied
	set *registry.Set
}

// A copied registry is a row of the table of copies.
type copied struct {
	ID         int64
	Name, File string
	SHA256     string
	Numbers    int64
	Areas      []string
	Downloaded time.Time
	Loaded     time.Time
}

// version is what a copy is called in records: the day of its data, and its own
// number.
func (c copied) version() string {
	return fmt.Sprintf("%s.%d", c.Downloaded.UTC().Format(time.DateOnly), c.ID)
}

// newest reads the newest copy of each registry, by name.
func newest(ctx context.Context, q db.Querier) ([]copied, error) {
	rows, err := q.Query(ctx, `
		SELECT DISTINCT ON (name) id, name, file, sha256, numbers, area_codes, downloaded_at, loaded_at FROM registries ORDER BY name, id DESC`)
	if err != nil {
		return nil, fmt.Errorf("registries: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[copied])
	if err != nil {
		return nil, fmt.Errorf("registries: %w", err)
	}
	return all, nil
}

// Registries are the newest copies of the registries of a market.
func (s *Shelf) Registries(ctx context.Context, q db.Querier, market string) ([]screen.Registry, error) {
	all, err := newest(ctx, q)
	if err != nil {
		return nil, err
	}
	var open []screen.Registry
	for _, c := range all {
		if of(c.Name) != market {
			continue
		}
		h, err := s.take(c)
		if err != nil {
			return nil, err
		}
		open = append(open, h.screen())
	}
	return open, nil
}

// of is the market of a registry.
func of(name string) string {
	market, _, _ := strings.Cut(name, "_")
	return market
}

func (h held) screen() screen.Registry {
	return screen.Registry{Name: h.Name, Version: h.version(), Downloaded: h.Downloaded, Has: h.set.Has}
}

// take opens a copy, if it is not open. Where its file is still to be fetched,
// the copy before it serves meanwhile.
func (s *Shelf) take(c copied) (held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.held[c.Name]
	if ok && before.ID >= c.ID {
		return before, nil
	}
	name, err := s.path(c.File)
	if err != nil {
		return held{}, err
	}
	set, err := registry.Open(name)
	if errors.Is(err, os.ErrNotExist) && ok {
		return before, nil
	}
	if err != nil {
		return held{}, fmt.Errorf("registry %s, version %s: %w", c.Name, c.version(), err)
	}
	h := held{c, set}
	if s.held == nil {
		s.held = map[string]held{}
	}
	s.held[c.Name] = h // the one before is unmapped once nobody asks it any more
	return h, nil
}

// path is where the file of a copy is on this machine, or is to be.
func (s *Shelf) path(key string) (string, error) {
	if b, ok := s.Bucket.(local); ok {
		return b.Path(key)
	}
	return filepath.Join(s.Dir, filepath.Base(key)), nil
}

// often is how often one looks for new copies without being told.
const often = 5 * time.Second

// Run fetches new copies and opens them, until ctx ends.
func (s *Shelf) Run(ctx context.Context) {
	tick, tidy := time.NewTicker(often), time.NewTicker(hourly)
	defer tick.Stop()
	defer tidy.Stop()
	s.tidied(ctx)
	for {
		if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
			s.log().WarnContext(ctx, "do-not-call registries", "err", err)
		}
		select {
		case <-s.Wake:
		case <-tick.C:
		case <-tidy.C:
			s.tidied(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Shelf) tidied(ctx context.Context) {
	if err := s.Tidy(ctx); err != nil && ctx.Err() == nil {
		s.log().WarnContext(ctx, "files of do-not-call registries were left", "err", err)
	}
}

// Refresh fetches and opens the newest copies. One that fails does not keep the
// others from it.
func (s *Shelf) Refresh(ctx context.Context) error {
	all, err := newest(ctx, s.Pool)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range all {
		err := s.fetch(ctx, c)
		if err == nil {
			_, err = s.take(c)
		}
		errs = append(errs, err)
	}
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = names
	return errors.Join(errs...)
}

// fetch brings the file of a copy to this machine.
func (s *Shelf) fetch(ctx context.Context, c copied) error {
	if _, ok := s.Bucket.(local); ok {
		return nil
	}
	name, err := s.path(c.File)
	if err != nil {
		return err
	}
	if _, err = os.Stat(name); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err = os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	from, err := s.Bucket.Open(ctx, c.File)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(s.Dir, ".part-*")
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), from)
	if err = errors.Join(err, to.Sync(), to.Close()); err == nil && hex.EncodeToString(sum.Sum(nil)) != c.SHA256 {
		err = fmt.Errorf("registry %s, version %s: the file is another one than was loaded", c.Name, c.version())
	}
	if err == nil {
		err = os.Rename(to.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return s.tidy(ctx, c.Name)
}

// forget removes the files of other copies of a registry beside one, those that
// were never finished among them; one that is mapped stays until it is not.
func forget(registry, but string) error {
	old, err := filepath.Glob(filepath.Join(filepath.Dir(but), registry+"-*"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if name != but {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// Known are the registries of a market that this process has open: what it was
// told of last. One that there is and that is not open is an error.
func (s *Shelf) Known(market string) ([]screen.Registry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		if _, open := s.held[name]; !open && of(name) == market {
			return nil, fmt.Errorf("registry %s is not open here yet", name)
		}
	}
	var all []screen.Registry
	for name, h := range s.held {
		if of(name) == market {
			all = append(all, h.screen())
		}
	}
	return all, nil
}

// some tells whether there are registries. Whoever asks before the first look
// has it made, or waits for it.
func (s *Shelf) some(ctx context.Context) (bool, error) {
	s.first.Lock()
	defer s.first.Unlock()
	if some, looked := s.looked(); looked {
		return some, nil
	}
	err := s.Refresh(ctx)
	some, looked := s.looked()
	if !looked {
		return false, err // else Known tells what is missing
	}
	return some, nil
}

func (s *Shelf) looked() (some, looked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.names)+len(s.held) > 0, s.names != nil
}

func (s *Shelf) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}
