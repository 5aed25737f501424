package dnc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dnc/registry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// A Load is a request to load a list.
type Load struct {
	// Name is the name of a registry, such as us_national or us_state_tx; empty for the
	// organization's list.
	Name  string
	OrgID string
	Files []string
	// Areas are the area codes that the lists cover: unlisted numbers with these area codes may be called. Country
	// has all area codes of the country.
	Areas, Country []string
	Replace        bool // removes numbers that the files do not contain
	// Downloaded is when the lists were downloaded; zero means the modification time of
	// the oldest file.
	Downloaded time.Time
	By         string // operator who loads the list
	Now        time.Time
	Progress   func(done, all int) // receives the bytes read; nil disables it
}

// A LoadResult is the result of a load.
type LoadResult struct {
	Name           string
	Version        string // version of the registry
	Added, Deleted int64
	Numbers        int64 // count of numbers on the list now
	Areas          int
	Downloaded     time.Time
}

// ErrName is returned for an unknown registry.
var ErrName = errors.New("no such registry")

// CheckName validates the name of a registry.
func CheckName(name string) error {
	if !regexp.MustCompile(`^us_(national|state_[a-z]{2})$`).MatchString(name) {
		return fmt.Errorf("%w: %q: use us_national, or us_state_ and the two letters of a state", ErrName, name)
	}
	return nil
}

// prepare validates a load, sets Downloaded, and returns the size of the files.
func (l *Load) prepare() (size int64, err error) {
	if len(l.Files) == 0 {
		return 0, errors.New("name at least one file")
	}
	oldest := l.Downloaded
	for _, name := range l.Files {
		info, fault := os.Stat(name)
		if fault != nil {
			return 0, fault
		}
		if written := info.ModTime(); l.Downloaded.IsZero() && (oldest.IsZero() || written.Before(oldest)) {
			oldest = written
		}
		size += info.Size()
	}
	if l.Downloaded = oldest; oldest.After(l.Now) {
		if l.Downloaded.After(l.Now.Add(24 * time.Hour)) {
			return 0, fmt.Errorf("the download date %s is in the future", oldest.Format(time.DateOnly))
		}
		l.Downloaded = l.Now
	}
	return size, nil
}

