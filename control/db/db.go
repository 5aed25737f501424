// Package db is the way to Postgres: a pool, the migrations, the wake-up bell,
// and, where no database is named, a Postgres of our own as a child process.
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

// A Config says which database to open.
type Config struct {
	// URL is a Postgres connection string. Empty starts, or joins, a Postgres
	// of our own under DataDir.
	URL string
	// DataDir is the folder of the program's data; used without a URL only.
	DataDir string
	// MaxConns bounds the pool; 0 means 16. The pool of dialling has half as many,
	// and that of requests a quarter.
	MaxConns int32
	// Prepare, where set, is given every new connection before it is used.
	Prepare func(context.Context, *pgx.Conn) error
	// Log hears of the child process; nil is silent.
	Log *slog.Logger
}

// A DB is an open, migrated database.
type DB struct {
	// Pool is safe for concurrent use.
	Pool *pgxpool.Pool
	// Dial is a pool of its own for what calls wait for while they are dialled: a
	// flood of requests takes no connection from it. Its statements are planned
	// once, whatever they are given.
	Dial *pgxpool.Pool
	// Front is a pool of its own for what almost each request asks, and many ask
	// together. Its statements are planned once, too.
	Front *pgxpool.Pool

	local *Local
}

// Open connects, starting Postgres first where it is ours, and brings the
// schema up to date. Several processes may open one database at a time.
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
		if err = d.Pool.Ping(ctx); err != nil {
			err = fmt.Errorf("database: %w", err)
		}
	}
	if err == nil {
		err = Migrate(ctx, d.Pool)
	}
	for _, few := range []**pgxpool.Pool{&d.Dial, &d.Front} {
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

// Close closes the pool and stops the Postgres that this process started.
func (d *DB) Close() {
	for _, p := range []*pgxpool.Pool{d.Dial, d.Front, d.Pool} {
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
		// The parser's own error repeats the URL, and with it the password.
		return nil, errors.New("database: the URL is not a Postgres connection string")
	}
	pc.MaxConns = c.MaxConns
	pc.AfterConnect = c.Prepare
	pc.ConnConfig.ConnectTimeout = 10 * time.Second
	pc.ConnConfig.RuntimeParams["application_name"] = "parley"
	pc.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pc.ConnConfig.RuntimeParams["statement_timeout"] = "30000"
	pc.ConnConfig.RuntimeParams["jit"] = "off" // no statement is so long that compiling it pays
	maps.Copy(pc.ConnConfig.RuntimeParams, more)
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return pool, nil
}

// Tx runs do in one transaction: committed if it returns nil, else rolled back.
func Tx(ctx context.Context, pool *pgxpool.Pool, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, do)
}

// A Batch is statements that go to the database at once.
type Batch = pgx.Batch

// A Querier is a pool or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
