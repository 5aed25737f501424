// Package agents shows an organization's agents, and edits, publishes and tries
// them.
package agents

import (
	"context"
	"embed"
	"io/fs"
	"reflect"
	"strconv"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/search"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
)

//go:embed pages/*.html
var files embed.FS

// Calls places calls as the API does.
type Calls interface {
	Place(ctx context.Context, orgID, scope, key string, body *schema.Body) (shown []byte, again bool, err error)
}

// Agents is the room of agents.
type Agents struct {
	// Calls places test calls.
	Calls Calls
	// Talk are the agents that browsers may talk with at /talk.
	Talk []config.TalkAgent
	// Check says why calls of an agent could not begin here: an engine that is not
	// known, or has no key; nil does not look.
	Check func(agents.Definition) error
}

// Room returns its pages.
func (a Agents) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "agents", Files: pages,
		Links: []frame.Link{{Section: "Calling", Label: "Agents", Path: "agents"}},
		Routes: []frame.Route{
			{Path: "agents", Look: a.list},
			{Path: "agents/new", Look: a.askNew, Change: a.create},
			{Path: "agents/{id}", Look: a.show},
			{Path: "agents/{id}/edit", Look: a.ask, Change: a.change},
			{Path: "agents/{id}/text", Look: a.askText, Change: a.changeText},
			{Path: "agents/{id}/publish", Change: a.publish, Back: "agents"},
			{Path: "agents/{id}/unpublish", Look: a.askUnpublish, Change: a.unpublish},
			{Path: "agents/{id}/delete", Look: a.askDelete, Change: a.remove},
			{Path: "agents/{id}/call", Look: a.askCall, Change: a.call},
			{Path: "agents/{id}/versions/{version}", Look: a.version, Change: a.restore},
		},
	}, err
}

func above(more ...frame.Link) []frame.Link {
	return append([]frame.Link{{Label: "Agents", Path: "agents"}}, more...)
}

func of(a agents.Agent) frame.Link { return frame.Link{Label: a.Name, Path: "agents/" + a.ID} }

// find reads the agent that a page is about.
func find(r *frame.Request, q db.Querier) (agents.Agent, error) {
	return agents.ByID(r.Context(), q, r.Org(), r.ID())
}

func (Agents) list(r *frame.Request) (frame.Page, error) {
	all, err := agents.List(r.Context(), r.DB(), r.Org())
	all, looked := search.In(all, r.Query("q"), "name", func(a agents.Listed) string { return a.Name })
	return frame.Page{
		Template: "list.html", Title: "Agents", Lead: "Who talks on calls. New calls use the version that is published.",
		Actions: []frame.Link{{Label: "New agent", Path: "agents/new"}},
		Data:    map[string]any{"Agents": all, "Search": looked},
	}, err
}

// mostVersions is how many versions an agent's page lists.
const mostVersions = 50

func (a Agents) show(r *frame.Request) (frame.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	versions, err := agents.Versions(r.Context(), r.DB(), agent.ID, mostVersions)
	if err != nil {
		return frame.Page{}, err
	}
	routes, err := trunks.Routes(r.Context(), r.DB(), r.Org(), agent.ID)
	if err != nil {
		return frame.Page{}, err
	}
	changed, err := agents.Changed(r.Context(), r.DB(), agent.ID)
	if err != nil {
		return frame.Page{}, err
	}
	data := map[string]any{"A": agent, "Versions": versions, "Routes": routes, "Changed": changed, "Places": agent.Draft.Places(), "Missing": agent.Draft.Missing(agent.Draft.Values("", nil))}
	if a.Check != nil {
		if fault := a.Check(agent.Draft); fault != nil {
			data["Fault"] = fault.Error()
		}
	}
	at := "agents/" + agent.ID
	p := frame.Page{
		Template: "show.html", Title: agent.Name, Crumbs: above(), Data: data,
		Actions: []frame.Link{{Label: "Edit", Path: at + "/edit"}, {Label: "Edit as YAML", Path: at + "/text"}, {Label: "Delete", Path: at + "/delete"}},
	}
	if agent.Published > 0 {
		p.Actions = append([]frame.Link{{Label: "Test call", Path: at + "/call"}}, p.Actions...)
	}
	for _, t := range a.Talk {
		if t.Org == r.Seat.Name && t.Name == agent.Name {
			data["Talk"] = true
		}
	}
	return p, nil
}

// save applies an agent, and logs what differs from before.
func save(r *frame.Request, q db.Querier, before *agents.Agent, a apply.Agent) (operator.Entry, error) {
	if err := r.Apply(q, apply.Organization{Name: r.Seat.Name, Agents: []apply.Agent{a}}); err != nil {
		return operator.Entry{}, err
	}
	is, err := agents.Find(r.Context(), q, r.Org(), a.Name)
	if err != nil {
		return operator.Entry{}, err
	}
	e := operator.Entry{Action: "agent.create", Object: is.ID}
	was := map[string]any{}
	if before != nil {
		e.Action, was = "agent.change", plain(*before)
	}
	old, now := operator.Changed(was, plain(is))
	if before != nil && !reflect.DeepEqual(secrets(*before), secrets(is)) {
		now["headers of tools"] = "changed"
	}
	if before != nil && len(now) == 0 {
		return operator.Entry{}, nil
	}
	e.Before, e.After = old, now
	return e, nil
}