// withSums runs read while it computes the SHA-256 of the files.
func (l *Load) withSums(ctx context.Context, read func() error) (sums []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var fault error
		for _, name := range l.Files {
			var sum string
			if sum, fault = digest(ctx, name); fault != nil {
				break
			}
			sums = append(sums, sum)
		}
		done <- fault
	}()
	if err = read(); err != nil {
		cancel()
		return nil, errors.Join(err, ignoreCanceled(<-done))
	}
	err = <-done
	return sums, err
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// digest returns the SHA-256 of a file.
func digest(ctx context.Context, name string) (string, error) {
	f, err := os.Open(name) //nolint:gosec // the operator's own path
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, contextReader{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // of one copy
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// progress returns a function that makes the progress callback of one file. done is the size of the files before it.
func (l *Load) progress(size int64) func(done int64) func(int64) {
	return func(done int64) func(int64) {
		if l.Progress == nil {
			return nil
		}
		return func(n int64) { l.Progress(int(min(done+n, size)), int(size)) }
	}
}

// Load makes a new copy of a registry from the previous copy and files. Nodes use the previous copy until the new one
// is complete. Loads of the same registry run one after the other.
func (s *Catalog) Load(ctx context.Context, l Load) (LoadResult, error) {
	if err := CheckName(l.Name); err != nil {
		return LoadResult{}, err
	}
	size, err := l.prepare()
	if err != nil {
		return LoadResult{}, err
	}
	var w replacement
	err = db.Tx(ctx, s.Pool, func(tx pgx.Tx) (fault error) {
		w, fault = s.replaceCopy(ctx, tx, l, size)
		return fault
	})
	if err != nil {
		return LoadResult{}, fmt.Errorf("load %s: %w", l.Name, err)
	}
	return w.done, s.deleteOld(ctx, l.Name, w.old.File)
}

// A replacement is the result of a load and the copy that it replaced.
type replacement struct {
	done LoadResult
	old  registryCopy
}

func (s *Catalog) replaceCopy(ctx context.Context, tx pgx.Tx, l Load, size int64) (w replacement, err error) {
	if _, err = tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil { // the wait for another load may take minutes
		return w, err
	}
	if _, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('registry ' || $1, 0))", l.Name); err != nil {
		return w, err
	}
	all, err := newestCopies(ctx, tx)
	if err != nil {
		return w, err
	}
	if i := slices.IndexFunc(all, func(c registryCopy) bool { return c.Name == l.Name }); i >= 0 {
		w.old = all[i]
	}
	var b *registry.Builder
	var c registryCopy
	sums, err := l.withSums(ctx, func() (fault error) {
		c, b, fault = s.build(ctx, l, w.old, size)
		return fault
	})
	if err != nil && b != nil {
		err = errors.Join(err, s.Bucket.Delete(context.WithoutCancel(ctx), c.File))
	}
	if err != nil {
		return w, err
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO registries (name, file, sha256, numbers, area_codes, downloaded_at, loaded_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		RETURNING id`, c.Name, c.File, c.SHA256, c.Numbers, c.Areas, c.Downloaded, l.Now).Scan(&c.ID)
	if err != nil {
		return w, errors.Join(err, s.Bucket.Delete(context.WithoutCancel(ctx), c.File))
	}
	added, deleted := b.Counts()
	w.done = LoadResult{
		Name: c.Name, Version: c.version(), Added: int64(added), Deleted: int64(deleted), Numbers: c.Numbers,
		Areas: len(c.Areas), Downloaded: c.Downloaded,
	}
	return w, record(ctx, tx, l, w.done, &c.ID, sums)
}

// build makes the file of a new copy and stores it in the bucket.
func (s *Catalog) build(ctx context.Context, l Load, old registryCopy, size int64) (c registryCopy, b *registry.Builder, err error) {
	c = registryCopy{Name: l.Name, File: "registries/" + l.Name + control.NewID("-", l.Now) + ".dnc", Downloaded: l.Downloaded}
	name, err := s.path(c.File)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	from := ""
	if err == nil && old.File != "" && !l.Replace {
		if err = s.fetch(ctx, old); err == nil {
			from, err = s.path(old.File)
		}
	}
	if err != nil {
		return c, nil, err
	}
	if b, err = registry.Build(name, from); err != nil {
		return c, nil, err
	}
	if err = l.read(b, size); err != nil {
		return c, nil, errors.Join(err, b.Abort())
	}
	if from != "" && !b.HasChanges() && old.Downloaded.Before(c.Downloaded) {
		c.Downloaded = old.Downloaded // some numbers are as old as the previous copy
	}
	if err = b.Done(); err != nil {
		return c, nil, err
	}
	if err = s.measure(&c, name); err == nil {
		err = s.storeFile(ctx, c, name)
	}
	if err != nil {
		return c, nil, errors.Join(err, os.Remove(name))
	}
	return c, b, nil
}

func (l *Load) read(b *registry.Builder, size int64) error {
	b.Country(l.Country)
	for _, code := range l.Areas {
		if err := b.Area(code); err != nil {
			return err
		}
	}
	return l.readFiles(size, b.Load)
}

// readFiles calls read for each file and reports progress.
func (l *Load) readFiles(size int64, read func(name string, progress func(int64)) error) error {
	progress, done := l.progress(size), int64(0)
	for _, name := range l.Files {
		if err := read(name, progress(done)); err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		done += info.Size()
	}
	if l.Progress != nil {
		l.Progress(int(size), int(size))
	}
	return nil
}

// measure sets the counts and the checksum of a new copy.
func (s *Catalog) measure(c *registryCopy, name string) error {
	set, err := registry.Open(name)
	if err != nil {
		return err
	}
	for code, n := range set.Areas() {
		c.Areas = append(c.Areas, code)
		c.Numbers += int64(n)
	}
	slices.Sort(c.Areas)
	if c.Areas == nil {
		c.Areas = []string{}
	}
	if err = set.Close(); err == nil {
		c.SHA256, err = digest(context.Background(), name)
	}
	return err
}

// storeFile stores the file of a new copy in a bucket that is not a folder.
func (s *Catalog) storeFile(ctx context.Context, c registryCopy, name string) error {
	if _, ok := s.Bucket.(localBucket); ok {
		return nil
	}
	f, err := os.Open(name) //nolint:gosec // own file
	if err != nil {
		return err
	}
	defer f.Close()
	return s.Bucket.Put(ctx, c.File, f)
}

// deleteOld deletes the file of an old copy and, on this node, all local files except the
// newest one.
func (s *Catalog) deleteOld(ctx context.Context, registry, old string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if old != "" {
		if err := s.Bucket.Delete(ctx, old); err != nil {
			return fmt.Errorf("delete old copy %s: %w", old, err)
		}
	}
	return s.tidy(ctx, registry)
}

// record stores the record of a load and notifies the nodes.
func record(ctx context.Context, tx pgx.Tx, l Load, done LoadResult, registryID *int64, sums []string) error {
	files := make([]string, len(l.Files))
	for i, name := range l.Files {
		files[i] = filepath.Base(name)
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO list_loads (name, org_id, registry_id, files, sha256, replaced, added, deleted, numbers, downloaded_at, loaded_by, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		done.Name, l.OrgID, registryID, files, sums, l.Replace, done.Added, done.Deleted, done.Numbers, l.Downloaded, l.By, l.Now)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", Channel)
	return err
}
