// Package webhooks shows where an organization's notices go and what became of
// them, and sends them again.
package webhooks

import (
	"embed"
	"io/fs"
	"slices"
	"time"

	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/search"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
)

//go:embed pages/*.html
var files embed.FS

// Webhooks is the room of endpoints and notices.
type Webhooks struct {
	DB *db.DB
	// AllowInsecure lets endpoints be plain http, and private addresses.
	AllowInsecure bool
}

// Room returns its pages.
func (w Webhooks) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "webhooks", Files: pages,
		Links: []frame.Link{{Section: "Developers", Label: "Webhooks", Path: "webhooks"}},
		Routes: []frame.Route{
			{Path: "webhooks", Look: w.list},
			{Path: "webhooks/new", Needs: operator.Owner, Look: w.ask, Change: w.create},
			{Path: "webhooks/{id}", Look: w.show},
			{Path: "webhooks/{id}/edit", Needs: operator.Owner, Look: w.askChange, Change: w.change},
			{Path: "webhooks/{id}/secret", Needs: operator.Owner, Look: w.askRotate, Change: w.rotate},
			{Path: "webhooks/{id}/settle", Needs: operator.Owner, Look: w.askSettle, Change: w.settle},
			{Path: "webhooks/{id}/test", Change: w.test, Back: "webhooks", Long: 20 * time.Second},
			{Path: "webhooks/{id}/replay", Look: w.askReplay, Change: w.replay},
			{Path: "webhooks/{id}/delete", Needs: operator.Owner, Look: w.askDelete, Change: w.remove},
			{Path: "notices/{id}", Look: w.notice},
			{Path: "notices/{id}/replay", Change: w.replayOne, Back: "webhooks"},
		},
	}, err
}

// A row is an endpoint, and what has not reached it.
type row struct {
	webhook.Owned

	Shown         string // the address; its path may be a secret, and is for owners
	State         string
	Waiting, Dead int
}

// shown is an endpoint's address, as far as who looks may see it.
func shown(r *frame.Request, e webhook.Owned) string {
	if r.May(operator.Owner) {
		return e.URL
	}
	return webhook.State{URL: e.URL}.Host()
}

func (Webhooks) row(r *frame.Request, e webhook.Owned) (row, error) {
	waiting, dead, err := webhook.Left(r.Context(), r.DB(), e.ID)
	v := row{e, shown(r, e), "active", waiting, dead}
	if e.DisabledAt != nil {
		v.State = "disabled"
	}
	return v, err
}

// most endpoints of an organization that are listed.
const most = 100

func (w Webhooks) list(r *frame.Request) (frame.Page, error) {
	all, err := webhook.ListOwned(r.Context(), r.DB(), r.Org(), "", most)
	if err != nil {
		return frame.Page{}, err
	}
	all, looked := search.In(all, r.Query("q"), "address", func(e webhook.Owned) string { return shown(r, e) })
	rows := make([]row, len(all))
	for i, e := range all {
		if rows[i], err = w.row(r, e); err != nil {
			return frame.Page{}, err
		}
	}
	return frame.Page{
		Template: "list.html", Title: "Webhooks", Lead: "Where notices of calls go. Each is signed, and sent again until it is taken.",
		Actions: []frame.Link{{Label: "New endpoint", Path: "webhooks/new", Needs: operator.Owner}},
		Data:    map[string]any{"Endpoints": rows, "Search": looked},
	}, nil
}

func above(more ...frame.Link) []frame.Link {
	return append([]frame.Link{{Label: "Webhooks", Path: "webhooks"}}, more...)
}

func of(r *frame.Request, e webhook.Owned) frame.Link {
	return frame.Link{Label: shown(r, e), Path: "webhooks/" + e.ID}
}

// fields ask for what an endpoint is told.
func fields(r *frame.Request, e webhook.Owned) ([]frame.Field, error) {
	names, err := agents.Names(r.Context(), r.DB(), r.Org())
	return []frame.Field{
		{Name: "events", Label: "Events", Kind: frame.Boxes, Values: e.Events, Options: frame.Options(webhook.Types()...)},
		{Name: "agents", Label: "Of calls by these agents alone", Kind: frame.Boxes, Values: e.Agents, Options: frame.Options(names...), Optional: true, Help: "None ticked is all of them."},
		field.Box("thin", "Leave the transcript out", e.Thin),
	}, err
}

// read reads what an endpoint is to be told.
func read(r *frame.Request, e *webhook.Endpoint) error {
	e.OrgID, e.Events, e.Agents, e.Thin = r.Org(), r.All("events"), r.All("agents"), r.Ticked("thin")
	if len(e.Events) == 0 {
		return frame.Invalid("events", "Tick one at least.")
	}
	names, err := agents.Names(r.Context(), r.DB(), r.Org())
	if err != nil {
		return err
	}
	for _, n := range e.Agents {
		if !slices.Contains(names, n) {
			return frame.Invalid("agents", "There is no agent "+n+".")
		}
	}
	return nil
}

