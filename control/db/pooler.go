package db

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A pooler in transaction mode, such as PgBouncer, gives a connection another server session for each transaction.
// Session state therefore does not last: prepared statements, SET, LISTEN and session locks. Through a pooler, this
// package sends no startup parameters that PgBouncer refuses, uses unnamed statements, and limits statements by itself.

// statementLimit bounds a statement that does not lift the limit itself.
const statementLimit = 30 * time.Second

// beginPooled begins a transaction with the parameters that a direct connection gets at its start, so its timeout is
// statementLimit.
const beginPooled = "BEGIN; SET LOCAL statement_timeout = '30s'; SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0"

// isPooled reports whether a pooler stands between this process and Postgres. Postgres reports its process ID when a
// connection starts; a pooler reports another number, because the server process may change.
func isPooled(ctx context.Context, url string) (bool, error) {
	pc, err := parse(url)
	if err != nil {
		return false, err
	}
	conn, err := pgx.ConnectConfig(ctx, pc.ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var pid uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid != conn.PgConn().PID(), err
}

// pooledMark is the key of a connection's custom data that tells pooled connections apart.
const pooledMark = "parley-pooled"

// adaptToPooler changes the configuration of connections through a pooler.
func adaptToPooler(url string, pc *pgxpool.Config) {
	if !strings.Contains(url, "default_query_exec_mode") {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	pc.ConnConfig.Tracer = limiter{}
	prepare := pc.AfterConnect
	pc.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		conn.PgConn().CustomData()[pooledMark] = true
		if prepare == nil {
			return nil
		}
		return prepare(ctx, conn)
	}
}

// txOptions returns how transactions of a connection begin.
func txOptions(conn *pgx.Conn) pgx.TxOptions {
	if conn.PgConn().CustomData()[pooledMark] == nil {
		return pgx.TxOptions{}
	}
	return pgx.TxOptions{BeginQuery: beginPooled}
}

// limiter cancels statements outside transactions after statementLimit. It does so by their contexts, because it cannot
// set statement_timeout for one statement.
type limiter struct{}

type (
	unlimitedKey struct{}
	cancelKey    struct{}
)

// withoutLimit returns a context whose statements have no limit.
func withoutLimit(ctx context.Context) context.Context {
	return context.WithValue(ctx, unlimitedKey{}, true)
}

func (limiter) start(ctx context.Context, conn *pgx.Conn) context.Context {
	if conn.PgConn().TxStatus() != 'I' || ctx.Value(unlimitedKey{}) != nil {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	return context.WithValue(ctx, cancelKey{}, cancel)
}

func (limiter) end(ctx context.Context) {
	if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (l limiter) TraceQueryStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return l.start(ctx, conn)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l limiter) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { l.end(ctx) }

// TraceBatchStart implements pgx.BatchTracer.
func (l limiter) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return l.start(ctx, conn)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (limiter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (l limiter) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { l.end(ctx) }
