// Package trunks has the pages of trunks, their subgroups and grants to other organizations.
package trunks

import (
	"embed"
	"io/fs"
	"maps"
	"slices"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

//go:embed pages/*.html
var files embed.FS

// Trunks serves the pages of trunks.
type Trunks struct {
	// TrunkStatus returns the state of a trunk, such as up or down; nil means that no state is
	// known.
	TrunkStatus func(media.Trunk) string
	// Currency is that of costs.
	Currency string
}

// Module returns the pages.
func (t Trunks) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages")
	return ui.Module{
		Name: "trunks", Files: pages,
		Links: []ui.Link{{Section: "ui.menu.calling", Label: "ui.menu.trunks", Path: "trunks"}},
		Routes: []ui.Route{
			{Path: "trunks", Show: t.list},
			{Path: "trunks/new", Show: t.askNew, Submit: t.create, NotRefilled: []string{"password"}},
			{Path: "carriers", Role: operator.Operator, Show: t.listCarriers},
			{Path: "carriers/{id}", Show: t.askCarrier, Submit: t.connect, NotRefilled: []string{"password"}},
			{Path: "trunks/{id}", Show: t.show},
			{Path: "trunks/{id}/edit", Show: t.ask, Submit: t.change, NotRefilled: []string{"password"}},
			{Path: "trunks/{id}/call", Show: t.askCall, Submit: t.call},
			{Path: "trunks/{id}/delete", Show: t.askDelete, Submit: t.remove},
			{Path: "trunks/{id}/subgroup", Show: t.askSubgroup, Submit: t.createSubgroup},
			{Path: "trunks/{id}/lend", Role: operator.Owner, Show: t.askLend, Submit: t.lend},
			{Path: "subgroups/{id}/edit", Show: t.askEdit, Submit: t.changeSubgroup},
			{Path: "subgroups/{id}/delete", Show: t.askDrop, Submit: t.drop},
			{Path: "grants/{id}/end", Role: operator.Owner, Show: t.askEnd, Submit: t.end},
		},
	}, err
}

func crumbs(texts *ui.Texts, more ...ui.Link) []ui.Link {
	return append([]ui.Link{{Label: texts.T("trunks.link.trunks"), Path: "trunks"}}, more...)
}

func trunkLink(t trunks.Trunk) ui.Link { return ui.Link{Label: t.Name, Path: "trunks/" + t.ID} }

type row struct {
	trunks.Trunk

	Status   string
	Routes   []trunks.Route
	Lent     []trunks.GrantView
	Currency string
}

func (t Trunks) newRow(trunk trunks.Trunk, routes []trunks.Route, lent []trunks.GrantView) row {
	v := row{Trunk: trunk, Currency: t.Currency}
	if t.TrunkStatus != nil {
		v.Status = t.TrunkStatus(trunk.MediaTrunk())
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

// Live counts queued and active calls.
func (v row) Live() (n int) {
	for _, s := range v.Routes {
		n += s.Live
	}
	return n
}

func (t Trunks) list(r *ui.Request) (ui.Page, error) {
	all, err := trunks.List(r.Context(), r.DB(), r.Org())
	if err != nil {
		return ui.Page{}, err
	}
	routes, lent, err := around(r)
	if err != nil {
		return ui.Page{}, err
	}
	all, looked := ui.SearchIn(all, r.Query("q"), r.Texts.T("ui.search.name"), func(t trunks.Trunk) string { return t.Name })
	own := make([]row, len(all))
	for i, trunk := range all {
		own[i] = t.newRow(trunk, routes, lent)
	}
	borrowed := []row{}
	for _, l := range lent {
		if l.OrgID == r.Org() {
			borrowed = append(
				borrowed,
				row{
					Trunk:  trunks.Trunk{ID: l.TrunkID, Name: l.TrunkName},
					Routes: slices.DeleteFunc(slices.Clone(routes), func(s trunks.Route) bool { return s.TrunkID != l.TrunkID }),
					Lent:   []trunks.GrantView{l},
				},
			)
		}
	}
	return ui.Page{
		Template: "list.html", Title: r.Texts.T("trunks.list.title"), Lead: r.Texts.T("trunks.list.lead"),
		Actions: []ui.Link{
			{Label: r.Texts.T("trunks.link.connect_carrier"), Path: "carriers"},
			{Label: r.Texts.T("trunks.link.new_trunk"), Path: "trunks/new"},
		},
		Data: map[string]any{"Own": own, "Borrowed": borrowed, "Search": looked},
	}, nil
}

func around(r *ui.Request) (routes []trunks.Route, lent []trunks.GrantView, err error) {
	if routes, err = trunks.Routes(r.Context(), r.DB(), r.Org(), ""); err == nil {
		lent, err = trunks.ListGrants(r.Context(), r.DB(), r.Org())
	}
	return routes, lent, err
}

func find(r *ui.Request, q db.Querier) (trunks.Trunk, error) {
	return trunks.ByID(r.Context(), q, r.Org(), r.ID())
}

func (t Trunks) show(r *ui.Request) (ui.Page, error) {
	trunk, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	routes, lent, err := around(r)
	at := "trunks/" + trunk.ID
	return ui.Page{
		Template: "show.html", Title: trunk.Name, Lead: trunk.Proxy, Crumbs: crumbs(r.Texts),
		Actions: []ui.Link{
			{Label: r.Texts.T("trunks.link.add_subgroup"), Path: at + "/subgroup"},
			{Label: r.Texts.T("trunks.link.test_call"), Path: at + "/call"},
			{Label: r.Texts.T("trunks.link.edit"), Path: at + "/edit"},
			{Label: r.Texts.T("trunks.link.lend"), Path: at + "/lend", Role: operator.Owner},
			{Label: r.Texts.T("trunks.link.delete"), Path: at + "/delete"},
		},
		Data: t.newRow(trunk, routes, lent),
	}, err
}

func (t Trunks) askNew(r *ui.Request) (ui.Page, error) {
	all, err := newFields(r.Texts, t.Currency)
	return ui.Page{Template: "form.html", Title: r.Texts.T("trunks.new.title"), Crumbs: crumbs(r.Texts), Data: r.Form(ui.Form{
		Submit: r.Texts.T("trunks.new.submit"), Cancel: r.URL("trunks"), Fields: all,
	})}, err
}

func (Trunks) create(r *ui.Request) (ui.Result, error) {
	name, wrong := ui.ReadName(r)
	if wrong != nil {
		return ui.Result{}, wrong
	}
	id := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		all, err := trunks.List(r.Context(), q, r.Org())
		if err != nil {
			return operator.Entry{}, err
		}
		if slices.ContainsFunc(all, func(t trunks.Trunk) bool { return t.Name == name }) {
			return operator.Entry{}, ui.Invalid("name", r.Texts.T("trunks.new.invalid.name"))
		}
		e, err := save(r, q, name, nil)
		id = e.Object
		return e, err
	})
	return ui.Result{To: "trunks/" + id, Notice: r.Texts.T("trunks.new.notice")}, err
}

