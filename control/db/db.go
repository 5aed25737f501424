// Package db opens Postgres: connection pools, migrations and notifications. Without a database URL it runs Postgres
// as a child process.
package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config describes which database to open, and how.
type Config struct {
	// URL is a Postgres connection string. If it is empty, Open starts the Postgres of DataDir, or uses the one that
	// another process started. It may lead through a pooler in transaction mode, such as PgBouncer.
	URL string
	// DirectURL leads to the same database without a pooler. It is for notifications and migrations. It is used only if
	// URL leads through a pooler; may be empty.
	DirectURL string
	// DataDir is the folder of the program's data. It is used only if URL is empty.
	DataDir string
	// MaxConns is the maximum number of connections of Pool, DialPool and OrderPool together; 0 means DefaultConns, and
	// less than MinConns means MinConns.
	MaxConns int32
	// Wait is how long Open waits for a database that accepts writes; 0 means that Open does not wait.
	Wait time.Duration
	// KeepSchema makes Open leave the schema as it is, which may be missing or of another release.
	KeepSchema bool
	// Prepare is called for every new connection; may be nil.
	Prepare func(context.Context, *pgx.Conn) error
	// Log receives events of the child process; nil disables logging.
	Log *slog.Logger
}

// Exists reports whether there is a database to open. It returns false only if Open would create the database of DataDir.
func (c Config) Exists() bool {
	if c.URL != "" {
		return true
	}
	_, err := os.Stat(filepath.Join(c.DataDir, "postgres"))
	return !errors.Is(err, fs.ErrNotExist)
}

// Numbers of connections of a process.
const (
	DefaultConns = 12
	MinConns     = 4
)

// share returns how many of n connections the pools get.
func share(n int32) (pool, dial, order int32) {
	n = max(cmp.Or(n, DefaultConns), MinConns)
	dial, order = n*5/12, max(1, n/6)
	return n - dial - order, dial, order
}

// idleTime is how long a pool keeps an unused connection, so that a burst of work does not occupy connections of the
// server for long.
const idleTime = time.Minute

// DB is an open database. Its schema is up to date unless Config.KeepSchema is set.
type DB struct {
	// Pool is for all work that DialPool and OrderPool are not for.
	Pool *pgxpool.Pool
	// DialPool is only for dialing, so that a flood of requests cannot use up its connections. Its statements use
	// generic plans.
	DialPool *pgxpool.Pool
	// OrderPool is only for the short queries that almost every request runs. Its statements use generic plans.
	OrderPool *pgxpool.Pool
	// ListenPool is for a Listener; nil if the database is reachable only through a pooler, which delivers no
	// notifications.
	ListenPool *pgxpool.Pool

	direct *pgxpool.Pool // pool of Config.DirectURL; nil if it is not used
	local  *Local
}

// Open connects to the database and migrates the schema, unless c.KeepSchema is set. If needed, it starts Postgres first.
// Several processes may open the same database at the same time.
func Open(ctx context.Context, c Config) (*DB, error) {
	d := &DB{}
	url := c.URL
	if url == "" {
		d.local = &Local{Dir: c.DataDir, Log: c.Log}
		if err := d.local.Start(ctx); err != nil {
			return nil, err
		}
		url = d.local.URL("parley")
	}
	err := d.connect(ctx, url, c)
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *DB) connect(ctx context.Context, url string, c Config) error {
	pooled := false
	conns, dial, order := share(c.MaxConns)
	err := await(ctx, c, func() (err error) {
		if d.Pool == nil && c.URL != "" {
			if pooled, err = isPooled(ctx, url); err != nil {
				return err
			}
		}
		if d.Pool == nil {
			if d.Pool, err = newPool(ctx, url, c, conns, pooled, nil); err != nil {
				return err
			}
		}
		if c.Wait <= 0 {
			return d.Pool.Ping(ctx)
		}
		return d.Writable(ctx)
	})
	if err != nil {
		return err
	}
	if d.ListenPool = d.Pool; pooled {
		if err = d.openDirect(ctx, c); err != nil {
			return err
		}
	}
	if !c.KeepSchema {
		if err = Migrate(ctx, cmp.Or(d.direct, d.Pool), c.Log); err != nil {
			return err
		}
	}
	generic := map[string]string{"plan_cache_mode": "force_generic_plan"}
	if d.DialPool, err = newPool(ctx, url, c, dial, pooled, generic); err != nil {
		return err
	}
	d.OrderPool, err = newPool(ctx, url, c, order, pooled, generic)
	return err
}

