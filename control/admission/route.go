package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/trunks"
)

// route is the subgroup of a call with its trunk. If the trunk is borrowed, it includes the grant; otherwise the
// grant is empty.
type route struct {
	id, trunkID, prefix string
	allowed             []string // prefixes of allowed destinations
	numbers             trunks.Numbers
	limits              limits
	settings            trunks.Settings
	err                 error // set if the settings are invalid
	grant               grant
	attached            bool
}

// limits holds concurrent calls and calls per minute: the maximum, or the current numbers.
type limits struct{ concurrent, perMinute int }

// grant is the loan of a trunk. Its id is empty if the organization owns the trunk. A limit of 0 means no limit.
type grant struct {
	id     string
	limits limits
}

// columns returns the scan targets of a row of listSQL, or of routesSQL after the index.
func (r *route) columns(settings any) []any {
	return []any{
		&r.id, &r.trunkID, &r.prefix, &r.allowed, &r.numbers.Subgroup, &r.numbers.Trunk, &r.limits.concurrent, &r.limits.perMinute, settings,
		&r.grant.id, &r.numbers.Grant, &r.grant.limits.concurrent, &r.grant.limits.perMinute, &r.attached,
	}
}

// choose returns the route whose subgroup the agent is attached to. It refuses the call if there is no such route, or
// more than one. named means that the request for the call names a subgroup.
func choose(all []route, named bool) (route, error) {
	if named && len(all) == 0 {
		return route{}, control.Refuse(control.CodeSubgroupNotFound, "subgroup not found")
	}
	var attached []route
	for _, r := range all {
		if r.attached {
			attached = append(attached, r)
		}
	}
	switch len(attached) {
	case 0:
		return route{}, control.Refuse(control.CodeAgentNotInSubgroup, "the agent is not attached to a matching subgroup")
	case 1:
		return attached[0], nil
	default:
		return route{}, control.Refuse(control.CodeAgentSubgroupAmbig, "the agent is attached to several subgroups; name one with route_id")
	}
}

// namedAgents is the maximum number of agents that an error lists.
const namedAgents = 10

// explain makes a refusal with CodeAgentNotInSubgroup more precise: the agent is unknown, or it has no subgroup. It
// names only agents of the ordering organization.
func (d *Controller) explain(ctx context.Context, l *lookup, refusal error) error {
	var exists bool
	var names []string
	err := d.orderPool().QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM agents WHERE org_id = $1 AND name = $2),
			ARRAY(SELECT name FROM agents WHERE org_id = $1 ORDER BY name LIMIT $3)`, l.org, l.order.Agent, namedAgents+1).Scan(&exists, &names)
	if err != nil {
		return refusal // refuse without details
	}
	text := fmt.Sprintf("agent %q is not attached to any subgroup", l.order.Agent)
	switch {
	case exists && l.order.RouteID != "":
		text = fmt.Sprintf("agent %q is not attached to this subgroup", l.order.Agent)
	case exists:
	case len(names) == 0:
		text = fmt.Sprintf("no agent %q: this organization has no agents", l.order.Agent)
	default:
		more := ""
		if len(names) > namedAgents {
			names, more = names[:namedAgents], ", …"
		}
		text = fmt.Sprintf("no agent %q in this organization (agents: %s%s)", l.order.Agent, strings.Join(names, ", "), more)
	}
	return control.Refuse(control.CodeAgentNotInSubgroup, text)
}

// caller returns the requested caller number if the route allows it. Without a request it returns the route's first
// number.
func (r route) caller(asked string) (string, error) {
	pool := r.numbers.Usable()
	if asked == "" {
		if len(pool) == 0 {
			return "", control.Refuse(control.CodeCallerNumberDenied, "the route has no caller number")
		}
		return pool[0], nil
	}
	if number, ok := trunks.FindNumber(pool, asked); ok {
		return number, nil
	}
	// A borrower must not learn which other numbers the lender has.
	if _, ok := trunks.FindNumber(r.numbers.Granted(), asked); r.grant.id != "" && !ok {
		return "", control.Refuse(control.CodeCallerNumberGrant, "the grant does not include this caller number")
	}
	return "", control.Refuse(control.CodeCallerNumberDenied, "the route does not allow this caller number")
}

// usableAgent is a published agent that passed the checks of an order.
type usableAgent struct {
	id, voicemail string
	version       int
	recording     bool
	longest       time.Duration
}

// use checks that the order has values for all variables of the agent's texts, and copies the agent's settings.
func (a *usableAgent) use(d agents.Definition, o Order) error {
	if missing := d.Missing(d.Values(o.Name, o.Variables)); len(missing) > 0 {
		return &MissingVariablesError{missing}
	}
	a.voicemail, a.recording, a.longest = d.Voicemail, d.Recording, time.Duration(d.MaxDurationS)*time.Second
	return nil
}
