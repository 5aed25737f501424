// Package trunks shows an organization's carriers: how calls go through them, the
// subgroups of agents on them, and to whom they are lent.
package trunks

import (
	"embed"
	"io/fs"
	"maps"
	"slices"

	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/search"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

//go:embed pages/*.html
var files embed.FS

// Trunks is the room of carriers.
type Trunks struct {
	// Standing says how a trunk is: up, down, and so on; nil does not know.
	Standing func(media.Trunk) string
}

// Room returns its pages.
func (t Trunks) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "trunks", Files: pages,
		Links: []frame.Link{{Section: "Calling", Label: "Trunks", Path: "trunks"}},
		Routes: []frame.Route{
			{Path: "trunks", Look: t.list},
			{Path: "trunks/new", Look: t.askNew, Change: t.create, Anew: []string{"password"}},
			{Path: "trunks/{id}", Look: t.show},
			{Path: "trunks/{id}/edit", Look: t.ask, Change: t.change, Anew: []string{"password"}},
			{Path: "trunks/{id}/call", Look: t.askCall, Change: t.call},
			{Path: "trunks/{id}/delete", Look: t.askDelete, Change: t.remove},
			{Path: "trunks/{id}/subgroup", Look: t.askSubgroup, Change: t.createSubgroup},
			{Path: "trunks/{id}/lend", Needs: operator.Owner, Look: t.askLend, Change: t.lend},
			{Path: "subgroups/{id}/edit", Look: t.askEdit, Change: t.changeSubgroup},
			{Path: "subgroups/{id}/delete", Look: t.askDrop, Change: t.drop},
			{Path: "grants/{id}/end", Needs: operator.Owner, Look: t.askEnd, Change: t.end},
		},
	}, err
}

func above(more ...frame.Link) []frame.Link {
	return append([]frame.Link{{Label: "Trunks", Path: "trunks"}}, more...)
}

func of(t trunks.Trunk) frame.Link { return frame.Link{Label: t.Name, Path: "trunks/" + t.ID} }

// A row is a trunk, and what there is on it.
type row struct {
	trunks.Trunk

	Standing string
	Routes   []trunks.Route
	Lent     []trunks.Lending
}

// on is what an organization has on a trunk.
func (t Trunks) on(trunk trunks.Trunk, routes []trunks.Route, lent []trunks.Lending) row {
	v := row{Trunk: trunk}
	if t.Standing != nil {
		v.Standing = t.Standing(trunk.Line())
	}
	for _, s := range routes {
		if s.TrunkID == trunk.ID {
			v.Routes = append(v.Routes, s)
		}
	}
	for _, l := range lent {
		if l.TrunkID == trunk.ID {
			v.Lent = append(v.Lent, l)
		}
	}
	return v
}

// Live is how many calls are queued or on.
func (v row) Live() (n int) {
	for _, s := range v.Routes {
		n += s.Live
	}
	return n
}

func (t Trunks) list(r *frame.Request) (frame.Page, error) {
	all, err := trunks.List(r.Context(), r.DB(), r.Org())
	if err != nil {
		return frame.Page{}, err
	}
	routes, lent, err := around(r)
	if err != nil {
		return frame.Page{}, err
	}
	all, looked := search.In(all, r.Query("q"), "name", func(t trunks.Trunk) string { return t.Name })
	own := make([]row, len(all))
	for i, trunk := range all {
		own[i] = t.on(trunk, routes, lent)
	}
	borrowed := []row{}
	for _, l := range lent {
		if l.OrgID == r.Org() {
			borrowed = append(borrowed, row{Trunk: trunks.Trunk{ID: l.TrunkID, Name: l.TrunkName}, Routes: slices.DeleteFunc(slices.Clone(routes), func(s trunks.Route) bool { return s.TrunkID != l.TrunkID }), Lent: []trunks.Lending{l}})
		}
	}
	return frame.Page{
		Template: "list.html", Title: "Trunks", Lead: "The carriers that calls leave by, and the subgroups through which agents may dial on them.",
		Actions: []frame.Link{{Label: "New trunk", Path: "trunks/new"}},
		Data:    map[string]any{"Own": own, "Borrowed": borrowed, "Search": looked},
	}, nil
}

func around(r *frame.Request) (routes []trunks.Route, lent []trunks.Lending, err error) {
	if routes, err = trunks.Routes(r.Context(), r.DB(), r.Org(), ""); err == nil {
		lent, err = trunks.Lendings(r.Context(), r.DB(), r.Org())
	}
	return routes, lent, err
}

func find(r *frame.Request, q db.Querier) (trunks.Trunk, error) {
	return trunks.ByID(r.Context(), q, r.Org(), r.ID())
}

func (t Trunks) show(r *frame.Request) (frame.Page, error) {
	trunk, err := find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	routes, lent, err := around(r)
	at := "trunks/" + trunk.ID
	return frame.Page{
		Template: "show.html", Title: trunk.Name, Lead: trunk.Proxy, Crumbs: above(),
		Actions: []frame.Link{
			{Label: "Add a subgroup", Path: at + "/subgroup"},
			{Label: "Test call", Path: at + "/call"},
			{Label: "Edit", Path: at + "/edit"},
			{Label: "Lend", Path: at + "/lend", Needs: operator.Owner},
			{Label: "Delete", Path: at + "/delete"},
		},
		Data: t.on(trunk, routes, lent),
	}, err
}

