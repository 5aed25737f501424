// Package webhooks has the pages of webhook endpoints and their deliveries.
package webhooks

import (
	"embed"
	"io/fs"
	"slices"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
)

//go:embed pages/*.html
var files embed.FS

// Webhooks serves the pages of endpoints and deliveries.
type Webhooks struct {
	DB *db.DB
	// AllowInsecure permits plain http and private addresses.
	AllowInsecure bool
}

// Module returns the pages.
func (w Webhooks) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages")
	return ui.Module{
		Name: "webhooks", Files: pages,
		Links: []ui.Link{{Section: "ui.menu.developers", Label: "ui.menu.webhooks", Path: "webhooks"}},
		Routes: []ui.Route{
			{Path: "webhooks", Show: w.list},
			{Path: "webhooks/new", Role: operator.Owner, Show: w.ask, Submit: w.create},
			{Path: "webhooks/{id}", Show: w.show},
			{Path: "webhooks/{id}/edit", Role: operator.Owner, Show: w.askChange, Submit: w.change},
			{Path: "webhooks/{id}/secret", Role: operator.Owner, Show: w.askRotate, Submit: w.rotate},
			{Path: "webhooks/{id}/old-secret", Role: operator.Owner, Show: w.askDeleteOldSecret, Submit: w.deleteOldSecret},
			{Path: "webhooks/{id}/test", Submit: w.test, Back: "webhooks", Timeout: 20 * time.Second},
			{Path: "webhooks/{id}/replay", Show: w.askReplay, Submit: w.replay},
			{Path: "webhooks/{id}/delete", Role: operator.Owner, Show: w.askDelete, Submit: w.remove},
			{Path: "deliveries/{id}", Show: w.delivery},
			{Path: "deliveries/{id}/replay", Submit: w.replayOne, Back: "webhooks"},
		},
	}, err
}

type row struct {
	webhook.EndpointView

	Shown         string // the address; only owners see its path, which may be a secret
	State         string
	Waiting, Dead int
}

// visibleURL returns an endpoint's address as far as the operator may see it.
func visibleURL(r *ui.Request, e webhook.EndpointView) string {
	if r.May(operator.Owner) {
		return e.URL
	}
	return webhook.EndpointStatus{URL: e.URL}.Host()
}

func (Webhooks) row(r *ui.Request, e webhook.EndpointView) (row, error) {
	waiting, dead, err := webhook.CountUndelivered(r.Context(), r.DB(), e.ID)
	v := row{e, visibleURL(r, e), "active", waiting, dead}
	if e.DisabledAt != nil {
		v.State = "disabled"
	}
	return v, err
}

// most limits the listed endpoints.
const most = 100

func (w Webhooks) list(r *ui.Request) (ui.Page, error) {
	all, err := webhook.ListEndpoints(r.Context(), r.DB(), r.Org(), "", most)
	if err != nil {
		return ui.Page{}, err
	}
	all, looked := ui.SearchIn(all, r.Query("q"), r.Texts.T("ui.search.address"),
		func(e webhook.EndpointView) string { return visibleURL(r, e) })
	rows := make([]row, len(all))
	for i, e := range all {
		if rows[i], err = w.row(r, e); err != nil {
			return ui.Page{}, err
		}
	}
	return ui.Page{
		Template: "list.html", Title: r.Texts.T("webhooks.list.title"), Lead: r.Texts.T("webhooks.list.lead"),
		Actions: []ui.Link{{Label: r.Texts.T("webhooks.link.new_endpoint"), Path: "webhooks/new", Role: operator.Owner}},
		Data:    map[string]any{"Endpoints": rows, "Search": looked},
	}, nil
}

func crumbs(texts *ui.Texts, more ...ui.Link) []ui.Link {
	return append([]ui.Link{{Label: texts.T("webhooks.link.webhooks"), Path: "webhooks"}}, more...)
}

func endpointLink(r *ui.Request, e webhook.EndpointView) ui.Link {
	return ui.Link{Label: visibleURL(r, e), Path: "webhooks/" + e.ID}
}

func fields(r *ui.Request, e webhook.EndpointView) ([]ui.Field, error) {
	names, err := agents.Names(r.Context(), r.DB(), r.Org())
	return []ui.Field{
		{
			Name: "events", Label: r.Texts.T("webhooks.form.events.label"), Kind: ui.Checkboxes, Values: e.Events,
			Options: ui.Options(webhook.Types()...),
		},
		{
			Name: "agents", Label: r.Texts.T("webhooks.form.agents.label"), Kind: ui.Checkboxes, Values: e.Agents,
			Options: ui.Options(names...), Optional: true, Help: r.Texts.T("webhooks.form.agents.help"),
		},
		ui.CheckboxField("thin", r.Texts.T("webhooks.form.thin.label"), e.Thin),
	}, err
}

func read(r *ui.Request, e *webhook.Endpoint) error {
	e.OrgID, e.Events, e.Agents, e.Thin = r.Org(), r.All("events"), r.All("agents"), r.Ticked("thin")
	if len(e.Events) == 0 {
		return ui.Invalid("events", r.Texts.T("webhooks.form.invalid.events"))
	}
	names, err := agents.Names(r.Context(), r.DB(), r.Org())
	if err != nil {
		return err
	}
	for _, n := range e.Agents {
		if !slices.Contains(names, n) {
			return ui.Invalid("agents", r.Texts.T("webhooks.form.invalid.agents", "name", n))
		}
	}
	return nil
}

