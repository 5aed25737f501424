// Package db opens Postgres: connection pools, migrations and notifications. Without a database URL it runs Postgres
// as a child process.
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

// Config describes which database to open, and how.
type Config struct {
	// URL is a Postgres connection string. If it is empty, Open starts the Postgres of DataDir, or uses the one that
	// another process started.
	URL string
	// DataDir is the folder of the program's data. It is used only if URL is empty.
	DataDir string
	// MaxConns is the maximum number of connections of Pool; 0 means 16. DialPool gets half as many, OrderPool a
	// quarter.
	MaxConns int32
	// Wait is how long Open waits for a database that accepts writes; 0 means that Open does not wait.
	Wait time.Duration
	// Prepare is called for every new connection; may be nil.
	Prepare func(context.Context, *pgx.Conn) error
	// Log receives events of the child process; nil disables logging.
	Log *slog.Logger
}

// DB is an open database whose schema is up to date.
type DB struct {
	// Pool is for all work that DialPool and OrderPool are not for.
	Pool *pgxpool.Pool
	// DialPool is only for dialing, so that a flood of requests cannot use up its connections. Its statements use
	// generic plans.
	DialPool *pgxpool.Pool
	// OrderPool is only for the short queries that almost every request runs. Its statements use generic plans.
	OrderPool *pgxpool.Pool

	local *Local
}

// Open connects to the database and migrates the schema. If needed, it starts Postgres first. Several processes may
// open the same database at the same time.
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
		err = Migrate(ctx, d.Pool, c.Log)
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

// Intervals of await: between tries, and between log lines.
const (
	awaitEvery       = 500 * time.Millisecond
	awaitLogInterval = 5 * time.Second
)

// await waits until the database accepts writes, and logs that it waits. It fails after wait, or at once for an error
// that waiting does not cure.
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

// Pools returns the pools by name: main, dial and order.
func (d *DB) Pools() map[string]*pgxpool.Pool {
	return map[string]*pgxpool.Pool{"main": d.Pool, "dial": d.DialPool, "order": d.OrderPool}
}

// Close closes the pools, and stops Postgres if this process started it.
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
		// Do not return the parser's error: it contains the URL with its password.
		return nil, errors.New("database: the URL is not a Postgres connection string")
	}
	pc.MaxConns = c.MaxConns
	pc.AfterConnect = c.Prepare
	pc.ConnConfig.ConnectTimeout = 10 * time.Second
	pc.ConnConfig.RuntimeParams["application_name"] = "parley"
	pc.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pc.ConnConfig.RuntimeParams["statement_timeout"] = "30000"
	pc.ConnConfig.RuntimeParams["jit"] = "off" // no statement is long enough for compilation to pay off
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

// Tx runs do in a transaction. It commits if do returns nil, and rolls back otherwise.
func Tx(ctx context.Context, pool *pgxpool.Pool, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, do)
}

// Batch is a list of statements that are sent in one round trip.
type Batch = pgx.Batch

// Querier is a pool or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
