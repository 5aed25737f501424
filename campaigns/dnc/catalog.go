// Package dnc loads do-not-call data: registries that operators load, the suppression
// lists of organizations, and reassigned numbers.
package dnc

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

	"github.com/parley-voice/parley/campaigns/dnc/registry"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/control/db"
)

// Channel is the notification channel for new registry copies.
const Channel = "parley_registries"

// A Bucket stores the files of registries.
type Bucket interface {
	Put(ctx context.Context, key string, r io.Reader) error
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
	Delete(ctx context.Context, key string) error
}

// A localBucket is a bucket in a folder. Its files are mapped in place.
type localBucket interface {
	Path(key string) (string, error)
}

// A Catalog has the registries in use. It is safe for concurrent use.
type Catalog struct {
	Pool   *pgxpool.Pool
	Bucket Bucket
	// Dir is the folder for copies of files whose Bucket is not itself a folder.
	Dir string
	// Wake, if set, signals that there may be a new copy of a registry.
	Wake <-chan struct{}
	Log  *slog.Logger

	first sync.Mutex // serializes the first refresh
	mu    sync.Mutex
	open  map[string]openCopy
	names []string // names of all registries at the last refresh; nil before the first one
}

// An openCopy is a registry copy with its mapped file. Callers that use an older copy may continue to use it.
type openCopy struct {
	registryCopy
	set *registry.Set
}

// A registryCopy is a row of the table registries.
type registryCopy struct {
	ID         int64
	Name, File string
	SHA256     string
	Numbers    int64
	Areas      []string
	Downloaded time.Time
	Loaded     time.Time
}

// version returns the version that records show: the date of the data and the ID of the copy.
func (c registryCopy) version() string {
	return fmt.Sprintf("%s.%d", c.Downloaded.UTC().Format(time.DateOnly), c.ID)
}

// newestCopies returns the newest copy of each registry, by name.
func newestCopies(ctx context.Context, q db.Querier) ([]registryCopy, error) {
	return db.Collect(ctx, q, "registries", pgx.RowToStructByPos[registryCopy], `
		SELECT DISTINCT ON (name) id, name, file, sha256, numbers, area_codes, downloaded_at, loaded_at FROM registries ORDER BY name, id DESC`)
}

// Registries returns the newest copies of the registries of a market.
func (s *Catalog) Registries(ctx context.Context, q db.Querier, market string) ([]screening.Registry, error) {
	all, err := newestCopies(ctx, q)
	if err != nil {
		return nil, err
	}
	var open []screening.Registry
	for _, c := range all {
		if marketOf(c.Name) != market {
			continue
		}
		h, err := s.ensureOpen(c)
		if err != nil {
			return nil, err
		}
		open = append(open, h.screen())
	}
	return open, nil
}

// marketOf returns the market of a registry.
func marketOf(name string) string {
	market, _, _ := strings.Cut(name, "_")
	return market
}

func (h openCopy) screen() screening.Registry {
	return screening.Registry{Name: h.Name, Version: h.version(), Downloaded: h.Downloaded, Has: h.set.Has}
}

// ensureOpen returns a copy and opens it if necessary. Until the file of the copy is fetched, it returns the previous
// copy.
func (s *Catalog) ensureOpen(c registryCopy) (openCopy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.open[c.Name]
	if ok && before.ID >= c.ID {
		return before, nil
	}
	name, err := s.path(c.File)
	if err != nil {
		return openCopy{}, err
	}
	set, err := registry.Open(name)
	if errors.Is(err, os.ErrNotExist) && ok {
		return before, nil
	}
	if err != nil {
		return openCopy{}, fmt.Errorf("registry %s, version %s: %w", c.Name, c.version(), err)
	}
	h := openCopy{c, set}
	if s.open == nil {
		s.open = map[string]openCopy{}
	}
	s.open[c.Name] = h // the previous copy is unmapped when it is garbage collected
	return h, nil
}

// path returns the name of the local file for a key. The file may not exist yet.
func (s *Catalog) path(key string) (string, error) {
	if b, ok := s.Bucket.(localBucket); ok {
		return b.Path(key)
	}
	return filepath.Join(s.Dir, filepath.Base(key)), nil
}

// refreshEvery is the interval of refreshes without notifications.
const refreshEvery = 5 * time.Second

// Run fetches and opens new copies until ctx ends.
func (s *Catalog) Run(ctx context.Context) {
	tick, tidy := time.NewTicker(refreshEvery), time.NewTicker(tidyEvery)
	defer tick.Stop()
	defer tidy.Stop()
	s.runTidy(ctx)
	for {
		if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
			s.log().WarnContext(ctx, "failed to refresh do-not-call registries", "err", err)
		}
		select {
		case <-s.Wake:
		case <-tick.C:
		case <-tidy.C:
			s.runTidy(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Catalog) runTidy(ctx context.Context) {
	if err := s.Tidy(ctx); err != nil && ctx.Err() == nil {
		s.log().WarnContext(ctx, "failed to delete old files of do-not-call registries", "err", err)
	}
}

// Refresh fetches and opens the newest copies. A failure of one registry does not delay the others.
func (s *Catalog) Refresh(ctx context.Context) error {
	all, err := newestCopies(ctx, s.Pool)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range all {
		err := s.fetch(ctx, c)
		if err == nil {
			_, err = s.ensureOpen(c)
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

func (s *Catalog) fetch(ctx context.Context, c registryCopy) error {
	if _, ok := s.Bucket.(localBucket); ok {
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
		err = fmt.Errorf("registry %s, version %s: the checksum of the file does not match", c.Name, c.version())
	}
	if err == nil {
		err = os.Rename(to.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return s.tidy(ctx, c.Name)
}

// deleteOthers deletes all files of a registry in the folder of keep, except keep. This includes unfinished files.
// Files that are mapped stay readable.
func deleteOthers(registry, keep string) error {
	old, err := filepath.Glob(filepath.Join(filepath.Dir(keep), registry+"-*"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if name != keep {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// OpenRegistries returns the open registries of a market. It returns an error if a
// known registry is not open.
func (s *Catalog) OpenRegistries(market string) ([]screening.Registry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		if _, open := s.open[name]; !open && marketOf(name) == market {
			return nil, fmt.Errorf("registry %s is not open on this node yet", name)
		}
	}
	var all []screening.Registry
	for name, h := range s.open {
		if marketOf(name) == market {
			all = append(all, h.screen())
		}
	}
	return all, nil
}

// hasRegistries reports whether there are registries. It refreshes first if there was no
// refresh yet.
func (s *Catalog) hasRegistries(ctx context.Context) (bool, error) {
	s.first.Lock()
	defer s.first.Unlock()
	if exist, refreshed := s.refreshed(); refreshed {
		return exist, nil
	}
	err := s.Refresh(ctx)
	exist, refreshed := s.refreshed()
	if !refreshed {
		return false, err // otherwise OpenRegistries reports what is missing
	}
	return exist, nil
}

func (s *Catalog) refreshed() (exist, refreshed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.names)+len(s.open) > 0, s.names != nil
}

func (s *Catalog) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}