func (Webhooks) ask(r *ui.Request) (ui.Page, error) {
	more, err := fields(r, webhook.EndpointView{Events: webhook.Types()})
	return ui.Page{Template: "form.html", Title: r.Texts.T("webhooks.new.title"), Crumbs: crumbs(r.Texts), Data: r.Form(ui.Form{
		Submit: r.Texts.T("webhooks.new.submit"), Cancel: r.URL("webhooks"),
		Fields: append(
			[]ui.Field{
				{
					Name: "url", Label: r.Texts.T("webhooks.new.url.label"), Kind: ui.URL,
					Placeholder: "https://crm.example.com/hooks/parley", Help: r.Texts.T("webhooks.new.url.help"),
				},
			},
			more...),
	})}, err
}

func (w Webhooks) create(r *ui.Request) (ui.Result, error) {
	e := webhook.Endpoint{URL: r.Text("url"), Secret: webhook.NewSecret()}
	if err := webhook.CheckURL(e.URL, w.AllowInsecure); err != nil {
		return ui.Result{}, ui.Invalid("url", err)
	}
	if err := read(r, &e); err != nil {
		return ui.Result{}, err
	}
	if err := e.Check(w.AllowInsecure); err != nil {
		return ui.Result{}, ui.Invalid("events", err)
	}
	var made webhook.EndpointView
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		var err error
		made, err = webhook.Create(r.Context(), q, e)
		return operator.Entry{Action: "webhook.create", Object: made.ID, After: auditView(made)}, err
	})
	if err != nil {
		if webhook.IsURLTaken(err) {
			return ui.Result{}, ui.Invalid("url", r.Texts.T("webhooks.new.invalid.url"))
		}
		return ui.Result{}, err
	}
	return secret(r, r.Texts.T("webhooks.new.done"), made, e.Secret), nil
}

// secret shows the secret of an endpoint once.
func secret(r *ui.Request, title string, e webhook.EndpointView, s media.Secret) ui.Result {
	return ui.Result{Page: &ui.Page{
		Template: "secret.html", Title: title, Crumbs: crumbs(r.Texts, endpointLink(r, e)),
		Data: map[string]any{"ID": e.ID, "Secret": string(s)},
	}}
}

// auditView is an endpoint in the audit log, without path and query, which may be secrets.
func auditView(e webhook.EndpointView) map[string]any {
	return map[string]any{"host": webhook.EndpointStatus{URL: e.URL}.Host(), "events": e.Events, "agents": e.Agents, "thin": e.Thin}
}

func (Webhooks) find(r *ui.Request, q db.Querier) (webhook.EndpointView, error) {
	return webhook.Read(r.Context(), q, r.Org(), r.ID())
}

// perPage is the number of deliveries per page.
const perPage = 50

func (w Webhooks) show(r *ui.Request) (ui.Page, error) {
	e, err := w.find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	of, err := w.row(r, e)
	if err != nil {
		return ui.Page{}, err
	}
	state := r.Query("state")
	if !slices.Contains(webhook.States(), state) {
		state = ""
	}
	all, err := webhook.ListDeliveries(r.Context(), r.DB(), e.ID, state, r.Query("after"), perPage+1)
	if err != nil {
		return ui.Page{}, err
	}
	all, next := ui.Paginate(r, all, perPage, func(s webhook.Delivery) string { return s.ID })
	p := ui.Page{
		Template: "show.html", Title: of.Shown, Crumbs: crumbs(r.Texts),
		Actions: []ui.Link{
			{Label: r.Texts.T("webhooks.link.edit"), Path: "webhooks/" + e.ID + "/edit", Role: operator.Owner},
			{Label: r.Texts.T("webhooks.link.rotate_secret"), Path: "webhooks/" + e.ID + "/secret", Role: operator.Owner},
			{Label: r.Texts.T("webhooks.link.delete"), Path: "webhooks/" + e.ID + "/delete", Role: operator.Owner},
		},
		Data: map[string]any{"E": of, "Deliveries": all, "Next": next, "State": state, "States": webhook.States()},
	}
	return p, nil
}

func (w Webhooks) askChange(r *ui.Request) (ui.Page, error) {
	e, err := w.find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	asked, err := fields(r, e)
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("webhooks.edit.title"), Crumbs: crumbs(r.Texts, endpointLink(r, e)),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("ui.form.save"), Cancel: r.URL("webhooks/" + e.ID), Fields: asked, Of: auditView(e),
		}),
	}, err
}

func (w Webhooks) change(r *ui.Request) (ui.Result, error) {
	e := webhook.Endpoint{ID: r.ID()}
	if err := read(r, &e); err != nil {
		return ui.Result{}, err
	}
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		was, err := w.find(r, q)
		if err == nil {
			err = r.Same(auditView(was))
		}
		if err != nil {
			return operator.Entry{}, err
		}
		is, err := webhook.Change(r.Context(), q, e)
		return operator.Entry{Action: "webhook.change", Object: e.ID, Before: auditView(was), After: auditView(is)}, err
	})
	return ui.Result{To: "webhooks/" + e.ID, Notice: r.Texts.T("webhooks.edit.notice")}, err
}