func (Trunks) askNew(r *frame.Request) (frame.Page, error) {
	name := frame.Field{Name: "name", Label: "Name", Placeholder: "main", Help: "It cannot be changed later."}
	return frame.Page{Template: "form.html", Title: "New trunk", Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Create", Cancel: r.URL("trunks"), Fields: append([]frame.Field{name}, fields(trunks.Trunk{})...),
	})}, nil
}

func (Trunks) create(r *frame.Request) (frame.Done, error) {
	name, wrong := field.Name(r)
	if wrong != nil {
		return frame.Done{}, wrong
	}
	id := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		all, err := trunks.List(r.Context(), q, r.Org())
		if err != nil {
			return operator.Entry{}, err
		}
		if slices.ContainsFunc(all, func(t trunks.Trunk) bool { return t.Name == name }) {
			return operator.Entry{}, frame.Invalid("name", "There is a trunk of this name already.")
		}
		e, err := save(r, q, name, nil)
		id = e.Object
		return e, err
	})
	return frame.Done{To: "trunks/" + id, Say: "The trunk is there. Calls need a subgroup on it."}, err
}

func (Trunks) ask(r *frame.Request) (frame.Page, error) {
	t, err := find(r, r.DB())
	return frame.Page{Template: "form.html", Title: "Edit " + t.Name, Crumbs: above(of(t)), Lead: "It counts from the next call on.", Data: r.Form(frame.Form{
		Submit: "Save", Cancel: r.URL("trunks/" + t.ID), Fields: fields(t), Of: sealed(t),
	})}, err
}

func (Trunks) change(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		t, err := find(r, q)
		if err == nil {
			err = r.Same(sealed(t))
		}
		if err != nil {
			return operator.Entry{}, err
		}
		return save(r, q, t.Name, &t)
	})
	return frame.Done{To: "trunks/" + r.ID(), Say: "The trunk is saved."}, err
}

// save applies the form to a trunk, and logs what differs from before.
func save(r *frame.Request, q db.Querier, name string, before *trunks.Trunk) (operator.Entry, error) {
	t, err := given(r, name)
	if err != nil {
		return operator.Entry{}, err
	}
	if err = r.Apply(q, apply.Organization{Name: r.Seat.Name, Trunks: []apply.Trunk{t}}); err != nil {
		return operator.Entry{}, err
	}
	is, err := trunks.Find(r.Context(), q, r.Org(), name)
	if err != nil {
		return operator.Entry{}, err
	}
	if before != nil && before.Password != "" && t.Password == nil && elsewhere(*before, is) {
		return operator.Entry{}, frame.Invalid("password", "Give it again: it was given for the proxies of before.")
	}
	e := operator.Entry{Action: "trunk.create", Object: is.ID}
	was := map[string]any{}
	if before != nil {
		e.Action, was = "trunk.change", plain(*before)
	}
	old, now := operator.Changed(was, plain(is))
	if t.Password != nil {
		now["password"] = "changed"
	}
	if before != nil && !maps.Equal(before.Settings.Headers, is.Settings.Headers) {
		now["values of headers"] = "changed"
	}
	if before != nil && len(now) == 0 {
		return operator.Entry{}, nil
	}
	e.Before, e.After = old, now
	return e, nil
}

// elsewhere tells whether a trunk has a proxy that it did not have before.
func elsewhere(before, is trunks.Trunk) bool {
	had := append([]string{before.Proxy}, before.Settings.Backups...)
	return slices.ContainsFunc(append([]string{is.Proxy}, is.Settings.Backups...), func(p string) bool { return !slices.Contains(had, p) })
}

// plain is a trunk as the log keeps it, without its password; the values of headers
// may be secrets too.
func plain(t trunks.Trunk) map[string]any {
	names := []string{}
	for name := range t.Settings.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	s := t.Settings
	s.Headers = nil
	return map[string]any{
		"name": t.Name, "proxy": t.Proxy, "username": t.Username, "caller_numbers": t.CallerNumbers, "calls_per_second": t.CallsPerSecond,
		"concurrent_calls": t.ConcurrentCalls, "settings": s, "headers": names,
	}
}

// sealed is a trunk with its secrets, for its form to know whether it is another by now.
func sealed(t trunks.Trunk) []any { return []any{plain(t), string(t.Password), t.Settings.Headers} }

func (Trunks) askDelete(r *frame.Request) (frame.Page, error) {
	t, err := find(r, r.DB())
	return frame.Page{
		Template: "form.html", Title: "Delete " + t.Name, Crumbs: above(of(t)),
		Lead: "Its subgroups go with it, those of organizations that it is lent to as well. Calls that are on go on; calls that wait are not dialled.",
		Data: r.Form(frame.Form{Submit: "Delete the trunk", Danger: true, Cancel: r.URL("trunks/" + t.ID)}),
	}, err
}

func (Trunks) remove(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		t, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "trunk.delete", Object: t.ID, Before: plain(t)}, trunks.Remove(r.Context(), q, r.Org(), t.ID)
	})
	return frame.Done{To: "trunks", Say: "The trunk is deleted."}, err
}
