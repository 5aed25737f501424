package trunks

import (
	"errors"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
)

// trunkOf returns the trunk of a subgroup: one of the organization, or one lent to it.
func trunkOf(r *ui.Request, q db.Querier, trunkID string) (trunks.GrantView, error) {
	t, err := trunks.ByID(r.Context(), q, r.Org(), trunkID)
	if err == nil {
		return trunks.GrantView{Grant: trunks.Grant{TrunkID: t.ID, CallerNumbers: t.CallerNumbers}, TrunkName: t.Name}, nil
	}
	if !errors.Is(err, trunks.ErrUnknown) {
		return trunks.GrantView{}, err
	}
	lent, err := trunks.ListGrants(r.Context(), q, r.Org())
	if err != nil {
		return trunks.GrantView{}, err
	}
	at := slices.IndexFunc(lent, func(l trunks.GrantView) bool { return l.OrgID == r.Org() && l.TrunkID == trunkID })
	if at < 0 {
		return trunks.GrantView{}, ui.ErrNotFound
	}
	return lent[at], nil
}

// back is the page of a trunk; borrowers can see only the list.
func back(g trunks.GrantView) string {
	if g.Lender != "" {
		return "trunks"
	}
	return "trunks/" + g.TrunkID
}

func crumbsOf(texts *ui.Texts, g trunks.GrantView) []ui.Link {
	if g.Lender != "" {
		return crumbs(texts)
	}
	return crumbs(texts, ui.Link{Label: g.TrunkName, Path: back(g)})
}

func subgroupFields(r *ui.Request, s trunks.Route) ([]ui.Field, error) {
	names, err := agents.Names(r.Context(), r.DB(), r.Org())
	return []ui.Field{
		{
			Name: "agents", Label: r.Texts.T("trunks.subgroup.agents.label"), Kind: ui.Checkboxes, Options: ui.Options(names...),
			Values: s.Agents, Optional: true, Help: r.Texts.T("trunks.subgroup.agents.help"),
		},
		{
			Name: "allowed_destinations", Label: r.Texts.T("trunks.subgroup.allowed_destinations.label"), Kind: ui.TextArea, Rows: 3, Code: true,
			Value: strings.Join(s.AllowedDestinations, "\n"), Optional: true, Placeholder: "US",
			Help: r.Texts.T("trunks.subgroup.allowed_destinations.help"),
		},
		{
			Name: "caller_numbers", Label: r.Texts.T("trunks.subgroup.caller_numbers.label"), Kind: ui.TextArea, Rows: 3, Code: true,
			Value: strings.Join(s.CallerNumbers, "\n"), Optional: true, Help: r.Texts.T("trunks.subgroup.caller_numbers.help"),
		},
		{Name: "dial_prefix", Label: r.Texts.T("trunks.subgroup.dial_prefix.label"), Value: s.DialPrefix, Optional: true},
		{
			Name: "concurrent_calls", Label: r.Texts.T("trunks.subgroup.concurrent_calls.label"), Kind: ui.Number,
			Value: ui.FormatInt(s.ConcurrentCalls), Min: "1",
		},
		{
			Name: "calls_per_minute", Label: r.Texts.T("trunks.subgroup.calls_per_minute.label"), Kind: ui.Number,
			Value: ui.FormatInt(s.CallsPerMinute), Min: "1",
		},
	}, err
}

func (Trunks) askSubgroup(r *ui.Request) (ui.Page, error) {
	g, err := trunkOf(r, r.DB(), r.ID())
	if err != nil {
		return ui.Page{}, err
	}
	fields, err := subgroupFields(
		r,
		trunks.Route{Subgroup: trunks.Subgroup{ConcurrentCalls: trunks.DefaultConcurrent, CallsPerMinute: trunks.DefaultPerMinute}},
	)
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("trunks.subgroup.title", "trunk_name", g.TrunkName), Crumbs: crumbsOf(r.Texts, g),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("trunks.subgroup.submit"), Cancel: r.URL(back(g)),
			Fields: append([]ui.Field{{
				Name: "name", Label: r.Texts.T("trunks.subgroup.name.label"), Placeholder: "default",
				Help: r.Texts.T("trunks.subgroup.name.help"),
			}}, fields...),
		}),
	}, err
}

