package db

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

// MinVersion is the oldest major version of Postgres that is supported.
const MinVersion = 14

// State describes a database.
type State struct {
	Major    int    // major version of Postgres
	Database string // name of the database
	User     string
	Schema   int64 // last applied migration; 0: no schema
	Want     int64 // last migration of this program
	Replica  bool  // the server is in recovery
	ReadOnly bool
	// CanMigrate reports whether the user may create tables.
	CanMigrate bool
	// MaxConns is the number of connections that the server accepts from users who are not superusers.
	MaxConns int
	// Nodes is the number of servers that were active in the last minute.
	Nodes int
	// Skew is how far the clock of the server is ahead of this machine. Uncertainty is the largest error of Skew.
	Skew, Uncertainty time.Duration
}

// Inspect reads the state of a database. now is the clock of this machine.
func Inspect(ctx context.Context, q Querier, now func() time.Time) (s State, err error) {
	if s.Want, err = lastMigration(); err != nil {
		return s, err
	}
	// The first statement of a connection takes longer, so a later one reads the clock.
	var hasSchema, hasNodes bool
	err = q.QueryRow(ctx, `
		SELECT current_setting('server_version_num')::int / 10000, current_database(), current_user, pg_is_in_recovery(),
			current_setting('transaction_read_only')::bool, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
				- coalesce(current_setting('reserved_connections', true)::int, 0),
			to_regclass('goose_db_version') IS NOT NULL, to_regclass('nodes') IS NOT NULL`).Scan(
		&s.Major, &s.Database, &s.User, &s.Replica, &s.ReadOnly, &s.CanMigrate, &s.MaxConns, &hasSchema, &hasNodes)
	if err == nil && hasSchema {
		err = q.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&s.Schema)
	}
	if err == nil && hasNodes {
		err = q.QueryRow(ctx, "SELECT count(*) FROM nodes WHERE seen_at > clock_timestamp() - interval '1 minute'").Scan(&s.Nodes)
	}
	var there time.Time
	began := now()
	if err == nil {
		err = q.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&there)
	}
	if err != nil {
		return s, fmt.Errorf("database: %w", err)
	}
	s.Uncertainty = now().Sub(began) / 2
	s.Skew = there.Sub(began.Add(s.Uncertainty))
	return s, nil
}

// lastMigration returns the version to which Migrate leads.
func lastMigration() (last int64, err error) {
	names, err := fs.Glob(embedded, "migrations/*.sql")
	for _, name := range names {
		version, fault := goose.NumericComponent(name)
		last, err = max(last, version), cmp.Or(err, fault)
	}
	return last, err
}
