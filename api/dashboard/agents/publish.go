package agents

import (
	"strconv"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

// findings are what the checks of a draft found. Launch checks of campaigns find the same.
type findings struct {
	Fault    string // why calls with the draft cannot start
	Warnings []string
}

// check reads the latest results of the checks. It sends no requests.
func (a Agents) check(r *ui.Request, q db.Querier, d agents.Definition) findings {
	var f findings
	if a.Providers == nil {
		return f
	}
	if fault := a.Providers.Check(r.Context(), q, r.Org(), d); fault != nil {
		f.Fault = fault.Error()
	} else {
		f.Warnings = a.Providers.Warnings(r.Org(), d)
	}
	return f
}

func (a Agents) askPublish(r *ui.Request) (ui.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	found := a.check(r, r.DB(), agent.Draft)
	form := ui.Form{Submit: r.Texts.T("agents.publish.submit"), Cancel: r.URL("agents/" + agent.ID), Of: withSecrets(agent)}
	if found.Fault != "" {
		form.Submit, form.Danger = r.Texts.T("agents.publish.submit.anyway"), true
		form.Fields = []ui.Field{{
			Name: "force", Label: r.Texts.T("agents.publish.force.label"), Kind: ui.Checkbox,
			Help: r.Texts.T("agents.publish.force.help"),
		}}
	}
	return ui.Page{
		Template: "publish.html", Title: r.Texts.T("agents.publish.title", "name", agent.Name), Crumbs: crumbs(r.Texts, agentLink(agent)),
		Lead: r.Texts.T("agents.publish.lead"),
		Data: map[string]any{
			"A": agent, "Found": found, "Form": r.Form(form), "Missing": agent.Draft.Missing(agent.Draft.Values("", nil)),
		},
	}, nil
}

func (a Agents) publish(r *ui.Request) (ui.Result, error) {
	version, forced := 0, r.Ticked("force")
	var found findings
	if a.Providers != nil {
		agent, err := find(r, r.DB())
		if err != nil {
			return ui.Result{}, err
		}
		a.Providers.Probe(r.Context(), r.Org(), agent.Draft.Speech)
		a.Providers.Save(r.Context(), r.DB(), r.Org(), agent.Draft.Speech)
	}
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		agent, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(withSecrets(agent)); err != nil {
			return operator.Entry{}, err
		}
		if found = a.check(r, q, agent.Draft); found.Fault != "" && !forced {
			return operator.Entry{}, nil
		}
		if version, err = agents.Publish(r.Context(), q, r.Org(), agent.Name); err != nil || version == agent.Published {
			return operator.Entry{}, err
		}
		after := map[string]any{"name": agent.Name, "published": version}
		if found.Fault != "" {
			after["forced"] = found.Fault
		}
		return operator.Entry{
			Action: "agent.publish", Object: agent.ID, Before: map[string]any{"published": agent.Published}, After: after,
		}, nil
	})
	if err == nil && version == 0 {
		return ui.Result{
			To: "agents/" + r.ID() + "/publish", Notice: r.Texts.T("agents.publish.refused", "fault", found.Fault),
			Failed: true,
		}, nil
	}
	notice := r.Texts.T("agents.publish.notice", "version", strconv.Itoa(version))
	if found.Fault != "" {
		notice = r.Texts.T("agents.publish.notice.faulty", "version", strconv.Itoa(version), "fault", found.Fault)
	}
	if len(found.Warnings) > 0 {
		notice += " " + r.Texts.T("agents.publish.notice.warnings", "warnings", strings.Join(found.Warnings, "; "))
	}
	return ui.Result{To: "agents/" + r.ID(), Notice: notice, Failed: found.Fault != ""}, err
}

func (Agents) askUnpublish(r *ui.Request) (ui.Page, error) {
	a, err := find(r, r.DB())
	return ui.Confirm(r, ui.Page{
		Title: r.Texts.T("agents.unpublish.title", "name", a.Name), Crumbs: crumbs(r.Texts, agentLink(a)),
		Lead: r.Texts.T("agents.unpublish.lead"),
	}, r.Texts.T("agents.unpublish.submit"), "agents/"+a.ID), err
}

func (Agents) unpublish(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		a, err := find(r, q)
		if err != nil || a.Published == 0 {
			return operator.Entry{}, err
		}
		return operator.Entry{
			Action: "agent.unpublish",
			Object: a.ID,
			Before: map[string]any{"name": a.Name, "published": a.Published},
		}, agents.Unpublish(r.Context(), q, r.Org(), a.Name)
	})
	return ui.Result{To: "agents/" + r.ID(), Notice: r.Texts.T("agents.unpublish.notice")}, err
}
