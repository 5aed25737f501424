package failover

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// byOperator stands for an operator in the list of missing nodes.
const byOperator = "operator"

// Holds counts the calls that are held after the database reverted to an older state, and names the nodes for which
// they wait.
type Holds struct {
	Open       bool      `json:"open"`        // dialing has resumed
	Since      time.Time `json:"since"`       // time of the revert; 1970 if there was none
	Behind     time.Time `json:"behind"`      // time of the state to which the database reverted; 1970 if it is not known
	Expected   []string  `json:"expected"`    // nodes that have not reported yet
	Missing    []string  `json:"missing"`     // nodes that did not report in time
	Restored   bool      `json:"restored"`    // the database was restored from a backup
	ByOperator bool      `json:"by_operator"` // an operator holds the calls; see Hold
	Calls      int       `json:"calls"`       // number of held calls
	Campaigns  int       `json:"campaigns"`   // number of held campaigns
	Facts      int       `json:"facts"`       // number of lost calls of which only the sending is known
}

// ReadHolds reads which calls are held. If no node has checked the current timeline yet, Open is false.
func ReadHolds(ctx context.Context, q db.Querier) (h Holds, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce(e.opened_at IS NOT NULL, false), coalesce(nullif(e.since, '-infinity'), 'epoch'), coalesce(e.behind, 'epoch'), coalesce(e.expected, '{}'), coalesce(e.missing, '{}'),
			CASE WHEN e.missing <> '{}' THEN (SELECT count(*) FROM attempts WHERE state IN ('scheduled', 'claimed') AND created_at < e.since) ELSE 0 END,
			CASE WHEN e.missing <> '{}' THEN (SELECT count(*) FROM campaigns WHERE status = 'running' AND launched_at < e.since) ELSE 0 END,
			(SELECT count(*) FROM sent_facts WHERE number_hash <> '')
		FROM (SELECT database_timeline() AS timeline) t LEFT JOIN database_epochs e USING (timeline)`).
		Scan(&h.Open, &h.Since, &h.Behind, &h.Expected, &h.Missing, &h.Calls, &h.Campaigns, &h.Facts)
	for _, list := range []*[]string{&h.Expected, &h.Missing} {
		h.Restored = h.Restored || slices.Contains(*list, restored)
		h.ByOperator = h.ByOperator || slices.Contains(*list, byOperator)
		*list = slices.DeleteFunc(*list, func(name string) bool { return name == restored || name == byOperator })
	}
	return h, db.Wrap(err, "failed to read held calls")
}

// Release allows dialing of held calls. It also allows the use of the numbers and Idempotency-Keys of lost calls. It
// returns false if nothing was held.
func Release(ctx context.Context, q interface {
	db.Querier
	Begin(ctx context.Context) (pgx.Tx, error)
}, by string,
) (released bool, err error) {
	err = pgx.BeginFunc(ctx, q, func(tx pgx.Tx) error {
		held, fault := tx.Exec(ctx, `
			UPDATE database_epochs SET missing = '{}',
				released_at = clock_timestamp(), released_by = $1
			WHERE timeline = database_timeline() AND opened_at IS NOT NULL AND missing <> '{}'`, by)
		if fault != nil {
			return fault
		}
		// Keep the rows. Without them, Monitor.Allow would take the journal entries of these calls for a new revert.
		facts, fault := tx.Exec(ctx, "UPDATE sent_facts SET number_hash = '', key_hash = '' WHERE number_hash <> ''")
		released = held.RowsAffected()+facts.RowsAffected() > 0
		return fault
	})
	if err != nil {
		return false, fmt.Errorf("failed to release held calls: %w", err)
	}
	return released, nil
}

// Hold holds all calls that were ordered and all campaigns that were launched before now, until Release. It is for a
// database that was restored in a way that nodes cannot detect.
func Hold(ctx context.Context, q db.Querier) error {
	_, err := q.Exec(ctx, `
		INSERT INTO database_epochs (timeline, epoch, behind, expected) VALUES (database_timeline(), $1, (SELECT max(seen_at) FROM database_epochs), ARRAY[$2])
		ON CONFLICT (timeline) DO UPDATE SET epoch = $1, since = clock_timestamp(), opened_at = NULL, missing = '{}', released_at = NULL,
			expected = ARRAY(SELECT DISTINCT x FROM unnest(database_epochs.expected || database_epochs.missing || $2::text) x)`,
		control.NewID("", time.Now()), byOperator)
	return db.Wrap(err, "failed to hold calls")
}
