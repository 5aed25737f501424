package talk

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/place"
)

const (
	longestVisit = 10 * time.Minute // of talking
	turnGrace    = 5 * time.Minute  // that the credentials of ICE servers outlive it
)

// Tickets makes what browsers join their calls with.
type Tickets interface {
	// Ticket returns the members of an answer that let a browser in, with a token
	// that is good until expires, and ICE servers that are until until.
	Ticket(callID string, expires, until time.Time) map[string]any
}

// Visitors orders calls of who comes to the page.
type Visitors struct {
	Agents  []config.TalkAgent // that they may talk with
	DB      db.Querier
	Desk    *place.Desk
	Tickets Tickets
}

// Names are those of the agents.
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
	return nil, &RefusedError{Status: http.StatusNotFound, Code: string(control.CodeAgentNotFound), Message: "this agent is not to be talked with here"}
}

func (v *Visitors) call(ctx context.Context, a config.TalkAgent) (map[string]any, error) {
	org, err := access.FindOrganization(ctx, v.DB, a.Org)
	if err != nil {
		return nil, err
	}
	order := place.WebOrder{Agent: a.Name, Client: "browser", MaxDurationS: int(longestVisit / time.Second), Metadata: map[string]any{"source": "talk"}}
	c, t, err := v.Desk.PlaceWeb(ctx, org, order, func(context.Context, db.Querier, control.Call, place.Ticket) error { return nil })
	if refused, ok := errors.AsType[*control.Error](err); ok {
		return nil, &RefusedError{Status: http.StatusServiceUnavailable, Code: string(refused.Code), Message: refused.Message, RetryAfter: refused.RetryAfter}
	}
	if err != nil {
		return nil, err
	}
	ticket := v.Tickets.Ticket(c.ID, t.Expires, t.Expires.Add(longestVisit+turnGrace))
	ticket["call_id"], ticket["agent_id"], ticket["expires_at"] = c.ID, c.AgentName, t.Expires.Unix()
	return ticket, nil
}
