package lists

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

	"github.com/parley-voice/parley/campaigns/registry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// A Load is what an operator loads.
type Load struct {
	// Name is that of a registry, like us_national or us_state_tx; empty for the
	// own list of the organization.
	Name  string
	OrgID string
	Files []string
	// Areas are area codes to which the lists belong: those of their numbers that
	// are not listed may be called. Country are all that the country has.
	Areas, Country []string
	Replace        bool // what was listed before is not any more
	// Downloaded is when the lists were; zero is when the oldest of the files was
	// written.
	Downloaded time.Time
	By         string // who loads
	Now        time.Time
	Progress   func(done, all int) // in bytes; nil is nobody
}

// A Loaded is what came of a load.
type Loaded struct {
	Name           string
	Version        string // of a registry
	Added, Deleted int64
	Numbers        int64 // on the list now
	Areas          int
	Downloaded     time.Time
}

// ErrName tells that there is no such registry.
var ErrName = errors.New("no such registry")

// CheckName returns what is wrong with the name of a registry.
func CheckName(name string) error {
	if !regexp.MustCompile(`^us_(national|state_[a-z]{2})$`).MatchString(name) {
		return fmt.Errorf("%w: %q: use us_national, or us_state_ and the two letters of a state", ErrName, name)
	}
	return nil
}

// settled checks a load, and fills in what the files tell.
func (l *Load) settled() (size int64, err error) {
	if len(l.Files) == 0 {
		return 0, errors.New("no file to load")
	}
	young := l.Downloaded
	for _, name := range l.Files {
		info, fault := os.Stat(name)
		if fault != nil {
			return 0, fault
		}
		if written := info.ModTime(); l.Downloaded.IsZero() && (young.IsZero() || written.Before(young)) {
			young = written
		}
		size += info.Size()
	}
	if l.Downloaded = young; young.After(l.Now) {
		if l.Downloaded.After(l.Now.Add(24 * time.Hour)) {
			return 0, fmt.Errorf("a list that was downloaded on %s is of the future", young.Format(time.DateOnly))
		}
		l.Downloaded = l.Now
	}
	return size, nil
}

// beside reads the files of a load while their SHA-256 are made: both are slow,
// and the disk is asked once.
func (l *Load) beside(ctx context.Context, read func() error) (sums []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	made := make(chan error, 1)
	go func() {
		var fault error
		for _, name := range l.Files {
			var sum string
			if sum, fault = digest(ctx, name); fault != nil {
				break
			}
			sums = append(sums, sum)
		}
		made <- fault
	}()
	if err = read(); err != nil {
		cancel()
		return nil, errors.Join(err, ended(<-made))
	}
	err = <-made
	return sums, err
}

// ended is what went wrong with what was told to end.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// digest is the SHA-256 of a file.
func digest(ctx context.Context, name string) (string, error) {
	f, err := os.Open(name) //nolint:gosec // the operator's own path
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, until{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// until reads a file until a context ends.
type until struct {
	ctx context.Context //nolint:containedctx // of one copy
	r   io.Reader
}

// Read implements io.Reader.
func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// told turns what is read of single files into what is read of all.
func (l *Load) told(size int64) func(done int64) func(int64) {
	return func(done int64) func(int64) {
		if l.Progress == nil {
			return nil
		}
		return func(n int64) { l.Progress(int(min(done+n, size)), int(size)) }
	}
}

// Load makes a new copy of a registry, of the one before and of files, and puts
// it in that one's place: servers go on with the old one until it is there whole.
// Two loads of a registry go one after the other.
func (s *Shelf) Load(ctx context.Context, l Load) (Loaded, error) {
	if err := CheckName(l.Name); err != nil {
		return Loaded{}, err
	}
	size, err := l.settled()
	if err != nil {
		return Loaded{}, err
	}
	var w swap
	err = db.Tx(ctx, s.Pool, func(tx pgx.Tx) (fault error) {
		w, fault = s.swap(ctx, tx, l, size)
		return fault
	})
	if err != nil {
		return Loaded{}, fmt.Errorf("load %s: %w", l.Name, err)
	}
	return w.done, s.drop(ctx, l.Name, w.old.File)
}

// A swap is one copy put in the place of another.
type swap struct {
	done Loaded
	old  copied
}

func (s *Shelf) swap(ctx context.Context, tx pgx.Tx, l Load, size int64) (w swap, err error) {
	if _, err = tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil { // another load may take minutes
		return w, err
	}
	if _, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('registry ' || $1, 0))", l.Name); err != nil {
		return w, err
	}
	all, err := newest(ctx, tx)
	if err != nil {
		return w, err
	}
	if i := slices.IndexFunc(all, func(c copied) bool { return c.Name == l.Name }); i >= 0 {
		w.old = all[i]
	}
	var b *registry.Builder
	var c copied
	sums, err := l.beside(ctx, func() (fault error) {
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
	added, deleted := b.Changed()
	w.done = Loaded{
		Name: c.Name, Version: c.version(), Added: int64(added), Deleted: int64(deleted), Numbers: c.Numbers,
		Areas: len(c.Areas), Downloaded: c.Downloaded,
	}
	return w, record(ctx, tx, l, w.done, &c.ID, sums)
}

// build makes the file of a new copy, and brings it into the bucket.
func (s *Shelf) build(ctx context.Context, l Load, old copied, size int64) (c copied, b *registry.Builder, err error) {
	c = copied{Name: l.Name, File: "registries/" + l.Name + control.NewID("-", l.Now) + ".dnc", Downloaded: l.Downloaded}
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
	if from != "" && !b.Changes() && old.Downloaded.Before(c.Downloaded) {
		c.Downloaded = old.Downloaded // of what stays
	}
	if err = b.Done(); err != nil {
		return c, nil, err
	}
	if err = s.measure(&c, name); err == nil {
		err = s.keep(ctx, c, name)
	}
	if err != nil {
		return c, nil, errors.Join(err, os.Remove(name))
	}
	return c, b, nil
}

// read reads the files of a load.
func (l *Load) read(b *registry.Builder, size int64) error {
	b.Country(l.Country)
	for _, code := range l.Areas {
		if err := b.Area(code); err != nil {
			return err
		}
	}
	return l.each(size, b.Load)
}

// each reads the files, one after the other, and tells how far it is.
func (l *Load) each(size int64, read func(name string, told func(int64)) error) error {
	told, done := l.told(size), int64(0)
	for _, name := range l.Files {
		if err := read(name, told(done)); err != nil {
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

// measure counts what a new copy has.
func (s *Shelf) measure(c *copied, name string) error {
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

// keep brings the file of a new copy into a bucket that is no folder.
func (s *Shelf) keep(ctx context.Context, c copied, name string) error {
	if _, ok := s.Bucket.(local); ok {
		return nil
	}
	f, err := os.Open(name) //nolint:gosec // ours
	if err != nil {
		return err
	}
	defer f.Close()
	return s.Bucket.Put(ctx, c.File, f)
}

// drop deletes the file of an old copy and, on this machine, all of the registry's
// but the newest; those who have one mapped keep it.
func (s *Shelf) drop(ctx context.Context, registry, old string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if old != "" {
		if err := s.Bucket.Delete(ctx, old); err != nil {
			return fmt.Errorf("an old copy is left, %s: %w", old, err)
		}
	}
	return s.tidy(ctx, registry)
}

// record keeps who loaded what, and rings.
func record(ctx context.Context, tx pgx.Tx, l Load, done Loaded, registryID *int64, sums []string) error {
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
	_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", Bell)
	return err
}
