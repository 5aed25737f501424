package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// overdueBatch is the number of contacts per transaction.
const overdueBatch = 100

// Overdue returns and locks calls whose contacts have waited for the analysis longer
// than after, by the database's clock. It skips contacts that another transaction
// holds.
func (Attempts) Overdue(ctx context.Context, tx pgx.Tx, after time.Duration) ([]string, error) {
	return db.Collect(ctx, tx, "contacts", pgx.RowTo[string], `
		SELECT call_id FROM contacts WHERE state = 'awaiting' AND awaiting_since <= clock_timestamp() - $1::interval AND call_id IS NOT NULL
		ORDER BY awaiting_since LIMIT $2 FOR UPDATE SKIP LOCKED`, after, overdueBatch)
}
