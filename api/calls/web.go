package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
)

// Tickets creates join tokens for browsers.
type Tickets interface {
	// Ticket returns the members of the response for joining: the token, valid until expires, the
	// URL, and ICE servers whose credentials are valid until until. The same arguments give the
	// same result.
	Ticket(callID string, expires, until time.Time) map[string]any
}

// A webCall is the response to a request as it is stored, without secrets.
type webCall struct {
	CallID       string `json:"call_id"`
	AgentID      string `json:"agent_id"`
	ExpiresAt    int64  `json:"expires_at"`
	MaxDurationS int    `json:"max_duration_s"`
}

// A ticket describes the response to the client: the stored part, and the members from Tickets.
type ticket struct {
	webCall

	Status             control.Status `json:"status"`
	CallType           string         `json:"call_type"`
	AccessToken        string         `json:"access_token"`
	TokenType          string         `json:"token_type"`
	URL                string         `json:"url"`
	WHIPURL            string         `json:"whip_url"`
	ICEServers         []iceServer    `json:"ice_servers"`
	ICETransportPolicy string         `json:"ice_transport_policy"`
}

type iceServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// turnGrace extends the validity of ICE credentials beyond the call.
const turnGrace = 5 * time.Minute

// CreateWeb answers POST /v1/calls/web.
func (c *Calls) CreateWeb(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	if c.Tickets == nil {
		return control.Refuse(control.CodeVoiceBackend, "web calls are not configured on this server")
	}
	name, err := schema.IdempotencyKey(r)
	if err != nil {
		return err
	}
	slot, answer, err := c.reserveKey(r.Context(), scope(r, key), name, body)
	if err != nil {
		return err
	}
	var call webCall
	if answer != nil {
		w.Header().Set("Idempotent-Replayed", "true")
		err = json.Unmarshal(answer.Body, &call)
	} else if call, err = c.placeWeb(r.Context(), key.OrgID, body, slot); err != nil && slot != nil {
		err = errors.Join(err, c.releaseKey(r.Context(), slot))
	}
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusCreated, c.ticket(call))
	return nil
}

// HasWeb reports whether browsers can call.
func (c *Calls) HasWeb() bool { return c.Tickets != nil }

// PlaceWeb creates a web call without an idempotency key, and returns its join data.
func (c *Calls) PlaceWeb(ctx context.Context, orgID string, body *schema.Body) (map[string]any, error) {
	call, err := c.placeWeb(ctx, orgID, body, nil)
	if err != nil {
		return nil, err
	}
	return c.ticket(call), nil
}

func (c *Calls) placeWeb(ctx context.Context, orgID string, body *schema.Body, slot *idempotency.Slot) (webCall, error) {
	order, err := c.Schemas.WebOrder(body)
	if err != nil {
		return webCall{}, err
	}
	var shown webCall
	_, _, err = c.Admission.PlaceWeb(ctx, orgID, order, func(ctx context.Context, q db.Querier, call control.Call, t admission.Ticket) error {
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
	if missing, ok := errors.AsType[*admission.MissingVariablesError](err); ok {
		return webCall{}, schema.Missing(missing.Variables)
	}
	return shown, err
}

func (c *Calls) ticket(call webCall) map[string]any {
	expires := time.Unix(call.ExpiresAt, 0)
	m := c.Tickets.Ticket(call.CallID, expires, expires.Add(time.Duration(call.MaxDurationS)*time.Second+turnGrace))
	m["call_id"], m["status"], m["call_type"] = call.CallID, control.Queued, control.Web
	m["agent_id"], m["expires_at"], m["max_duration_s"] = call.AgentID, call.ExpiresAt, call.MaxDurationS
	return m
}
