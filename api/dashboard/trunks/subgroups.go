package trunks

import (
	"errors"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
)

// ground is what a subgroup stands on: a trunk of the organization, or one that is
// lent to it.
func ground(r *frame.Request, q db.Querier, trunkID string) (trunks.Lending, error) {
	t, err := trunks.ByID(r.Context(), q, r.Org(), trunkID)
	if err == nil {
		return trunks.Lending{Grant: trunks.Grant{TrunkID: t.ID, CallerNumbers: t.CallerNumbers}, TrunkName: t.Name}, nil
	}
	if !errors.Is(err, trunks.ErrUnknown) {
		return trunks.Lending{}, err
	}
	lent, err := trunks.Lendings(r.Context(), q, r.Org())
	if err != nil {
		return trunks.Lending{}, err
	}
	at := slices.IndexFunc(lent, func(l trunks.Lending) bool { return l.OrgID == r.Org() && l.TrunkID == trunkID })
	if at < 0 {
		return trunks.Lending{}, frame.ErrMissing
	}
	return lent[at], nil
}

// back is the page of a trunk, which those have who own it.
func back(g trunks.Lending) string {
	if g.Lender != "" {
		return "trunks"
	}
	return "trunks/" + g.TrunkID
}

func subgroupFields(r *frame.Request, s trunks.Route) ([]frame.Field, error) {
	names, err := agents.Names(r.Context(), r.DB(), r.Org())
	return []frame.Field{
		{Name: "agents", Label: "Agents", Kind: frame.Boxes, Options: frame.Options(names...), Values: s.Agents, Optional: true, Help: "Those that may dial through it."},
		{Name: "allowed_destinations", Label: "Destinations", Kind: frame.Area, Rows: 3, Code: true, Value: strings.Join(s.AllowedDestinations, "\n"), Optional: true, Placeholder: "1", Help: "First digits of the numbers that may be called, without +, one a line. Without any, no number may be called."},
		{Name: "caller_numbers", Label: "Caller numbers", Kind: frame.Area, Rows: 3, Code: true, Value: strings.Join(s.CallerNumbers, "\n"), Optional: true, Help: "Left empty, those of the trunk."},
		{Name: "dial_prefix", Label: "Digits before the number", Value: s.DialPrefix, Optional: true},
		{Name: "concurrent_calls", Label: "Calls at a time", Kind: frame.Number, Value: field.Whole(s.ConcurrentCalls), Min: "1"},
		{Name: "calls_per_minute", Label: "Calls a minute", Kind: frame.Number, Value: field.Whole(s.CallsPerMinute), Min: "1"},
	}, err
}

func (Trunks) askSubgroup(r *frame.Request) (frame.Page, error) {
	g, err := ground(r, r.DB(), r.ID())
	if err != nil {
		return frame.Page{}, err
	}
	fields, err := subgroupFields(r, trunks.Route{Subgroup: trunks.Subgroup{ConcurrentCalls: trunks.DefaultConcurrent, CallsPerMinute: trunks.DefaultPerMinute}})
	return frame.Page{Template: "form.html", Title: "New subgroup on " + g.TrunkName, Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Create", Cancel: r.URL(back(g)), Fields: append([]frame.Field{{Name: "name", Label: "Name", Placeholder: "default", Help: "It cannot be changed later."}}, fields...),
	})}, err
}

func (Trunks) createSubgroup(r *frame.Request) (frame.Done, error) {
	name, wrong := field.Name(r)
	if wrong != nil {
		return frame.Done{}, wrong
	}
	to := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		g, err := ground(r, q, r.ID())
		if err != nil {
			return operator.Entry{}, err
		}
		to = back(g)
		if _, have := trunks.FindSubgroup(r.Context(), q, r.Org(), g.TrunkID, name); !errors.Is(have, trunks.ErrUnknown) {
			if have == nil {
				have = frame.Invalid("name", "There is a subgroup of this name already.")
			}
			return operator.Entry{}, have
		}
		return saveSubgroup(r, q, g, name, nil)
	})
	return frame.Done{To: to, Say: "The subgroup is there."}, err
}

