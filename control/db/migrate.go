package db

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var embedded embed.FS

// baseline is the last migration that was written before the policy of docs/upgrading.md. Statements of these
// migrations may run without limit.
const baseline = 250

const (
	// lockTimeout is how long a statement of a migration waits for a lock. Other transactions queue behind it while it
	// waits.
	lockTimeout = 100 * time.Millisecond
	// statementTimeout limits statements that do not lift it themselves.
	statementTimeout = 30 * time.Second
	// lockPatience is how long a migration tries to get its locks.
	lockPatience = 10 * time.Minute
	// Pauses between tries.
	lockPause, maxLockPause = 100 * time.Millisecond, 5 * time.Second
)

// Migrate updates the schema while nodes of this and of the previous release use it. An advisory lock lets only one
// process at a time migrate; other processes wait if they need the new schema. log may be nil.
func Migrate(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	dir, err := fs.Sub(embedded, "migrations")
	if err == nil {
		err = (&migrator{pool: pool, dir: dir, log: log, patience: lockPatience}).run(ctx)
	}
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}

// migrator applies the migrations of a folder.
type migrator struct {
	pool     *pgxpool.Pool
	dir      fs.FS
	log      *slog.Logger
	patience time.Duration // how long to try to get a lock
}

func (m *migrator) run(ctx context.Context) error {
	ctx = withoutLimit(ctx)
	conn := stdlib.OpenDBFromPool(m.pool)
	defer func() { _ = conn.Close() }()
	turn := &locker{config: m.pool.Config().ConnConfig}
	p, err := goose.NewProvider(goose.DialectPostgres, conn, limitedFiles{m.dir}, goose.WithSessionLocker(turn))
	if err != nil {
		return err
	}
	for {
		// This does not wait for other processes: a node whose schema is complete can start during a long migration.
		pending, err := p.HasPending(ctx)
		if err != nil || !pending {
			return err
		}
		version, _, err := p.GetVersions(ctx)
		if err != nil {
			return err
		}
		if err = m.step(ctx, p, version); err != nil {
			return err
		}
	}
}

// step applies the next migration, or all of the baseline. It tries again as long as other transactions hold the locks
// that it needs.
func (m *migrator) step(ctx context.Context, p *goose.Provider, version int64) error {
	began, pause := time.Now(), lockPause
	for {
		applied, err := m.apply(ctx, p, version)
		if m.log != nil {
			for _, r := range applied {
				m.log.InfoContext(ctx, "schema updated", "migration", filepath.Base(r.Source.Path), "took", r.Duration.Round(time.Millisecond).String())
			}
		}
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			err = fmt.Errorf("%s: %w", filepath.Base(partial.Failed.Source.Path), partial.Err)
		}
		if err == nil || !isLocked(err) || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > m.patience {
			return fmt.Errorf("other transactions held its locks for %v; %s: %w", m.patience, m.oldest(ctx), err)
		}
		if m.log != nil && pause == maxLockPause {
			m.log.WarnContext(ctx, "a migration waits for other transactions", "oldest", m.oldest(ctx), "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, maxLockPause)
	}
}

func (m *migrator) apply(ctx context.Context, p *goose.Provider, version int64) (applied []*goose.MigrationResult, err error) {
	if version < baseline {
		return p.UpTo(ctx, baseline)
	}
	one, err := p.UpByOne(ctx)
	switch {
	case errors.Is(err, goose.ErrNoNextVersion): // another process has applied it
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []*goose.MigrationResult{one}, nil
}

// isLocked reports whether a statement did not get a lock in time.
func isLocked(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refusal.Code == "55P03" || refusal.Code == "40P01") // lock not available, deadlock
}

// oldest describes the oldest transaction of the database, which is likely to hold the lock.
func (m *migrator) oldest(ctx context.Context) (text string) {
	err := m.pool.QueryRow(ctx, `
		SELECT format('the oldest transaction is of process %s (%s) and began at %s', pid, coalesce(nullif(application_name, ''), backend_type),
			to_char(xact_start, 'YYYY-MM-DD HH24:MI:SS'))
		FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 1`).Scan(&text)
	if err != nil {
		return "the transaction that held them has ended"
	}
	return text
}

// limitedFiles sets the timeouts of the migrations whose statements run in a transaction. The other files set them
// themselves, for their session.
type limitedFiles struct{ fs.FS }

// Open implements fs.FS.
func (l limitedFiles) Open(name string) (fs.File, error) {
	f, err := l.FS.Open(name)
	if err != nil || path.Ext(name) != ".sql" {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	limit := statementTimeout
	if version, fault := goose.NumericComponent(name); fault == nil && version <= baseline {
		limit = 0
	}
	if !bytes.Contains(text, []byte("-- +goose NO TRANSACTION")) {
		// A waiting statement makes the server cancel an autovacuum of its table, but only after deadlock_timeout,
		// which only a superuser may lower.
		text = bytes.Replace(text, []byte("-- +goose Up\n"), fmt.Appendf(nil, `-- +goose Up
SELECT set_config('lock_timeout', '%d', true), set_config('statement_timeout', '%d', true),
	(SELECT set_config('deadlock_timeout', '%d', true) FROM pg_roles WHERE rolname = current_user AND rolsuper);
`, lockTimeout.Milliseconds(), limit.Milliseconds(), (lockTimeout/2).Milliseconds()), 1)
	}
	return limitedFile{f, bytes.NewReader(text)}, nil
}

type limitedFile struct {
	fs.File

	text io.Reader
}

// Read implements fs.File.
func (f limitedFile) Read(p []byte) (int, error) { return f.text.Read(p) }

// locker lets one process at a time migrate. It holds an advisory lock in a transaction of a connection of its own,
// because a pooler may give the statements of a migration different sessions.
type locker struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

// SessionLock implements lock.SessionLocker. Its transaction must not keep a snapshot while it waits or afterwards,
// because the creation of an index would wait for that transaction. Therefore SessionLock does not wait inside a
// statement. It uses the simple protocol, because a portal of the extended protocol keeps its snapshot.
func (l *locker) SessionLock(ctx context.Context, _ *sql.Conn) (err error) {
	if l.conn, err = pgx.ConnectConfig(ctx, l.config); err != nil {
		return err
	}
	_, err = l.conn.Exec(ctx, "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
	for free := false; err == nil; {
		const try = "SELECT pg_try_advisory_xact_lock($1)"
		err = l.conn.QueryRow(ctx, try, pgx.QueryExecModeSimpleProtocol, lock.DefaultLockID).Scan(&free)
		if free || err != nil {
			break
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(time.Second):
		}
	}
	if err != nil {
		return errors.Join(err, l.conn.Close(context.WithoutCancel(ctx)))
	}
	return nil
}

// SessionUnlock implements lock.SessionLocker. It also resets the timeouts that a migration without a transaction set.
func (l *locker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "RESET lock_timeout; RESET statement_timeout")
	return errors.Join(err, l.conn.Close(ctx))
}