func (t Trunks) ask(r *ui.Request) (ui.Page, error) {
	one, err := find(r, r.DB())
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("trunks.edit.title", "name", one.Name), Crumbs: crumbs(r.Texts, trunkLink(one)),
		Lead: r.Texts.T("trunks.edit.lead"),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("ui.form.save"), Cancel: r.URL("trunks/" + one.ID), Fields: fields(r.Texts, one, t.Currency),
			Of: withSecrets(one),
		}),
	}, err
}

func (Trunks) change(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		t, err := find(r, q)
		if err == nil {
			err = r.Same(withSecrets(t))
		}
		if err != nil {
			return operator.Entry{}, err
		}
		return save(r, q, t.Name, &t)
	})
	return ui.Result{To: "trunks/" + r.ID(), Notice: r.Texts.T("trunks.edit.notice")}, err
}

func save(r *ui.Request, q db.Querier, name string, before *trunks.Trunk) (operator.Entry, error) {
	t, err := readTrunk(r, name, before == nil)
	if err != nil {
		return operator.Entry{}, err
	}
	if err = r.Apply(q, apply.Organization{Name: r.Member.Name, Trunks: []apply.Trunk{t}}); err != nil {
		return operator.Entry{}, err
	}
	is, err := trunks.Find(r.Context(), q, r.Org(), name)
	if err != nil {
		return operator.Entry{}, err
	}
	if before != nil && before.Password != "" && t.Password == nil && hasNewProxy(*before, is) {
		return operator.Entry{}, ui.Invalid("password", r.Texts.T("trunks.form.invalid.password"))
	}
	e := operator.Entry{Action: "trunk.create", Object: is.ID}
	was := map[string]any{}
	if before != nil {
		e.Action, was = "trunk.change", auditView(*before)
	}
	old, now := operator.Diff(was, auditView(is))
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

// hasNewProxy reports whether a trunk has a new proxy.
func hasNewProxy(before, is trunks.Trunk) bool {
	had := append([]string{before.Proxy}, before.Settings.Backups...)
	return slices.ContainsFunc(append([]string{is.Proxy}, is.Settings.Backups...), func(p string) bool { return !slices.Contains(had, p) })
}

// auditView is a trunk in the audit log, without password and header values.
func auditView(t trunks.Trunk) map[string]any {
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

// withSecrets is a trunk with its secrets, used to detect concurrent edits.
func withSecrets(t trunks.Trunk) []any {
	return []any{auditView(t), string(t.Password), t.Settings.Headers}
}

func (Trunks) askDelete(r *ui.Request) (ui.Page, error) {
	t, err := find(r, r.DB())
	return ui.Confirm(r, ui.Page{
		Title: r.Texts.T("trunks.delete.title", "name", t.Name), Crumbs: crumbs(r.Texts, trunkLink(t)),
		Lead: r.Texts.T("trunks.delete.lead"),
	}, r.Texts.T("trunks.delete.submit"), "trunks/"+t.ID), err
}

func (Trunks) remove(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		t, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "trunk.delete", Object: t.ID, Before: auditView(t)}, trunks.Remove(r.Context(), q, r.Org(), t.ID)
	})
	return ui.Result{To: "trunks", Notice: r.Texts.T("trunks.delete.notice")}, err
}
