// Package agents has the pages to edit, publish and test agents.
package agents

import (
	"context"
	"embed"
	"io/fs"
	"reflect"
	"strconv"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
)

//go:embed pages/*.html
var files embed.FS

// Calls places calls like the API.
type Calls interface {
	Place(ctx context.Context, orgID, scope, key string, body *schema.Body) (shown []byte, again bool, err error)
	// HasWeb reports whether browsers can call.
	HasWeb() bool
	// PlaceWeb creates a web call and returns its join data.
	PlaceWeb(ctx context.Context, orgID string, body *schema.Body) (ticket map[string]any, err error)
}

// Agents serves the pages of agents.
type Agents struct {
	// Calls places test calls.
	Calls Calls
	// Providers checks the providers of agents; nil skips the checks.
	Providers agents.ProviderChecker
	// Choices returns the providers that agents of an organization may use; nil means that none are known.
	Choices func(ctx context.Context, q db.Querier, orgID string) ([]agents.Choice, error)
	// Tester tries voices and models; nil means that this server has none.
	Tester Tester

	samples *samples
	chats   *limiter
	talks   *limiter
}

// Tester tries voices and models outside of calls; see agents.Playground.
type Tester interface {
	Sample(ctx context.Context, orgID string, d agents.Definition, text string) (wav []byte, err error)
	Start(d agents.Definition, s agents.ChatSetup) agents.Chat
	Answer(ctx context.Context, d agents.Definition, s agents.ChatSetup, c *agents.Chat, text string) (agents.ChatTurn, error)
}

// Module returns the pages.
func (a Agents) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages")
	a.samples, a.chats = newSamples(), &limiter{perMinute: 20, perPerson: 1, inAll: 8}
	a.talks = &limiter{perMinute: 6, perPerson: 1, inAll: 8}
	return ui.Module{
		Name: "agents", Files: pages,
		Links: []ui.Link{{Section: "ui.menu.calling", Label: "ui.menu.agents", Path: "agents"}},
		Routes: []ui.Route{
			{Path: "agents", Show: a.list},
			{Path: "agents/new", Show: a.askNew, Submit: a.create},
			{Path: "agents/sample", Answer: a.sample, Timeout: sampleTimeout},
			{Path: "agents/{id}", Show: a.show},
			{Path: "agents/{id}/edit", Show: a.ask, Submit: a.change},
			{Path: "agents/{id}/text", Show: a.askText, Submit: a.changeText},
			{Path: "agents/{id}/publish", Show: a.askPublish, Submit: a.publish, Role: operator.Operator, NotRefilled: []string{"force"}},
			{Path: "agents/{id}/unpublish", Show: a.askUnpublish, Submit: a.unpublish},
			{Path: "agents/{id}/delete", Show: a.askDelete, Submit: a.remove},
			{Path: "agents/{id}/call", Show: a.askCall, Submit: a.call},
			{Path: "agents/{id}/chat", Show: a.askChat, Submit: a.chat, Timeout: chatTimeout},
			{Path: "agents/{id}/talk", Show: a.askTalk, Answer: a.talk},
			{Path: "agents/{id}/tool", Show: a.askTool, Submit: a.changeTool, NotRefilled: headerValues()},
			{Path: "agents/{id}/field", Show: a.askField, Submit: a.changeField},
			{Path: "agents/{id}/diff", Show: a.diff},
			{Path: "agents/{id}/versions/{version}", Show: a.version, Submit: a.restore},
		},
	}, err
}

func crumbs(texts *ui.Texts, more ...ui.Link) []ui.Link {
	return append([]ui.Link{{Label: texts.T("agents.link.agents"), Path: "agents"}}, more...)
}

func agentLink(a agents.Agent) ui.Link { return ui.Link{Label: a.Name, Path: "agents/" + a.ID} }

func find(r *ui.Request, q db.Querier) (agents.Agent, error) {
	return agents.ByID(r.Context(), q, r.Org(), r.ID())
}

func (Agents) list(r *ui.Request) (ui.Page, error) {
	all, err := agents.List(r.Context(), r.DB(), r.Org())
	all, looked := ui.SearchIn(all, r.Query("q"), r.Texts.T("ui.search.name"), func(a agents.Summary) string { return a.Name })
	return ui.Page{
		Template: "list.html", Title: r.Texts.T("agents.list.title"), Lead: r.Texts.T("agents.list.lead"),
		Actions: []ui.Link{{Label: r.Texts.T("agents.link.new_agent"), Path: "agents/new"}},
		Data:    map[string]any{"Agents": all, "Search": looked},
	}, err
}

// mostVersions limits the versions on an agent's page.
const mostVersions = 50

