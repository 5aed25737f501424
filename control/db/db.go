// Package db opens Postgres: pools, migrations, notifications, and without a database URL
// an own Postgres child process.
package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config selects the database to open.
type Config struct {
	// URL is a Postgres connection string. If empty, Open starts or joins the Postgres of DataDir.
	URL string
	// DataDir is the folder of the program's data; used without a URL only.
	DataDir string
	// MaxConns bounds Pool; 0 means 16. DialPool has half as many connections, OrderPool a quarter.
	MaxConns int32
	// Wait is how long Open waits for a writable database; 0 fails at once.
	Wait time.Duration
	// Prepare is called for every new connection; may be nil.
	Prepare func(context.Context, *pgx.Conn) error
	// Log receives events of the child process; nil disables logging.
	Log *slog.Logger
}

// A DB is an open, migrated database.
type DB struct {
	// Pool is safe for concurrent use.
	Pool *pgxpool.Pool
	// DialPool is reserved for dialing, so that a flood of requests takes none of its connections. Its statements use
	// generic plans.
	DialPool *pgxpool.Pool
	// OrderPool is reserved for the short queries of almost every request. Its statements use generic plans.
	OrderPool *pgxpool.Pool

	local *Local
}

// Open connects, starts its own Postgres first if needed, and migrates the schema. Several processes may open one
// database at a time.
func Open(ctx context.Context, c Config) (*DB, error) {
	d := &DB{}
	c.MaxConns = cmp.Or(c.MaxConns, 16)
	url := c.URL
	if url == "" {
		d.local = &Local{Dir: c.DataDir, Log: c.Log}
		if err := d.local.Start(ctx); err != nil {
			return nil, err
		}
		url = d.local.URL("parley")
	}
	var err error
	if d.Pool, err = connect(ctx, url, c, nil); err == nil {
		err = d.await(ctx, c.Wait, c.Log)
	}
	if err == nil {
		err = Migrate(ctx, d.Pool)
	}
	for _, few := range []**pgxpool.Pool{&d.DialPool, &d.OrderPool} {
		if err == nil {
			c.MaxConns = (c.MaxConns + 1) / 2
			*few, err = connect(ctx, url, c, map[string]string{"plan_cache_mode": "force_generic_plan"})
		}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Pauses of await, and between its log lines.
const (
	awaitEvery       = 500 * time.Millisecond
	awaitLogInterval = 5 * time.Second
)

// await waits for a writable database and logs that it waits. It fails after wait, or at once if waiting cannot help.
func (d *DB) await(ctx context.Context, wait time.Duration, log *slog.Logger) error {
	if wait <= 0 {
		if err := d.Pool.Ping(ctx); err != nil {
			return fmt.Errorf("database: %w", err)
		}
		return nil
	}
	began, logged := time.Now(), time.Time{}
	for {
		err := d.Writable(ctx)
		left := wait - time.Since(began)
		switch {
		case err == nil:
			return nil
		case isAccessDenied(err) || left <= 0 || ctx.Err() != nil:
			return fmt.Errorf("database: %w", err)
		case log != nil && time.Since(logged) >= awaitLogInterval:
			log.WarnContext(ctx, "waiting for the database", "err", err, "at_most", left.Round(time.Second).String())
			logged = time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(awaitEvery, left)):
		}
	}
}

// Close closes the pools and stops the Postgres started by this process.
func (d *DB) Close() {
	for _, p := range []*pgxpool.Pool{d.DialPool, d.OrderPool, d.Pool} {
		if p != nil {
			p.Close()
		}
	}
	if d.local != nil {
		d.local.Stop()
	}
}

func connect(ctx context.Context, url string, c Config, more map[string]string) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The parser's error contains the URL with its password.
		return nil, errors.New("database: the URL is not a Postgres connection string")
	}
	pc.MaxConns = c.MaxConns
	pc.AfterConnect = c.Prepare
	pc.ConnConfig.ConnectTimeout = 10 * time.Second
	pc.ConnConfig.RuntimeParams["application_name"] = "parley"
	pc.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pc.ConnConfig.RuntimeParams["statement_timeout"] = "30000"
	pc.ConnConfig.RuntimeParams["jit"] = "off" // no statement is long enough to benefit
	maps.Copy(pc.ConnConfig.RuntimeParams, more)
	m := &primaryFollower{}
	m.watch(&pc.ConnConfig.Config)
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	m.pool.Store(pool)
	return pool, nil
}

// Tx runs do in one transaction: committed if it returns nil, else rolled back.
func Tx(ctx context.Context, pool *pgxpool.Pool, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, do)
}

// Batch is a batch of statements sent in one round trip.
type Batch = pgx.Batch

// A Querier is a pool or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
