package db

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// readOnly is the SQLSTATE for a write on a server that is read-only or in recovery.
const readOnly = "25006"

// IsUnavailable reports whether an error means that the database is unreachable, stopping, starting, full, read-only
// or too slow. It is false if the database rejected the statement itself.
func IsUnavailable(err error) bool {
	if lost, ok := errors.AsType[net.Error](err); ok && lost != nil {
		return true
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch refusal.Code[:min(2, len(refusal.Code))] {
		case "08", "53", "57": // error classes: connection, resources, operator intervention
			return true
		}
		return refusal.Code == readOnly
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Writable returns an error if the database does not answer or does not accept writes.
func (d *DB) Writable(ctx context.Context) error {
	conn, err := d.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var refuses, recovers bool
	err = conn.QueryRow(ctx, "SELECT current_setting('transaction_read_only')::bool, pg_is_in_recovery()").Scan(&refuses, &recovers)
	switch {
	case err != nil:
		return err
	case recovers:
		err = errors.New("the database is in recovery")
	case refuses:
		err = errors.New("the database is read-only")
	default:
		return nil
	}
	_ = conn.Conn().Close(ctx) // a new connection may reach another server
	return err
}

// primaryFollower disconnects from a server that became read-only, so that a URL with several hosts leads to the new
// primary.
type primaryFollower struct {
	pool atomic.Pointer[pgxpool.Pool]
	last atomic.Int64 // time of the last reset, UnixNano
}

// resetInterval is the minimum time between two resets of the pool.
const resetInterval = time.Second

// watch checks the errors of all connections of c.
func (m *primaryFollower) watch(c *pgconn.Config) {
	prior := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		if e.Code == readOnly {
			m.leave()
			return false // false closes the connection
		}
		return prior == nil || prior(conn, e)
	}
}

// leave closes the idle connections of the pool at once, and each other connection when it is released.
func (m *primaryFollower) leave() {
	now, last := time.Now().UnixNano(), m.last.Load()
	pool := m.pool.Load()
	if pool != nil && now-last >= int64(resetInterval) && m.last.CompareAndSwap(last, now) {
		pool.Reset()
	}
}

// isAccessDenied reports whether the user, the password or the name of the database is wrong.
func isAccessDenied(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(refusal.Code, "28") || strings.HasPrefix(refusal.Code, "3D"))
}

// NoRole reports whether Postgres has no role for the user of the system that runs this process.
func NoRole(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.Code == "28000"
}
