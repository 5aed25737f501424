package store

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// Actions of the log.
const (
	Created     = "created"
	WasLaunched = "launched"
	WasPaused   = "paused"
	WasResumed  = "resumed"
	WasCanceled = "cancelled"
	Opened      = "opened" // starts_at came
	WasEnded    = "completed"
	CallsAdded  = "calls_added"
	CallsBarred = "calls_refused"
	Withdrawn   = "withdrawn"
	OptedOut    = "opted_out" // somebody asked not to be called again
)

// An Entry is a line of a campaign's log.
type Entry struct {
	Action       string
	Via          campaigns.Via
	KeyID, Actor string
	Detail       string
	At           time.Time
}

// Log keeps what was done to a campaign, for good.
func (s *Store) Log(ctx context.Context, q db.Querier, c campaigns.Campaign, e Entry) error {
	_, err := q.Exec(ctx, `
		INSERT INTO campaign_log (org_id, campaign_id, action, status, via, api_key_id, actor, detail, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, c.OrgID, c.ID, e.Action, c.Status, e.Via, e.KeyID, e.Actor, e.Detail, e.At)
	if err != nil {
		return fmt.Errorf("log of the campaign: %w", err)
	}
	return nil
}
