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

// A PastAttempt is a call of a campaign that ended before it is stored.
type PastAttempt struct {
	Number       string // E.164
	CallID       string
	Outcome      retry.Outcome
	Began, Ended time.Time
}

// SavePast completes a draft whose calls have been made already, one to each contact. It returns the contact of each call.
func (s *Store) SavePast(ctx context.Context, c campaigns.Campaign, via campaigns.Via, all []PastAttempt) (map[string]string, error) {
	contacts := map[string]string{}
	return contacts, db.Tx(ctx, s.Pool, func(tx pgx.Tx) error {
		for _, a := range all {
			state := campaigns.Exhausted
			if a.Outcome.IsConversation() {
				state = campaigns.Done
			}
			var contact string
			err := tx.QueryRow(ctx, `
				WITH k AS (UPDATE contacts SET state = $3, attempts = 1, call_id = $4, updated_at = $7 WHERE campaign_id = $1 AND number = $2 RETURNING *)
				INSERT INTO contact_attempts (contact_id, n, org_id, campaign_id, number, call_id, outcome, began_at, ended_at, zone)
				SELECT id, 1, org_id, campaign_id, number, $4, $5, $6, $7, coalesce(zones[1], '') FROM k RETURNING contact_id`,
				c.ID, a.Number, state, a.CallID, a.Outcome, a.Began, a.Ended).Scan(&contact)
			if err != nil {
				return fmt.Errorf("contact %s: %w", a.Number, err)
			}
			contacts[a.CallID] = contact
			c.CompletedAt = a.Ended
		}
		return s.completePast(ctx, tx, c, via)
	})
}

// completePast marks a campaign as launched when it was created, and as completed.
func (s *Store) completePast(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, via campaigns.Via) error {
	_, version, err := s.Agent(ctx, tx, c.OrgID, c.AgentName)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, tx, "complete the campaign", `
		UPDATE campaigns SET status = 'completed', launched_via = $2, agent_version = $3, launched_at = created_at, completed_at = $4, updated_at = $4
		WHERE id = $1`, c.ID, via, version, c.CompletedAt)
	c.Status = campaigns.Running
	launched := s.AddLog(ctx, tx, c, LogEntry{Action: WasLaunched, Via: via, At: c.CreatedAt})
	c.Status = campaigns.Completed
	return errors.Join(err, launched, s.AddLog(ctx, tx, c, LogEntry{Action: WasEnded, Via: campaigns.BySystem, At: c.CompletedAt}))
}