func (Trunks) createSubgroup(r *ui.Request) (ui.Result, error) {
	name, wrong := ui.ReadName(r)
	if wrong != nil {
		return ui.Result{}, wrong
	}
	to := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		g, err := trunkOf(r, q, r.ID())
		if err != nil {
			return operator.Entry{}, err
		}
		to = back(g)
		if _, have := trunks.FindSubgroup(r.Context(), q, r.Org(), g.TrunkID, name); !errors.Is(have, trunks.ErrUnknown) {
			if have == nil {
				have = ui.Invalid("name", r.Texts.T("trunks.subgroup.invalid.name"))
			}
			return operator.Entry{}, have
		}
		return saveSubgroup(r, q, g, name, nil)
	})
	return ui.Result{To: to, Notice: r.Texts.T("trunks.subgroup.notice")}, err
}

// saveSubgroup applies the form and returns the audit entry with the differences.
func saveSubgroup(r *ui.Request, q db.Querier, g trunks.GrantView, name string, before *trunks.Route) (operator.Entry, error) {
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
		Name: name, DialPrefix: &prefix, AllowedDestinations: splitList(r, "allowed_destinations"), CallerNumbers: splitList(r, "caller_numbers"),
		Agents: &names, ConcurrentCalls: &concurrent, CallsPerMinute: &minute,
	}
	o := apply.Organization{Name: r.Member.Name}
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
		e.Action, was = "subgroup.change", auditSubgroup(*before)
	}
	old, now := operator.Diff(was, auditSubgroup(trunks.Route{Subgroup: is, TrunkName: g.TrunkName, Agents: names}))
	if before != nil && len(now) == 0 {
		return operator.Entry{}, nil
	}
	e.Before, e.After = old, now
	return e, nil
}

func auditSubgroup(s trunks.Route) map[string]any {
	return map[string]any{
		"trunk": s.TrunkName, "name": s.Name, "dial_prefix": s.DialPrefix,
		"allowed_destinations": s.AllowedDestinations, "caller_numbers": s.CallerNumbers,
		"concurrent_calls": s.ConcurrentCalls, "calls_per_minute": s.CallsPerMinute, "agents": append([]string{}, s.Agents...),
	}
}

func subgroup(r *ui.Request, q db.Querier) (s trunks.Route, g trunks.GrantView, err error) {
	all, err := trunks.Routes(r.Context(), q, r.Org(), "")
	if err != nil {
		return s, g, err
	}
	at := slices.IndexFunc(all, func(s trunks.Route) bool { return s.ID == r.ID() })
	if at < 0 {
		return s, g, ui.ErrNotFound
	}
	g, err = trunkOf(r, q, all[at].TrunkID)
	return all[at], g, err
}

func (Trunks) askEdit(r *ui.Request) (ui.Page, error) {
	s, g, err := subgroup(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	fields, err := subgroupFields(r, s)
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("trunks.subgroup.edit.title", "name", s.Name),
		Lead: r.Texts.T("trunks.subgroup.edit.lead", "trunk_name", g.TrunkName), Crumbs: crumbsOf(r.Texts, g),
		Data: r.Form(ui.Form{Submit: r.Texts.T("ui.form.save"), Cancel: r.URL(back(g)), Fields: fields, Of: auditSubgroup(s)}),
	}, err
}

func (Trunks) changeSubgroup(r *ui.Request) (ui.Result, error) {
	to := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		s, g, err := subgroup(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(auditSubgroup(s)); err != nil {
			return operator.Entry{}, err
		}
		to = back(g)
		return saveSubgroup(r, q, g, s.Name, &s)
	})
	return ui.Result{To: to, Notice: r.Texts.T("trunks.subgroup.edit.notice")}, err
}

func (Trunks) askDrop(r *ui.Request) (ui.Page, error) {
	s, g, err := subgroup(r, r.DB())
	return ui.Confirm(r, ui.Page{
		Title: r.Texts.T("trunks.subgroup.delete.title", "name", s.Name), Crumbs: crumbsOf(r.Texts, g),
		Lead: r.Texts.T("trunks.subgroup.delete.lead", "count", s.Live),
	}, r.Texts.T("trunks.subgroup.delete.submit"), back(g)), err
}

func (Trunks) drop(r *ui.Request) (ui.Result, error) {
	to := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		s, g, err := subgroup(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		to = back(g)
		return operator.Entry{
			Action: "subgroup.delete", Object: s.ID, Before: auditSubgroup(s),
		}, trunks.RemoveSubgroup(r.Context(), q, r.Org(), s.ID)
	})
	return ui.Result{To: to, Notice: r.Texts.T("trunks.subgroup.delete.notice")}, err
}
