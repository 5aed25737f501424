package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/place"
)

// Tickets makes what browsers join their calls with.
type Tickets interface {
	// Ticket returns the members of the answer that let a browser in: the token,
	// which is good until expires, where to bring it, and the ICE servers, whose
	// credentials are good until until. It is the same each time.
	Ticket(callID string, expires, until time.Time) map[string]any
}

// A webCall is what is kept of the answer to an order: nothing that one could
// join by.
type webCall struct {
	CallID       string `json:"call_id"`
	AgentID      string `json:"agent_id"`
	ExpiresAt    int64  `json:"expires_at"`
	MaxDurationS int    `json:"max_duration_s"`
}

// turnGrace is how long the credentials of ICE servers outlive the call.
const turnGrace = 5 * time.Minute

// CreateWeb answers POST /v1/calls/web.
func (c *Calls) CreateWeb(w http.ResponseWriter, r *http.Request, key access.Key) error {
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	if c.Tickets == nil {
		return control.Refuse(control.CodeVoiceBackend, "web calls are not set up")
	}
	name, err := schema.IdempotencyKey(r)
	if err != nil {
		return err
	}
	slot, answer, err := c.begin(r.Context(), scope(r, key), name, body)
	if err != nil {
		return err
	}
	var call webCall
	if answer != nil {
		w.Header().Set("Idempotent-Replayed", "true")
		err = json.Unmarshal(answer.Body, &call)
	} else if call, err = c.placeWeb(r.Context(), key.OrgID, body, slot); err != nil && slot != nil {
		err = errors.Join(err, c.forget(r.Context(), slot))
	}
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusCreated, c.ticket(call))
	return nil
}

func (c *Calls) placeWeb(ctx context.Context, orgID string, body *schema.Body, slot *idempotency.Slot) (webCall, error) {
	order, err := c.Schemas.WebOrder(body)
	if err != nil {
		return webCall{}, err
	}
	var shown webCall
	_, _, err = c.Desk.PlaceWeb(ctx, orgID, order, func(ctx context.Context, q db.Querier, call control.Call, t place.Ticket) error {
		shown = webCall{call.ID, call.AgentName, t.Expires.Unix(), int(call.MaxDuration / time.Second)}
		if slot == nil {
			return nil
		}
		text, fault := json.Marshal(shown)
		if fault != nil {
			return fmt.Errorf("web call: %w", fault)
		}
		return slot.Settle(ctx, q, idempotency.Answer{Status: http.StatusCreated, Body: text})
	})
	if missing, ok := errors.AsType[*place.MissingError](err); ok {
		return webCall{}, schema.Missing(missing.Variables)
	}
	return shown, err
}

// ticket is the answer to an order.
func (c *Calls) ticket(call webCall) map[string]any {
	expires := time.Unix(call.ExpiresAt, 0)
	m := c.Tickets.Ticket(call.CallID, expires, expires.Add(time.Duration(call.MaxDurationS)*time.Second+turnGrace))
	m["call_id"], m["status"], m["call_type"] = call.CallID, control.Queued, control.Web
	m["agent_id"], m["expires_at"], m["max_duration_s"] = call.AgentID, call.ExpiresAt, call.MaxDurationS
	return m
}