// openDirect opens the pool of c.DirectURL.
func (d *DB) openDirect(ctx context.Context, c Config) (err error) {
	d.ListenPool = nil
	if c.DirectURL == "" {
		if c.Log != nil {
			c.Log.InfoContext(ctx, "the database URL leads through a pooler: changes are polled; "+
				"set PARLEY_DATABASE_DIRECT_URL for notifications")
		}
		return nil
	}
	pooled, err := isPooled(ctx, c.DirectURL)
	switch {
	case err != nil:
		return fmt.Errorf("direct database URL: %w", err)
	case pooled:
		return errors.New("direct database URL: it leads through a pooler; accepted: the address of Postgres itself")
	}
	d.direct, err = newPool(ctx, c.DirectURL, c, 1, false, nil)
	d.ListenPool = d.direct
	return err
}

// Intervals of await: between tries, and between log lines.
const (
	awaitEvery       = 500 * time.Millisecond
	awaitLogInterval = 5 * time.Second
)

// await calls try until it succeeds, and logs that it waits. It fails after c.Wait, or at once for an error that waiting
// does not cure.
func await(ctx context.Context, c Config, try func() error) error {
	began, logged := time.Now(), time.Time{}
	for {
		err := try()
		left := c.Wait - time.Since(began)
		switch {
		case err == nil:
			return nil
		case isAccessDenied(err) || errors.Is(err, errBadURL) || left <= 0 || ctx.Err() != nil:
			return fmt.Errorf("database: %w", err)
		case c.Log != nil && time.Since(logged) >= awaitLogInterval:
			c.Log.WarnContext(ctx, "waiting for the database", "err", err, "at_most", left.Round(time.Second).String())
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
	for _, p := range []*pgxpool.Pool{d.direct, d.DialPool, d.OrderPool, d.Pool} {
		if p != nil {
			p.Close()
		}
	}
	if d.local != nil {
		d.local.Stop()
	}
}

// errBadURL does not contain the parser's error, because that contains the URL with its password.
var errBadURL = errors.New("the URL is not a Postgres connection string")

// parse returns the configuration of a pool without the parameters that a pooler refuses.
func parse(url string) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errBadURL
	}
	pc.ConnConfig.ConnectTimeout = 10 * time.Second
	pc.ConnConfig.RuntimeParams["application_name"] = "parley"
	pc.ConnConfig.RuntimeParams["timezone"] = "UTC"
	return pc, nil
}

func newPool(ctx context.Context, url string, c Config, conns int32, pooled bool, more map[string]string) (*pgxpool.Pool, error) {
	pc, err := parse(url)
	if err != nil {
		return nil, err
	}
	pc.MaxConns, pc.MaxConnIdleTime = conns, idleTime
	pc.AfterConnect = c.Prepare
	if pooled {
		adaptToPooler(url, pc)
	} else {
		pc.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(statementLimit.Milliseconds(), 10)
		pc.ConnConfig.RuntimeParams["jit"] = "off" // no statement is long enough for compilation to pay off
		// The start of parallel workers takes longer than most statements, and they take processors from calls.
		pc.ConnConfig.RuntimeParams["max_parallel_workers_per_gather"] = "0"
		maps.Copy(pc.ConnConfig.RuntimeParams, more)
	}
	m := &primaryFollower{}
	m.watch(&pc.ConnConfig.Config)
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, err
	}
	m.pool.Store(pool)
	return pool, nil
}

// Tx runs do in a transaction. It commits if do returns nil, and rolls back otherwise.
func Tx(ctx context.Context, pool *pgxpool.Pool, do func(pgx.Tx) error) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, txOptions(conn.Conn()), do)
	})
}

// Batch is a list of statements that are sent in one round trip.
type Batch = pgx.Batch

// Querier is a pool or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
