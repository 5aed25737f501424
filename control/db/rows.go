package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Collect runs a query and scans its rows. Its errors begin with what, the name of the data.
func Collect[T any](ctx context.Context, q Querier, what string, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	var all []T
	if err == nil {
		all, err = pgx.CollectRows(rows, scan)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return all, nil
}

// Each runs a query and calls do for each row after scanning it into the given pointers. Its errors begin with what, the
// name of the data.
func Each(ctx context.Context, q Querier, what string, into []any, do func() error, sql string, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err == nil {
		_, err = pgx.ForEachRow(rows, into, do)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Exec runs a statement and returns the number of affected rows. Its errors begin with what, the name of the data.
func Exec(ctx context.Context, q Querier, what, sql string, args ...any) (int, error) {
	tag, err := q.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return int(tag.RowsAffected()), nil
}
