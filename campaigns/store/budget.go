package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/pricing"
)

// SaveBudget writes the budget of a campaign. Nodes read it within a second, because updated_at changes.
func (s *Store) SaveBudget(ctx context.Context, q db.Querier, c campaigns.Campaign) error {
	_, err := db.Exec(ctx, q, "campaign "+c.ID, "UPDATE campaigns SET budget_nano = nullif($2::bigint, 0), updated_at = $3 WHERE id = $1",
		c.ID, int64(c.Budget), c.UpdatedAt)
	return err
}

// ExpectedCost returns the expected cost of the next call of a campaign with a budget. While few calls of the
// campaign have ended, it uses the calls of the whole organization.
func (s *Store) ExpectedCost(ctx context.Context, q db.Querier, c campaigns.Campaign) (pricing.Amount, error) {
	own, err := recentCosts(ctx, q, "org_id = $1 AND campaign_id = $2", c.OrgID, c.ID)
	var all admission.RecentCosts
	if err == nil && !own.IsEnough() {
		all, err = recentCosts(ctx, q, "org_id = $1", c.OrgID)
	}
	if err != nil {
		return 0, fmt.Errorf("costs of %s: %w", c.ID, err)
	}
	return own.Expected(c.Budget, all), nil
}

func recentCosts(ctx context.Context, q db.Querier, where string, args ...any) (r admission.RecentCosts, err error) {
	sql := "SELECT calls, sum, largest FROM " + admission.RecentCostsSQL(where) + " r"
	err = q.QueryRow(ctx, sql, args...).Scan(&r.Calls, &r.Sum, &r.Largest)
	return r, err
}

// spendingSQL sums what the ended calls of a campaign cost, and counts the other calls. An ended call counts in
// both until its outcome is recorded, so that none is missed.
const spendingSQL = `
SELECT (SELECT coalesce(sum(cost_nano), 0)::bigint FROM cost_tallies WHERE owner = $1),
       (SELECT coalesce(sum(n), 0) FROM attempt_tallies WHERE campaign_id = $1 AND outcome = '')`

// QueueSpending queues a query for the spending of a campaign and the count of its calls that have not ended. The
// result is exact if an earlier statement of the transaction locked the campaign's row in campaign_paces.
func QueueSpending(batch *pgx.Batch, campaignID string, s *admission.Spending) {
	batch.Queue(spendingSQL, campaignID).QueryRow(func(row pgx.Row) error { return row.Scan(&s.Spent, &s.Calls) })
}

// Spending returns the spending of a campaign, and the use of its budget if it has one.
func (s *Store) Spending(ctx context.Context, q db.Querier, c campaigns.Campaign) (u admission.Spending, err error) {
	if u.Budget = c.Budget; u.Budget > 0 {
		if u.Expected, err = s.ExpectedCost(ctx, q, c); err != nil {
			return u, err
		}
	}
	if err = q.QueryRow(ctx, spendingSQL, c.ID).Scan(&u.Spent, &u.Calls); err != nil {
		return u, fmt.Errorf("spending of %s: %w", c.ID, err)
	}
	return u, nil
}

// costsKept is how long the costs of an organization are kept. Monthly limits need those of a month.
const costsKept = 62 * 24 * time.Hour

// dayOfSlot is the start of the day of a slot (a quarter of an hour) in the organization's time zone.
const dayOfSlot = "date_trunc('day', %[1]s AT TIME ZONE o.timezone) AT TIME ZONE o.timezone"

// foldDaysSQL merges the slots of each past day of an organization into one row, so that the sum of a month reads few
// rows.
//
//nolint:gochecknoglobals // made once
var foldDaysSQL = fmt.Sprintf(`
WITH gone AS (
	DELETE FROM cost_tallies t USING organizations o
	WHERE o.id = t.owner AND t.slot < clock_timestamp() - interval '2 days' AND t.slot <> `+dayOfSlot+` RETURNING t.owner, `+dayOfSlot+` AS day, t.cost_nano
)
INSERT INTO cost_tallies (owner, slot, cost_nano) SELECT owner, day, sum(cost_nano) FROM gone GROUP BY 1, 2`, "t.slot")

// foldCosts merges the rows of cost tallies, and deletes those that no limit needs.
func foldCosts(ctx context.Context, tx pgx.Tx) error {
	batch := &pgx.Batch{}
	batch.Queue(foldDaysSQL)
	batch.Queue(`
		WITH gone AS (DELETE FROM cost_tallies t USING (SELECT DISTINCT owner, slot FROM cost_tallies WHERE NOT folded) x
			WHERE t.owner = x.owner AND t.slot = x.slot RETURNING t.*)
		INSERT INTO cost_tallies (owner, slot, cost_nano, folded) SELECT owner, slot, sum(cost_nano), true FROM gone GROUP BY 1, 2`)
	batch.Queue("DELETE FROM cost_tallies WHERE slot > '-infinity' AND slot < clock_timestamp() - $1::interval", costsKept)
	return tx.SendBatch(ctx, batch).Close()
}

// repairCostsSQL adds costs that are missing in the tallies because the table was restored from an older backup. It
// repairs organizations with a cost limit day by day, and campaigns with a budget. A tally may exceed the sum of the
// calls, because some calls were deleted. One statement sees one snapshot, so a change in progress is in both the
// calls and the tallies, or in neither.
//
//nolint:gochecknoglobals // made once
var repairCostsSQL = `
WITH limited AS (
	SELECT id, timezone FROM organizations WHERE settings -> 'limits' ?| '{daily_cost,monthly_cost}'
), counted AS (
	SELECT o.id AS owner, ` + fmt.Sprintf(dayOfSlot, "c.created_at") + ` AS slot, sum(c.cost_nano) AS n FROM limited o JOIN calls c ON c.org_id = o.id
	WHERE c.created_at > clock_timestamp() - interval '32 days' AND c.cost_nano > 0 GROUP BY 1, 2
	UNION ALL
	SELECT c.campaign_id, '-infinity'::timestamptz, sum(c.cost_nano) FROM campaigns k JOIN calls c ON c.org_id = k.org_id AND c.campaign_id = k.id
	WHERE k.budget_nano > 0 AND k.status IN ('scheduled', 'running', 'paused') AND c.cost_nano > 0 GROUP BY 1, 2
), tallied AS (
	SELECT o.id AS owner, ` + fmt.Sprintf(dayOfSlot, "t.slot") + ` AS slot, sum(t.cost_nano) AS n FROM limited o JOIN cost_tallies t ON t.owner = o.id GROUP BY 1, 2
	UNION ALL
	SELECT owner, slot, sum(cost_nano) FROM cost_tallies WHERE slot = '-infinity' GROUP BY 1, 2
)
INSERT INTO cost_tallies (owner, slot, cost_nano)
SELECT owner, slot, c.n - coalesce(t.n, 0) FROM counted c LEFT JOIN tallied t USING (owner, slot) WHERE c.n > coalesce(t.n, 0) RETURNING owner`

// repairCosts adds missing costs and returns their organizations and campaigns.
func repairCosts(ctx context.Context, tx pgx.Tx) ([]string, error) {
	// The lock keeps other repairs out.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('tallies', 0))"); err != nil {
		return nil, err
	}
	return db.Collect(ctx, tx, "costs", pgx.RowTo[string], repairCostsSQL)
}