func (a Agents) show(r *ui.Request) (ui.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	versions, err := agents.Versions(r.Context(), r.DB(), agent.ID, mostVersions)
	if err != nil {
		return ui.Page{}, err
	}
	routes, err := trunks.Routes(r.Context(), r.DB(), r.Org(), agent.ID)
	if err != nil {
		return ui.Page{}, err
	}
	changed, err := agents.HasDraftChanges(r.Context(), r.DB(), agent.ID)
	if err != nil {
		return ui.Page{}, err
	}
	data := map[string]any{
		"A":        agent,
		"Versions": versions,
		"Routes":   routes,
		"Changed":  changed,
		"Places":   agent.Draft.VariableNames(),
		"Size":     sizeOf(agent.Draft.Prompt),
		"Types":    toolTypes(r.Texts),
		"Chat":     a.Tester != nil,
		"Missing":  agent.Draft.Missing(agent.Draft.Values("", nil)),
	}
	data["Found"] = a.check(r, r.DB(), agent.Draft)
	at, publishes := "agents/"+agent.ID, changed || agent.Published == 0 // the page has a button that publishes
	p := ui.Page{
		Template: "show.html", Title: agent.Name, Crumbs: crumbs(r.Texts), Data: data,
		Actions: []ui.Link{
			{Label: r.Texts.T("agents.link.edit"), Path: at + "/edit", Plain: publishes},
			{Label: r.Texts.T("agents.link.edit_as_yaml"), Path: at + "/text"},
			{Label: r.Texts.T("agents.link.compare_versions"), Path: at + "/diff"},
			{Label: r.Texts.T("agents.link.delete"), Path: at + "/delete"},
		},
	}
	data["Talk"] = a.canTalk(agent)
	return p, nil
}

func save(r *ui.Request, q db.Querier, before *agents.Agent, a apply.Agent) (operator.Entry, error) {
	if err := r.Apply(q, apply.Organization{Name: r.Member.Name, Agents: []apply.Agent{a}}); err != nil {
		return operator.Entry{}, err
	}
	is, err := agents.Find(r.Context(), q, r.Org(), a.Name)
	if err != nil {
		return operator.Entry{}, err
	}
	e := operator.Entry{Action: "agent.create", Object: is.ID}
	was := map[string]any{}
	if before != nil {
		e.Action, was = "agent.change", auditView(*before)
	}
	old, now := operator.Diff(was, auditView(is))
	if before != nil && !reflect.DeepEqual(secrets(*before), secrets(is)) {
		now["headers of tools"] = "changed"
	}
	if before != nil && len(now) == 0 {
		return operator.Entry{}, nil
	}
	e.Before, e.After = old, now
	return e, nil
}

// auditView is an agent in the audit log, without headers of tools.
func auditView(a agents.Agent) map[string]any {
	d := a.Draft
	return map[string]any{
		"name": a.Name, "greeting": d.Greeting, "prompt": d.Prompt, "language": d.Language,
		"voicemail": d.Voicemail, "voicemail_message": d.VoicemailMessage,
		"patience":  d.Patience,
		"recording": d.Recording, "analysis": d.Analysis, "speech": d.Speech, "max_duration_s": d.MaxDurationS, "limits": d.Limits,
		"variables": d.Variables, "pronunciation": d.Pronunciation, "tools": d.Tools,
	}
}

// withSecrets is an agent with its secrets, used to detect concurrent edits.
func withSecrets(a agents.Agent) []any { return []any{auditView(a), secrets(a)} }

func secrets(a agents.Agent) []map[string]string {
	all := make([]map[string]string, len(a.Draft.Tools))
	for i, t := range a.Draft.Tools {
		all[i] = t.Headers
	}
	return all
}

func (Agents) askDelete(r *ui.Request) (ui.Page, error) {
	a, err := find(r, r.DB())
	return ui.Confirm(r, ui.Page{
		Title: r.Texts.T("agents.delete.title", "name", a.Name), Crumbs: crumbs(r.Texts, agentLink(a)),
		Lead: r.Texts.T("agents.delete.lead"),
	}, r.Texts.T("agents.delete.submit"), "agents/"+a.ID), err
}

func (Agents) remove(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		a, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "agent.delete", Object: a.ID, Before: auditView(a)}, agents.Remove(r.Context(), q, r.Org(), a.ID)
	})
	return ui.Result{To: "agents", Notice: r.Texts.T("agents.delete.notice")}, err
}

func versionOf(r *ui.Request, q db.Querier) (a agents.Agent, d agents.Definition, n int, err error) {
	if a, err = find(r, q); err != nil {
		return a, d, 0, err
	}
	if n, err = strconv.Atoi(r.HTTP.PathValue("version")); err != nil || n < 1 || n > 1<<30 {
		return a, d, 0, ui.ErrNotFound
	}
	d, err = agents.ReadVersion(r.Context(), q, a.ID, n)
	return a, d, n, err
}

func (Agents) version(r *ui.Request) (ui.Page, error) {
	a, d, n, err := versionOf(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	text, err := apply.FromAgent(agents.Agent{Name: a.Name, Draft: d}).YAML()
	return ui.Page{
		Template: "version.html", Title: r.Texts.T("agents.version.title", "number", strconv.Itoa(n)), Crumbs: crumbs(r.Texts, agentLink(a)),
		Data: map[string]any{"A": a, "Text": text, "N": n},
	}, err
}

// restore copies a version to the draft; the published version stays.
func (Agents) restore(r *ui.Request) (ui.Result, error) {
	notice := ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		a, d, n, err := versionOf(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if _, err = agents.Save(r.Context(), q, r.Org(), a.Name, d); err != nil {
			return operator.Entry{}, ui.InvalidFromApply(err)
		}
		changed, err := agents.HasDraftChanges(r.Context(), q, a.ID)
		notice = r.Texts.T("agents.version.notice", "version", n)
		if !changed && a.Published != 0 {
			notice = r.Texts.T("agents.version.notice.published", "version", n)
		}
		return operator.Entry{Action: "agent.restore", Object: a.ID, After: map[string]any{"name": a.Name, "version": n}}, err
	})
	return ui.Result{To: "agents/" + r.ID(), Notice: notice}, err
}
