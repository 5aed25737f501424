package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control/db"
)

// Begin records the attempt to call a contact. It changes nothing and returns false unless the campaign runs, the
// contact is pending and due, and its number is in no other attempt. The campaign cannot be paused, nor the contact
// withdrawn, until the transaction ends.
func (Attempts) Begin(ctx context.Context, tx pgx.Tx, contactID, callID string, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		WITH one AS (
			SELECT k.id, coalesce(CASE WHEN c.use_contact_timezone THEN nullif(k.timezone, '') END, k.zones[1], '') AS zone FROM contacts k JOIN campaigns c ON c.id = k.campaign_id
			WHERE k.id = $1 AND k.state = 'pending' AND c.status = 'running'
				AND (k.next_attempt_at IS NULL OR k.next_attempt_at <= $3)
				AND (k.not_before IS NULL OR k.not_before <= $3) AND (k.not_after IS NULL OR k.not_after > $3)
				AND NOT EXISTS (SELECT FROM contact_attempts x WHERE x.org_id = k.org_id AND x.number = k.number AND x.ended_at IS NULL)
			FOR UPDATE OF k FOR SHARE OF c
		), taken AS (
			UPDATE contacts k SET state = 'in_call', attempts = attempts + 1, next_attempt_at = NULL, governing_cap = '', call_id = $2, updated_at = $3
			FROM one WHERE k.id = one.id
			RETURNING k.*, one.zone
		)
		INSERT INTO contact_attempts (contact_id, n, org_id, campaign_id, number, call_id, began_at, zone)
		SELECT t.id, coalesce((SELECT max(n) FROM contact_attempts WHERE contact_id = t.id), 0) + 1, t.org_id, t.campaign_id, t.number, $2, $3, t.zone FROM taken t`,
		contactID, callID, now)
	if err != nil {
		return false, fmt.Errorf("contact %s: %w", contactID, err)
	}
	return tag.RowsAffected() == 1, nil
}

// Revert undoes Begin for a call that never began. The attempt does not count, and the next one is due after wait.
// Revert reports whether the call had an attempt.
func (Attempts) Revert(ctx context.Context, tx pgx.Tx, callID string, wait time.Duration, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		WITH gone AS (DELETE FROM contact_attempts WHERE call_id = $1 AND ended_at IS NULL RETURNING contact_id)
		UPDATE contacts k SET state = 'pending', attempts = attempts - 1, due_at = $3, updated_at = $2
		FROM gone WHERE k.id = gone.contact_id AND k.state = 'in_call'`, callID, now, now.Add(wait))
	if err != nil {
		return false, fmt.Errorf("attempt of call %s: %w", callID, err)
	}
	return tag.RowsAffected() > 0, nil
}

// An Attempt is a call to a contact, with the contact and its campaign. It is locked
// until the transaction ends.
type Attempt struct {
	ContactID string
	State     campaigns.State
	Ended     time.Time // end of the call; zero while it is active
	IsProbe   bool      // the call probes its route
	Tried     retry.History
	Campaign  campaigns.Campaign
	OptedOut  bool // the callee opted out during the call
}

// OfCall returns the attempt of a call, nil for a call without a campaign.
func (Attempts) OfCall(ctx context.Context, tx pgx.Tx, callID string) (*Attempt, error) {
	var t Attempt
	var orgID, campaignID string
	var ended *time.Time
	var outcome *string
	err := tx.QueryRow(ctx, `
		SELECT k.id, k.org_id, k.campaign_id, k.state, k.attempts, x.outcome, x.ended_at, x.probe, EXISTS (SELECT FROM opt_outs o WHERE o.call_id = $1)
		FROM contact_attempts x JOIN contacts k ON k.id = x.contact_id WHERE x.call_id = $1 FOR UPDATE OF k, x`, callID).Scan(
		&t.ContactID, &orgID, &campaignID, &t.State, &t.Tried.Dials, &outcome, &ended, &t.IsProbe, &t.OptedOut)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // no attempt
	}
	if err != nil {
		return nil, fmt.Errorf("contact of call %s: %w", callID, err)
	}
	if ended != nil {
		t.Ended, t.Tried.Outcome = ended.UTC(), retry.Outcome(*outcome)
	}
	if t.Tried.Uses, err = countRedials(ctx, tx, t.ContactID); err != nil {
		return nil, err
	}
	t.Campaign, err = getCampaign(ctx, tx, orgID, campaignID, false)
	return &t, err
}

// countRedials counts the redials of a contact by rule.
func countRedials(ctx context.Context, tx pgx.Tx, contactID string) (map[int]int, error) {
	all := map[int]int{}
	var rule, n int
	return all, db.Each(ctx, tx, "attempts", []any{&rule, &n}, func() error {
		all[rule] = n
		return nil
	}, "SELECT rule, count(*) FROM contact_attempts WHERE contact_id = $1 AND rule >= 0 GROUP BY rule", contactID)
}

// SaveOutcome stores the outcome of a call and the next state of its contact.
func (Attempts) SaveOutcome(
	ctx context.Context, tx pgx.Tx, callID string, o retry.Outcome, ended time.Time, next campaigns.Next, now time.Time,
) error {
	_, err := db.Exec(ctx, tx, "outcome of call "+callID, `
		WITH x AS (UPDATE contact_attempts SET outcome = $2, ended_at = $3, rule = $4 WHERE call_id = $1 RETURNING contact_id)
		UPDATE contacts k SET state = $5, next_attempt_at = $6::timestamptz, due_at = coalesce($6::timestamptz, $7), updated_at = $7::timestamptz, reason = $8, fault = $9,
			awaiting_since = CASE WHEN $5 = 'awaiting' THEN clock_timestamp() END FROM x WHERE k.id = x.contact_id`,
		callID, o, ended, next.Rule, next.State, nullTime(next.At), now, next.Reason, next.Fault)
	return err
}

// SaveFault stores the fault of Parley or a provider that broke an answered call.
func (Attempts) SaveFault(ctx context.Context, tx pgx.Tx, callID, reason string) error {
	_, err := db.Exec(ctx, tx, "fault of call "+callID, "UPDATE contact_attempts SET fault = $2 WHERE call_id = $1", callID, reason)
	return err
}

// overdueBatch is the number of contacts per transaction.
const overdueBatch = 100

// Overdue returns and locks calls whose contacts have waited longer than after for the analysis, by the database's
// clock. It skips contacts that another transaction holds.
func (Attempts) Overdue(ctx context.Context, tx pgx.Tx, after time.Duration) ([]string, error) {
	return db.Collect(ctx, tx, "contacts", pgx.RowTo[string], `
		SELECT call_id FROM contacts WHERE state = 'awaiting' AND awaiting_since <= clock_timestamp() - $1::interval AND call_id IS NOT NULL
		ORDER BY awaiting_since LIMIT $2 FOR UPDATE SKIP LOCKED`, after, overdueBatch)
}