// plain is an agent as the log keeps it; headers of its tools are no part of that.
func plain(a agents.Agent) map[string]any {
	d := a.Draft
	return map[string]any{
		"name": a.Name, "greeting": d.Greeting, "prompt": d.Prompt, "language": d.Language, "voicemail": d.Voicemail, "voicemail_message": d.VoicemailMessage,
		"recording": d.Recording, "analysis": d.Analysis, "speech": d.Speech, "max_duration_s": d.MaxDurationS, "limits": d.Limits,
		"variables": d.Variables, "pronunciation": d.Pronunciation, "tools": d.Tools,
	}
}

// sealed is an agent with its secrets, for its forms to know whether it is another by now.
func sealed(a agents.Agent) []any { return []any{plain(a), secrets(a)} }

// secrets are the headers of an agent's tools.
func secrets(a agents.Agent) []map[string]string {
	all := make([]map[string]string, len(a.Draft.Tools))
	for i, t := range a.Draft.Tools {
		all[i] = t.Headers
	}
	return all
}

func (Agents) publish(r *frame.Request) (frame.Done, error) {
	version := 0
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		a, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if version, err = agents.Publish(r.Context(), q, r.Org(), a.Name); err != nil || version == a.Published {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "agent.publish", Object: a.ID, Before: map[string]any{"published": a.Published}, After: map[string]any{"name": a.Name, "published": version}}, nil
	})
	return frame.Done{To: "agents/" + r.ID(), Say: "Version " + strconv.Itoa(version) + " is published: new calls use it."}, err
}

func (Agents) askUnpublish(r *frame.Request) (frame.Page, error) {
	a, err := find(r, r.DB())
	return frame.Page{
		Template: "form.html", Title: "Unpublish " + a.Name, Crumbs: above(of(a)),
		Lead: "New calls with it are refused, and its campaigns do not call. Calls that were accepted keep their version.",
		Data: r.Form(frame.Form{Submit: "Unpublish", Danger: true, Cancel: r.URL("agents/" + a.ID)}),
	}, err
}

func (Agents) unpublish(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		a, err := find(r, q)
		if err != nil || a.Published == 0 {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "agent.unpublish", Object: a.ID, Before: map[string]any{"name": a.Name, "published": a.Published}}, agents.Unpublish(r.Context(), q, r.Org(), a.Name)
	})
	return frame.Done{To: "agents/" + r.ID(), Say: "It is unpublished: new calls with it are refused."}, err
}

func (Agents) askDelete(r *frame.Request) (frame.Page, error) {
	a, err := find(r, r.DB())
	return frame.Page{
		Template: "form.html", Title: "Delete " + a.Name, Crumbs: above(of(a)),
		Lead: "Its versions go with it, and calls of it that wait. Calls that were made stay.",
		Data: r.Form(frame.Form{Submit: "Delete the agent", Danger: true, Cancel: r.URL("agents/" + a.ID)}),
	}, err
}

func (Agents) remove(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		a, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "agent.delete", Object: a.ID, Before: plain(a)}, agents.Remove(r.Context(), q, r.Org(), a.ID)
	})
	return frame.Done{To: "agents", Say: "The agent is deleted."}, err
}

// versionOf reads the version that a page is about.
func versionOf(r *frame.Request, q db.Querier) (a agents.Agent, d agents.Definition, n int, err error) {
	if a, err = find(r, q); err != nil {
		return a, d, 0, err
	}
	if n, err = strconv.Atoi(r.HTTP.PathValue("version")); err != nil || n < 1 || n > 1<<30 {
		return a, d, 0, frame.ErrMissing
	}
	d, err = agents.ReadVersion(r.Context(), q, a.ID, n)
	return a, d, n, err
}

func (Agents) version(r *frame.Request) (frame.Page, error) {
	a, d, n, err := versionOf(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	text, err := apply.Written(agents.Agent{Name: a.Name, Draft: d}).Text()
	return frame.Page{Template: "version.html", Title: "Version " + strconv.Itoa(n), Crumbs: above(of(a)), Data: map[string]any{"A": a, "Text": text, "N": n}}, err
}

// restore makes a version the draft again; what is published stays.
func (Agents) restore(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		a, d, n, err := versionOf(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if _, err = agents.Save(r.Context(), q, r.Org(), a.Name, d); err != nil {
			return operator.Entry{}, frame.Refused(err)
		}
		return operator.Entry{Action: "agent.restore", Object: a.ID, After: map[string]any{"name": a.Name, "version": n}}, nil
	})
	return frame.Done{To: "agents/" + r.ID(), Say: "The draft is this version again. Publish it to have new calls use it."}, err
}
