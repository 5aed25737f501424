package trunks

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
)

// others are the organizations that a trunk may be lent to: those of the operator.
// Of others nobody learns that they are there.
func others(r *frame.Request) []string {
	var all []string
	for _, s := range r.Session.Seats {
		if s.OrgID != r.Org() {
			all = append(all, s.Name)
		}
	}
	return all
}

func (Trunks) askLend(r *frame.Request) (frame.Page, error) {
	t, err := find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	p := frame.Page{Template: "form.html", Title: "Lend " + t.Name, Crumbs: above(of(t)), Lead: "The other organization makes subgroups of its own on it; these limits hold for all of them together."}
	to := others(r)
	if len(to) == 0 {
		return p, &frame.ProblemError{Status: 409, Title: "There is nobody to lend it to", Text: "A trunk is lent to organizations in which you have a role too; parley apply lends to others."}
	}
	p.Data = r.Form(frame.Form{Submit: "Lend", Cancel: r.URL("trunks/" + t.ID), Fields: []frame.Field{
		{Name: "to", Label: "Organization", Kind: frame.Select, Options: frame.Options(to...)},
		{Name: "caller_numbers", Label: "Caller numbers", Kind: frame.Area, Rows: 3, Code: true, Optional: true, Help: "Of the trunk’s, one a line; left empty it is all of them."},
		{Name: "concurrent_calls", Label: "Calls at a time", Kind: frame.Number, Optional: true, Min: "0", Help: "Left empty there is no limit."},
		{Name: "calls_per_minute", Label: "Calls a minute", Kind: frame.Number, Optional: true, Min: "0"},
	}})
	return p, nil
}

// given are the grants by which an organization lends its trunks, as a file would
// give them.
func lent(r *frame.Request, q db.Querier) ([]apply.Grant, []trunks.Lending, error) {
	all, err := trunks.Lendings(r.Context(), q, r.Org())
	var grants []apply.Grant
	var out []trunks.Lending
	for _, l := range all {
		if l.OrgID == r.Org() {
			continue
		}
		out = append(out, l)
		grants = append(grants, apply.Grant{Trunk: l.TrunkName, To: l.Borrower, CallerNumbers: l.CallerNumbers, ConcurrentCalls: l.ConcurrentCalls, CallsPerMinute: l.CallsPerMinute})
	}
	return grants, out, err
}

func (Trunks) lend(r *frame.Request) (frame.Done, error) {
	g := apply.Grant{To: r.Text("to"), CallerNumbers: *listed(r, "caller_numbers")}
	if !slices.Contains(others(r), g.To) {
		return frame.Done{}, frame.Invalid("to", "Choose one of the list.")
	}
	var err error
	if g.ConcurrentCalls, err = integer(r, "concurrent_calls"); err != nil {
		return frame.Done{}, err
	}
	if g.CallsPerMinute, err = integer(r, "calls_per_minute"); err != nil {
		return frame.Done{}, err
	}
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		t, fault := find(r, q)
		if fault != nil {
			return operator.Entry{}, fault
		}
		g.Trunk = t.Name
		all, _, fault := lent(r, q)
		if fault != nil {
			return operator.Entry{}, fault
		}
		all = append(slices.DeleteFunc(all, func(o apply.Grant) bool { return o.Trunk == g.Trunk && o.To == g.To }), g)
		after := map[string]any{"trunk": g.Trunk, "to": g.To, "caller_numbers": g.CallerNumbers, "concurrent_calls": g.ConcurrentCalls, "calls_per_minute": g.CallsPerMinute}
		return operator.Entry{Action: "grant.save", Object: t.ID, After: after}, r.Apply(q, apply.Organization{Name: r.Seat.Name, Grants: &all})
	})
	return frame.Done{To: "trunks/" + r.ID(), Say: "The trunk is lent to " + g.To + "."}, err
}

// ending reads the grant that a page is about, and the others.
func ending(r *frame.Request, q db.Querier) (trunks.Lending, []apply.Grant, error) {
	grants, out, err := lent(r, q)
	if err != nil {
		return trunks.Lending{}, nil, err
	}
	at := slices.IndexFunc(out, func(l trunks.Lending) bool { return l.ID == r.ID() })
	if at < 0 {
		return trunks.Lending{}, nil, frame.ErrMissing
	}
	return out[at], slices.Delete(grants, at, at+1), nil
}

func (Trunks) askEnd(r *frame.Request) (frame.Page, error) {
	l, _, err := ending(r, r.DB())
	return frame.Page{
		Template: "form.html", Title: "Take " + l.TrunkName + " back", Crumbs: above(),
		Lead: strings.TrimSpace(l.Borrower + " dials through it no more, and its subgroups on it are gone."),
		Data: r.Form(frame.Form{Submit: "Take it back", Danger: true, Cancel: r.URL("trunks/" + l.TrunkID)}),
	}, err
}

func (Trunks) end(r *frame.Request) (frame.Done, error) {
	to := ""
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		l, rest, err := ending(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		to = "trunks/" + l.TrunkID
		return operator.Entry{Action: "grant.end", Object: l.ID, Before: map[string]any{"trunk": l.TrunkName, "to": l.Borrower}}, r.Apply(q, apply.Organization{Name: r.Seat.Name, Grants: &rest})
	})
	return frame.Done{To: to, Say: "The trunk is lent no more."}, err
}