// saveSubgroup applies the form to a subgroup, and logs what differs from before.
func saveSubgroup(r *frame.Request, q db.Querier, g trunks.Lending, name string, before *trunks.Route) (operator.Entry, error) {
	prefix, names := r.Text("dial_prefix"), r.All("agents")
	concurrent, err := integer(r, "concurrent_calls")
	if err != nil {
		return operator.Entry{}, err
	}
	minute, err := integer(r, "calls_per_minute")
	if err != nil {
		return operator.Entry{}, err
	}
	s := apply.Subgroup{
		Name: name, DialPrefix: &prefix, AllowedDestinations: listed(r, "allowed_destinations"), CallerNumbers: listed(r, "caller_numbers"),
		Agents: &names, ConcurrentCalls: &concurrent, CallsPerMinute: &minute,
	}
	o := apply.Organization{Name: r.Seat.Name}
	if g.Lender == "" {
		o.Trunks = []apply.Trunk{{Name: g.TrunkName, Subgroups: []apply.Subgroup{s}}}
	} else {
		o.GrantedTrunks = &[]apply.GrantedTrunk{{Trunk: g.TrunkName, Of: g.Lender, Subgroups: []apply.Subgroup{s}}}
	}
	if err = r.Apply(q, o); err != nil {
		return operator.Entry{}, err
	}
	is, err := trunks.FindSubgroup(r.Context(), q, r.Org(), g.TrunkID, name)
	if err != nil {
		return operator.Entry{}, err
	}
	e := operator.Entry{Action: "subgroup.create", Object: is.ID}
	was := map[string]any{}
	if before != nil {
		e.Action, was = "subgroup.change", plainSubgroup(*before)
	}
	old, now := operator.Changed(was, plainSubgroup(trunks.Route{Subgroup: is, TrunkName: g.TrunkName, Agents: names}))
	if before != nil && len(now) == 0 {
		return operator.Entry{}, nil
	}
	e.Before, e.After = old, now
	return e, nil
}

func plainSubgroup(s trunks.Route) map[string]any {
	return map[string]any{
		"trunk": s.TrunkName, "name": s.Name, "dial_prefix": s.DialPrefix, "allowed_destinations": s.AllowedDestinations, "caller_numbers": s.CallerNumbers,
		"concurrent_calls": s.ConcurrentCalls, "calls_per_minute": s.CallsPerMinute, "agents": append([]string{}, s.Agents...),
	}
}

// subgroup reads the subgroup that a page is about, and what it stands on.
func subgroup(r *frame.Request, q db.Querier) (s trunks.Route, g trunks.Lending, err error) {
	all, err := trunks.Routes(r.Context(), q, r.Org(), "")
	if err != nil {
		return s, g, err
	}
	at := slices.IndexFunc(all, func(s trunks.Route) bool { return s.ID == r.ID() })
	if at < 0 {
		return s, g, frame.ErrMissing
	}
	g, err = ground(r, q, all[at].TrunkID)
	return all[at], g, err
}

func (Trunks) askEdit(r *frame.Request) (frame.Page, error) {
	s, g, err := subgroup(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	fields, err := subgroupFields(r, s)
	return frame.Page{Template: "form.html", Title: "Edit " + s.Name, Lead: "A subgroup of " + g.TrunkName + ". It counts from the next call on.", Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Save", Cancel: r.URL(back(g)), Fields: fields, Of: plainSubgroup(s),
	})}, err
}

func (Trunks) changeSubgroup(r *frame.Request) (frame.Done, error) {
	to := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		s, g, err := subgroup(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(plainSubgroup(s)); err != nil {
			return operator.Entry{}, err
		}
		to = back(g)
		return saveSubgroup(r, q, g, s.Name, &s)
	})
	return frame.Done{To: to, Say: "The subgroup is saved."}, err
}

func (Trunks) askDrop(r *frame.Request) (frame.Page, error) {
	s, g, err := subgroup(r, r.DB())
	return frame.Page{
		Template: "form.html", Title: "Delete " + s.Name, Crumbs: above(), Lead: "Agents dial through it no more; campaigns that name it are held. " + frame.Plural(s.Live, "call is", "calls are") + " queued or on.",
		Data: r.Form(frame.Form{Submit: "Delete the subgroup", Danger: true, Cancel: r.URL(back(g))}),
	}, err
}

func (Trunks) drop(r *frame.Request) (frame.Done, error) {
	to := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		s, g, err := subgroup(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		to = back(g)
		return operator.Entry{Action: "subgroup.delete", Object: s.ID, Before: plainSubgroup(s)}, trunks.RemoveSubgroup(r.Context(), q, r.Org(), s.ID)
	})
	return frame.Done{To: to, Say: "The subgroup is deleted."}, err
}
