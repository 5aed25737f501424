package store

import (
	"context"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// Actions of the log.
const (
	Created      = "created"
	WasLaunched  = "launched"
	WasPaused    = "paused"
	WasResumed   = "resumed"
	WasCanceled  = "cancelled"
	WasStarted   = "opened" // starts_at has come
	WasEnded     = "completed"
	CallsAdded   = "calls_added"
	CallsRefused = "calls_refused"
	Withdrawn    = "withdrawn"
	Rescreened   = "rescreened"
	Reopened     = "reopened"  // contacts whose calls broke because of Parley or a provider
	OptedOut     = "opted_out" // contacts opted out
	BudgetSet    = "budget_set"
	Edited       = "edited" // settings of a draft
)

// A LogEntry is a line of a campaign's log.
type LogEntry struct {
	Action       string
	Via          campaigns.Via
	KeyID, Actor string
	Detail       string
	At           time.Time
}

// AddLog stores an action on a campaign permanently.
func (s *Store) AddLog(ctx context.Context, q db.Querier, c campaigns.Campaign, e LogEntry) error {
	_, err := db.Exec(ctx, q, "log of the campaign", `
		INSERT INTO campaign_log (org_id, campaign_id, action, status, via, api_key_id, actor, detail, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, c.OrgID, c.ID, e.Action, c.Status, e.Via, e.KeyID, e.Actor, e.Detail, e.At)
	return err
}
