package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/db"
)

// Channel is the Postgres channel for notifications of new deliveries.
const Channel = "parley_webhooks"

// Calls reads calls and their transcripts. *store.Store implements it.
type Calls interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	Transcript(ctx context.Context, callID string) (control.Transcript, error)
}

// Notifier is an event handler that adds a delivery for each endpoint.
type Notifier struct {
	Type  string // one of Types; CallAnalyzed is only for calls with a conversation
	Pool  *pgxpool.Pool
	Calls Calls
	View  callview.View
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
}

// A Payload is the body of a delivery.
type Payload struct {
	Type           string         `json:"type"`
	Event          string         `json:"event"`
	EventID        string         `json:"event_id"`
	Timestamp      int64          `json:"timestamp"`
	OrganizationID string         `json:"organization_id"`
	CallID         string         `json:"call_id"`
	Metadata       map[string]any `json:"metadata"`
	// Call is a callview.Call, or a callview.Summary if the endpoint is thin.
	Call any `json:"call" schema:"Call,CallSummary"`
}

// HandleEvent implements control.EventHandler. A repeated event adds nothing, because an endpoint gets only one
// delivery of each type for a call.
func (n *Notifier) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	if n.Type == CallAnalyzed && !e.HadConversation() {
		return nil
	}
	endpoints, err := db.Collect(ctx, n.Pool, "webhook endpoints", func(row pgx.CollectableRow) (e Endpoint, err error) {
		return e, row.Scan(&e.ID, &e.Thin)
	}, `
		SELECT e.id, e.thin FROM webhook_endpoints e JOIN calls c ON c.org_id = e.org_id
		WHERE c.id = $1 AND e.disabled_at IS NULL AND $2 = ANY (e.events) AND (e.agents = '{}' OR
			coalesce((SELECT a.name FROM agents a WHERE a.id = c.agent_id AND a.org_id = c.org_id), c.agent_name) = ANY (e.agents)) ORDER BY e.id`, e.CallID, n.Type)
	if err != nil {
		return err
	}
	if len(endpoints) == 0 {
		return nil
	}
	c, err := n.Calls.Call(ctx, "", e.CallID)
	if err != nil {
		return err
	}
	words, err := n.Calls.Transcript(ctx, c.ID)
	if err != nil {
		return err
	}
	now := time.Now()
	if n.Now != nil {
		now = n.Now()
	}
	return db.Tx(ctx, n.Pool, func(tx pgx.Tx) error {
		for _, endpoint := range endpoints {
			if err := n.enqueue(ctx, tx, endpoint, c, words, e, now); err != nil {
				return fmt.Errorf("enqueue webhook: %w", err)
			}
		}
		_, err := tx.Exec(ctx, "SELECT pg_notify($1, '')", Channel)
		return err
	})
}

func (n *Notifier) enqueue(
	ctx context.Context, tx pgx.Tx, to Endpoint, c control.Call, words control.Transcript, e control.Event,
	now time.Time,
) error {
	id := control.NewID("evt_", now)
	var shown any = n.View.Summary(c)
	if !to.Thin {
		shown = n.View.Call(c, words)
	}
	body, err := json.Marshal(Payload{
		Type: n.Type, Event: n.Type, EventID: id, Timestamp: e.At.Unix(), OrganizationID: c.OrgID, CallID: c.ID,
		Metadata: metadata(c), Call: shown,
	})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO webhook_deliveries (id, endpoint_id, call_id, type, payload, next_at, created_at, org_id)
		VALUES ($1, $2, $3, $4, $5, $6, $6, $7)
		ON CONFLICT (endpoint_id, call_id, type) DO NOTHING`, id, to.ID, c.ID, n.Type, body, now, c.OrgID)
	return err
}

// metadata returns the client's metadata and the ids of the call's contact, campaign and import.
func metadata(c control.Call) map[string]any {
	m := map[string]any{}
	maps.Copy(m, c.Metadata)
	for k, v := range map[string]string{"contact_id": c.ContactID, "campaign_id": c.CampaignID, "import_id": c.ImportID} {
		if v != "" {
			m[k] = v
		}
	}
	if c.CampaignID != "" {
		m["attempt"] = c.Attempt
	}
	return m
}
