package place

import (
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/trunks"
)

// A route is the subgroup through which a call goes, its trunk, and the grant
// by which that was lent; the grant is empty for a trunk of one's own.
type route struct {
	id, trunkID, prefix string
	allowed             []string // destinations
	numbers             trunks.Numbers
	limits              limits
	settings            trunks.Settings
	err                 error // the settings cannot be read
	grant               grant
	attached            bool
}

// limits are most calls at a time and in a minute.
type limits struct{ concurrent, perMinute int }

// A grant has an empty id where the trunk is not lent; limits of 0 are none.
type grant struct {
	id     string
	limits limits
}

// columns are where a row of routesSQL goes, behind what it is of; the trunk's
// settings go where it is said.
func (r *route) columns(settings any) []any {
	return []any{
		&r.id, &r.trunkID, &r.prefix, &r.allowed, &r.numbers.Subgroup, &r.numbers.Trunk, &r.limits.concurrent, &r.limits.perMinute, settings,
		&r.grant.id, &r.numbers.Grant, &r.grant.limits.concurrent, &r.grant.limits.perMinute, &r.attached,
	}
}

// choose picks from the subgroups that the order leaves open.
func choose(all []route, named bool) (route, error) {
	if named && len(all) == 0 {
		return route{}, control.Refuse(control.CodeSubgroupNotFound, "no such subgroup")
	}
	var attached []route
	for _, r := range all {
		if r.attached {
			attached = append(attached, r)
		}
	}
	switch len(attached) {
	case 0:
		return route{}, control.Refuse(control.CodeAgentNotInSubgroup, "the agent is attached to no such subgroup")
	case 1:
		return attached[0], nil
	default:
		return route{}, control.Refuse(control.CodeAgentSubgroupAmbig, "the agent is attached to several subgroups; name one with route_id")
	}
}

// caller returns the number to show: the one asked for, where the route has
// it, else the route's first.
func (r route) caller(asked string) (string, error) {
	pool := r.numbers.Shown()
	if asked == "" {
		if len(pool) == 0 {
			return "", control.Refuse(control.CodeCallerNumberDenied, "the route has no caller number")
		}
		return pool[0], nil
	}
	if number, ok := trunks.Among(pool, asked); ok {
		return number, nil
	}
	// A borrower learns of no other number of the lender's.
	if _, ok := trunks.Among(r.numbers.Lent(), asked); r.grant.id != "" && !ok {
		return "", control.Refuse(control.CodeCallerNumberGrant, "the trunk was lent without this caller number")
	}
	return "", control.Refuse(control.CodeCallerNumberDenied, "the route may not show this caller number")
}

// A ready is an agent that may be used.
type ready struct {
	id, voicemail string
	version       int
	recording     bool
	longest       time.Duration
}

// use holds the texts of an agent to what an order fills in.
func (a *ready) use(d agents.Definition, o Order) error {
	if missing := d.Missing(d.Values(o.Name, o.Variables)); len(missing) > 0 {
		return &MissingError{missing}
	}
	a.voicemail, a.recording, a.longest = d.Voicemail, d.Recording, time.Duration(d.MaxDurationS)*time.Second
	return nil
}