func (Webhooks) ask(r *frame.Request) (frame.Page, error) {
	more, err := fields(r, webhook.Owned{Events: webhook.Types()})
	return frame.Page{Template: "form.html", Title: "New endpoint", Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Create", Cancel: r.URL("webhooks"),
		Fields: append([]frame.Field{{Name: "url", Label: "Address", Kind: frame.URL, Placeholder: "https://crm.example.com/hooks/parley", Help: "It is to answer 2xx within 15 seconds."}}, more...),
	})}, err
}

func (w Webhooks) create(r *frame.Request) (frame.Done, error) {
	e := webhook.Endpoint{URL: r.Text("url"), Secret: webhook.NewSecret()}
	if err := webhook.CheckURL(e.URL, w.AllowInsecure); err != nil {
		return frame.Done{}, frame.Invalid("url", err)
	}
	if err := read(r, &e); err != nil {
		return frame.Done{}, err
	}
	if err := e.Check(w.AllowInsecure); err != nil {
		return frame.Done{}, frame.Invalid("events", err)
	}
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		made, err := webhook.Create(r.Context(), q, e)
		return operator.Entry{Action: "webhook.create", Object: made.ID, After: logged(made)}, err
	})
	if err != nil {
		if webhook.Taken(err) {
			return frame.Done{}, frame.Invalid("url", "There is an endpoint of this address already.")
		}
		return frame.Done{}, err
	}
	return secret("The endpoint is there", e.Secret), nil
}

// secret shows one, in the answer alone.
func secret(title string, s media.Secret) frame.Done {
	return frame.Done{Page: &frame.Page{Template: "secret.html", Title: title, Crumbs: above(), Data: string(s)}}
}

// logged is what the log keeps of an endpoint: paths and queries may be secrets.
func logged(e webhook.Owned) map[string]any {
	return map[string]any{"host": webhook.State{URL: e.URL}.Host(), "events": e.Events, "agents": e.Agents, "thin": e.Thin}
}

func (Webhooks) find(r *frame.Request, q db.Querier) (webhook.Owned, error) {
	return webhook.Read(r.Context(), q, r.Org(), r.ID())
}

// perPage is how many notices a page has.
const perPage = 50

func (w Webhooks) show(r *frame.Request) (frame.Page, error) {
	e, err := w.find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	of, err := w.row(r, e)
	if err != nil {
		return frame.Page{}, err
	}
	state := r.Query("state")
	if !slices.Contains(webhook.States(), state) {
		state = ""
	}
	all, err := webhook.Notices(r.Context(), r.DB(), e.ID, state, r.Query("after"), perPage+1)
	if err != nil {
		return frame.Page{}, err
	}
	all, next := frame.Paged(r, all, perPage, func(s webhook.Sent) string { return s.ID })
	p := frame.Page{
		Template: "show.html", Title: of.Shown, Crumbs: above(),
		Actions: []frame.Link{
			{Label: "Edit", Path: "webhooks/" + e.ID + "/edit", Needs: operator.Owner},
			{Label: "New secret", Path: "webhooks/" + e.ID + "/secret", Needs: operator.Owner},
			{Label: "Delete", Path: "webhooks/" + e.ID + "/delete", Needs: operator.Owner},
		},
		Data: map[string]any{"E": of, "Notices": all, "Next": next, "State": state, "States": webhook.States()},
	}
	return p, nil
}

func (w Webhooks) askChange(r *frame.Request) (frame.Page, error) {
	e, err := w.find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	asked, err := fields(r, e)
	return frame.Page{Template: "form.html", Title: "What it is told", Crumbs: above(of(r, e)), Data: r.Form(frame.Form{
		Submit: "Save", Cancel: r.URL("webhooks/" + e.ID), Fields: asked, Of: logged(e),
	})}, err
}

func (w Webhooks) change(r *frame.Request) (frame.Done, error) {
	e := webhook.Endpoint{ID: r.ID()}
	if err := read(r, &e); err != nil {
		return frame.Done{}, err
	}
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		was, err := w.find(r, q)
		if err == nil {
			err = r.Same(logged(was))
		}
		if err != nil {
			return operator.Entry{}, err
		}
		is, err := webhook.Change(r.Context(), q, e)
		return operator.Entry{Action: "webhook.change", Object: e.ID, Before: logged(was), After: logged(is)}, err
	})
	return frame.Done{To: "webhooks/" + e.ID, Say: "The endpoint is changed."}, err
}
