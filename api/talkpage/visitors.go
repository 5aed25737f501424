package talkpage

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
)

const (
	maxCallDuration = 10 * time.Minute // longest call
	turnGrace       = 5 * time.Minute  // time added to the validity of ICE credentials
)

// Tickets creates join tokens for browsers.
type Tickets interface {
	// Ticket returns the join data: a token that is valid until expires, and ICE servers that are
	// valid until until.
	Ticket(callID string, expires, until time.Time) map[string]any
}

// Visitors creates calls for visitors of the page.
type Visitors struct {
	Agents    []config.TalkAgent // agents that visitors may choose
	DB        db.Querier
	Admission *admission.Controller
	Tickets   Tickets
}

// Names returns the names of the agents.
func (v *Visitors) Names() []string {
	var names []string
	for _, a := range v.Agents {
		names = append(names, a.Name)
	}
	return names
}

// Call implements Caller.
func (v *Visitors) Call(ctx context.Context, agent string) (map[string]any, error) {
	for _, a := range v.Agents {
		if a.Name == agent {
			return v.call(ctx, a)
		}
	}
	return nil, &RefusedError{
		Status:  http.StatusNotFound,
		Code:    string(control.CodeAgentNotFound),
		Message: "this agent is not available on this page",
	}
}

func (v *Visitors) call(ctx context.Context, a config.TalkAgent) (map[string]any, error) {
	org, err := apikeys.FindOrganization(ctx, v.DB, a.Org)
	if err != nil {
		return nil, err
	}
	order := admission.WebOrder{
		Agent: a.Name, Client: "browser", MaxDurationS: int(maxCallDuration / time.Second),
		Metadata: map[string]any{"source": "talk"},
	}
	c, t, err := v.Admission.PlaceWeb(ctx, org, order, func(context.Context, db.Querier, control.Call, admission.Ticket) error { return nil })
	if refused, ok := errors.AsType[*control.Error](err); ok {
		return nil, &RefusedError{
			Status: http.StatusServiceUnavailable, Code: string(refused.Code), Message: refused.Message,
			RetryAfter: refused.RetryAfter,
		}
	}
	if err != nil {
		return nil, err
	}
	ticket := v.Tickets.Ticket(c.ID, t.Expires, t.Expires.Add(maxCallDuration+turnGrace))
	ticket["call_id"], ticket["agent_id"], ticket["expires_at"] = c.ID, c.AgentName, t.Expires.Unix()
	return ticket, nil
}
