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

// readOnly is the SQLSTATE of a write to a server that is read-only or recovers.
const readOnly = "25006"

// IsUnavailable reports whether the database is unreachable, stopping, starting, full,
// read-only or too slow, rather than refusing the statement.
func IsUnavailable(err error) bool {
	if lost, ok := errors.AsType[net.Error](err); ok && lost != nil {
		return true
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch refusal.Code[:min(2, len(refusal.Code))] {
		case "08", "53", "57": // connection, resources, intervention
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
	_ = conn.Conn().Close(ctx) // the next connection may be to another server
	return err
}

// primaryFollower leaves a server that became read-only, so that a URL with several hosts leads to the primary.
type primaryFollower struct {
	pool atomic.Pointer[pgxpool.Pool]
	last atomic.Int64 // UnixNano of the last reset
}

// resetInterval is the minimum time between two resets of the pool.
const resetInterval = time.Second

// watch observes the errors of connections of c.
func (m *primaryFollower) watch(c *pgconn.Config) {
	prior := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		if e.Code == readOnly {
			m.leave()
			return false // closes the connection
		}
		return prior == nil || prior(conn, e)
	}
}

// leave closes all connections of the pool: idle ones now, others when released.
func (m *primaryFollower) leave() {
	now, last := time.Now().UnixNano(), m.last.Load()
	pool := m.pool.Load()
	if pool != nil && now-last >= int64(resetInterval) && m.last.CompareAndSwap(last, now) {
		pool.Reset()
	}
}

// isAccessDenied reports a wrong user, password or database name.
func isAccessDenied(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(refusal.Code, "28") || strings.HasPrefix(refusal.Code, "3D"))
}
