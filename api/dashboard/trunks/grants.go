package trunks

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
)

// others lists the organizations to which a trunk may be lent: those of which the operator is a
// member. Other organizations stay hidden.
func others(r *ui.Request) []string {
	var all []string
	for _, s := range r.Session.Memberships {
		if s.OrgID != r.Org() {
			all = append(all, s.Name)
		}
	}
	return all
}

func (Trunks) askLend(r *ui.Request) (ui.Page, error) {
	t, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	p := ui.Page{
		Template: "form.html", Title: r.Texts.T("trunks.lend.title", "name", t.Name), Crumbs: crumbs(r.Texts, trunkLink(t)),
		Lead: r.Texts.T("trunks.lend.lead"),
	}
	to := others(r)
	if len(to) == 0 {
		return p, &ui.ProblemError{
			Status: 409,
			Title:  r.Texts.T("trunks.lend.none.title"),
			Text:   r.Texts.T("trunks.lend.none.text"),
		}
	}
	p.Data = r.Form(ui.Form{Submit: r.Texts.T("trunks.lend.submit"), Cancel: r.URL("trunks/" + t.ID), Fields: []ui.Field{
		{Name: "to", Label: r.Texts.T("trunks.lend.to.label"), Kind: ui.Select, Options: ui.Options(to...)},
		{
			Name: "caller_numbers", Label: r.Texts.T("trunks.lend.caller_numbers.label"), Kind: ui.TextArea, Rows: 3, Code: true,
			Optional: true, Help: r.Texts.T("trunks.lend.caller_numbers.help"),
		},
		{
			Name: "concurrent_calls", Label: r.Texts.T("trunks.lend.concurrent_calls.label"), Kind: ui.Number, Optional: true, Min: "0",
			Help: r.Texts.T("trunks.lend.concurrent_calls.help"),
		},
		{Name: "calls_per_minute", Label: r.Texts.T("trunks.lend.calls_per_minute.label"), Kind: ui.Number, Optional: true, Min: "0"},
	}})
	return p, nil
}

// currentGrants returns the organization's grants to others, in the format of parley apply.
func currentGrants(r *ui.Request, q db.Querier) ([]apply.Grant, []trunks.GrantView, error) {
	all, err := trunks.ListGrants(r.Context(), q, r.Org())
	var grants []apply.Grant
	var out []trunks.GrantView
	for _, l := range all {
		if l.OrgID == r.Org() {
			continue
		}
		out = append(out, l)
		grants = append(
			grants,
			apply.Grant{
				Trunk: l.TrunkName, To: l.Borrower, CallerNumbers: l.CallerNumbers,
				ConcurrentCalls: l.ConcurrentCalls, CallsPerMinute: l.CallsPerMinute,
			},
		)
	}
	return grants, out, err
}

func (Trunks) lend(r *ui.Request) (ui.Result, error) {
	g := apply.Grant{To: r.Text("to"), CallerNumbers: *splitList(r, "caller_numbers")}
	if !slices.Contains(others(r), g.To) {
		return ui.Result{}, ui.Invalid("to", r.Texts.T("trunks.lend.invalid.to"))
	}
	var err error
	if g.ConcurrentCalls, err = integer(r, "concurrent_calls"); err != nil {
		return ui.Result{}, err
	}
	if g.CallsPerMinute, err = integer(r, "calls_per_minute"); err != nil {
		return ui.Result{}, err
	}
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		t, fault := find(r, q)
		if fault != nil {
			return operator.Entry{}, fault
		}
		g.Trunk = t.Name
		all, _, fault := currentGrants(r, q)
		if fault != nil {
			return operator.Entry{}, fault
		}
		all = append(slices.DeleteFunc(all, func(o apply.Grant) bool { return o.Trunk == g.Trunk && o.To == g.To }), g)
		after := map[string]any{
			"trunk":            g.Trunk,
			"to":               g.To,
			"caller_numbers":   g.CallerNumbers,
			"concurrent_calls": g.ConcurrentCalls,
			"calls_per_minute": g.CallsPerMinute,
		}
		return operator.Entry{Action: "grant.save", Object: t.ID, After: after}, r.Apply(q, apply.Organization{Name: r.Member.Name, Grants: &all})
	})
	return ui.Result{To: "trunks/" + r.ID(), Notice: r.Texts.T("trunks.lend.notice", "to", g.To)}, err
}

// readGrant reads the grant of a page and the remaining ones.
func readGrant(r *ui.Request, q db.Querier) (trunks.GrantView, []apply.Grant, error) {
	grants, out, err := currentGrants(r, q)
	if err != nil {
		return trunks.GrantView{}, nil, err
	}
	at := slices.IndexFunc(out, func(l trunks.GrantView) bool { return l.ID == r.ID() })
	if at < 0 {
		return trunks.GrantView{}, nil, ui.ErrNotFound
	}
	return out[at], slices.Delete(grants, at, at+1), nil
}

func (Trunks) askEnd(r *ui.Request) (ui.Page, error) {
	l, _, err := readGrant(r, r.DB())
	return ui.Confirm(r, ui.Page{
		Title:  r.Texts.T("trunks.loan.title", "trunk_name", l.TrunkName),
		Crumbs: crumbs(r.Texts, ui.Link{Label: l.TrunkName, Path: "trunks/" + l.TrunkID}),
		Lead:   strings.TrimSpace(r.Texts.T("trunks.loan.lead", "borrower", l.Borrower)),
	}, r.Texts.T("trunks.loan.submit"), "trunks/"+l.TrunkID), err
}

func (Trunks) end(r *ui.Request) (ui.Result, error) {
	to := ""
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		l, rest, err := readGrant(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		to = "trunks/" + l.TrunkID
		return operator.Entry{
			Action: "grant.end", Object: l.ID, Before: map[string]any{"trunk": l.TrunkName, "to": l.Borrower},
		}, r.Apply(q, apply.Organization{Name: r.Member.Name, Grants: &rest})
	})
	return ui.Result{To: to, Notice: r.Texts.T("trunks.loan.notice")}, err
}
