package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Collect runs a query and scans its rows. The argument what is the prefix of its errors.
func Collect[T any](ctx context.Context, q Querier, what string, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	var all []T
	if err == nil {
		all, err = pgx.CollectRows(rows, scan)
	}
	return all, Wrap(err, what)
}

// Each runs a query. It scans each row into the pointers and then calls do. The argument what is the prefix of its
// errors.
func Each(ctx context.Context, q Querier, what string, into []any, do func() error, sql string, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err == nil {
		_, err = pgx.ForEachRow(rows, into, do)
	}
	return Wrap(err, what)
}

// Exec runs a statement and returns the number of affected rows. The argument what is the prefix of its errors.
func Exec(ctx context.Context, q Querier, what, sql string, args ...any) (int, error) {
	tag, err := q.Exec(ctx, sql, args...)
	return int(tag.RowsAffected()), Wrap(err, what)
}

// RowError converts the error of reading one row. If there is no row, it returns the error missing. Otherwise it
// returns Wrap(err, what).
func RowError(err error, what string, missing error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return missing
	}
	return Wrap(err, what)
}

// Wrap returns err with the prefix what. If err is nil or the prefix is empty, it returns err unchanged.
func Wrap(err error, what string) error {
	if err == nil || what == "" {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
