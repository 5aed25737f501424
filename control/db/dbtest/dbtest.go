// Package dbtest gives tests a real Postgres: one child process for each test binary, and a fresh, migrated database
// for each test.
package dbtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/secretbox"
)

// shared is the Postgres of this test binary.
type shared struct {
	once  sync.Once
	err   error
	local *db.Local
	dir   string
	next  atomic.Int64
	mu    sync.Mutex // CREATE DATABASE fails while another session uses the template
}

var one shared //nolint:gochecknoglobals // one child per process

// Main runs the tests, then the cleanup functions, and stops Postgres. A TestMain only has to call Main.
func Main(m *testing.M, after ...func()) {
	m.Run()
	for _, f := range after {
		f()
	}
	if one.local != nil {
		one.local.Stop()
	}
	if one.dir != "" {
		_ = os.RemoveAll(one.dir)
	}
}

// New returns an empty database with the current schema. It is dropped when the test ends.
func New(t *testing.T) *db.DB {
	t.Helper()
	d, err := Open(t.Context(), URL(t), 24)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// SealKey is the key with which test databases encrypt secrets.
const SealKey = "cGFybGV5LXRlc3RzLW5vdC1hLXNlY3JldC1hdC1hbGw="

// Open opens a database with SealKey.
func Open(ctx context.Context, url string, conns int32) (*db.DB, error) {
	keys, err := secretbox.Parse(SealKey)
	if err != nil {
		return nil, err
	}
	box := &secretbox.Box{}
	box.SetKeys(keys)
	return db.Open(ctx, db.Config{URL: url, MaxConns: conns, Prepare: box.Prepare})
}

// URL creates a database as New does, and returns its connection string.
func URL(t testing.TB) string {
	t.Helper()
	return createURL(t, "parley")
}

// Empty creates a database without schema, and returns its connection string.
func Empty(t testing.TB) string {
	t.Helper()
	return createURL(t, "template0")
}

func createURL(t testing.TB, template string) string {
	t.Helper()
	name, err := one.create(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := one.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return one.local.URL(name)
}

// Shared creates a database that all tests of the binary may use, and returns its connection string.
func Shared(ctx context.Context) (string, error) {
	name, err := one.create(ctx, "parley")
	if err != nil {
		return "", err
	}
	return one.local.URL(name), nil
}

// create creates a database as a copy of another one, and returns its name.
func (s *shared) create(ctx context.Context, template string) (string, error) {
	s.once.Do(s.start)
	if s.err != nil {
		return "", s.err
	}
	name := fmt.Sprintf("test_%d", s.next.Add(1))
	return name, s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template)
}

func (s *shared) start() {
	// t.TempDir lies in a folder that only its owner may enter, so Postgres could not use it.
	if s.dir, s.err = os.MkdirTemp("", "parley-pg-"); s.err != nil {
		return
	}
	if s.err = os.Chmod(s.dir, 0o711); s.err != nil { //nolint:gosec // Postgres runs as another user
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s.local = &db.Local{Dir: s.dir, Fast: true}
	if s.err = s.local.Start(ctx); s.err != nil {
		return
	}
	template, err := db.Open(ctx, db.Config{URL: s.local.URL("parley")})
	if err != nil {
		s.err = err
		return
	}
	template.Close()
}

func (s *shared) exec(ctx context.Context, sql string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := pgx.Connect(ctx, s.local.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// Exec executes a statement.
func Exec(t testing.TB, d *db.DB, sql string, args ...any) {
	t.Helper()
	if _, err := d.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Traced returns a pool to the database, and a function that returns the statements since its last call, with those that
// begin and end transactions, and without the pings of connections that were idle for a second.
func Traced(t testing.TB, d *db.DB) (pool *pgxpool.Pool, statements func() []string) {
	t.Helper()
	sent := &trace{}
	c := d.Pool.Config()
	c.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, sent.take
}

// A trace collects statements.
type trace struct {
	mu  sync.Mutex
	all []string
}

func (s *trace) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *trace) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.SQL != "-- ping" {
		s.all = append(s.all, q.SQL)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*trace) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Value returns the only value that a query selects.
func Value[T any](t testing.TB, d *db.DB, sql string, args ...any) (v T) {
	t.Helper()
	if err := d.Pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
