package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// fewOverdue is how many contacts are settled in one transaction.
const fewOverdue = 100

// Overdue returns calls whose contacts have awaited the analysis for so long, by
// the database's clock. The contacts are locked; those that somebody else looks at
// are left to him.
func (s *Store) Overdue(ctx context.Context, tx pgx.Tx, after time.Duration) ([]string, error) {
	found, err := tx.Query(ctx, `
		SELECT call_id FROM contacts WHERE state = 'awaiting' AND awaiting_since <= clock_timestamp() - $1::interval AND call_id IS NOT NULL
		ORDER BY awaiting_since LIMIT $2 FOR UPDATE SKIP LOCKED`, after, fewOverdue)
	if err != nil {
		return nil, fmt.Errorf("contacts: %w", err)
	}
	all, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("contacts: %w", err)
	}
	return all, nil
}
