package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/operator"
)

// maxTalk is the longest test in a browser.
const maxTalk = 10 * time.Minute

// canTalk reports whether browsers can talk with an agent.
func (a Agents) canTalk(agent agents.Agent) bool {
	return agent.Published > 0 && a.Calls != nil && a.Calls.HasWeb()
}

func (a Agents) askTalk(r *ui.Request) (ui.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	d, err := tested(r, agent)
	if err != nil {
		return ui.Page{}, err
	}
	r.AllowSocket()
	return ui.Page{
		Template: "talk.html", Title: r.Texts.T("agents.talk.title", "name", agent.Name), Crumbs: crumbs(r.Texts, agentLink(agent)),
		Lead: r.Texts.T("agents.talk.lead"),
		Data: map[string]any{"A": agent, "Can": a.canTalk(agent), "Fields": variableFields(d)},
	}, nil
}

// tested returns what a test call uses: the published version.
func tested(r *ui.Request, a agents.Agent) (agents.Definition, error) {
	if a.Published == 0 {
		return a.Draft, nil // the page explains that the agent must be published
	}
	return agents.ReadVersion(r.Context(), r.DB(), a.ID, a.Published)
}

// variableFields ask for the variables of a test call.
func variableFields(d agents.Definition) (all []ui.Field) {
	missing := d.Missing(d.Values("", nil))
	for _, name := range d.VariableNames() {
		all = append(all, ui.Field{
			Name: "variable." + name, Label: name, Value: d.Variables[name], Optional: !slices.Contains(missing, name),
		})
	}
	return all
}

// givenVariables reads the variables that are not empty.
func givenVariables(r *ui.Request, d agents.Definition) map[string]string {
	given := map[string]string{}
	for _, name := range d.VariableNames() {
		if v := r.Text("variable." + name); v != "" {
			given[name] = v
		}
	}
	return given
}

// talk creates a web call and answers with its join data as JSON.
func (a Agents) talk(r *ui.Request) error {
	ticket, err := a.createTalk(r)
	if invalid, ok := errors.AsType[*ui.InvalidError](err); ok {
		text, named := strings.CutPrefix(invalid.Text(), "variable.")
		if !named {
			text = r.Texts.Sentence(text)
		}
		response.JSON(r.Writer, http.StatusUnprocessableEntity, map[string]string{"message": text})
		return nil
	}
	if err == nil {
		response.JSON(r.Writer, http.StatusCreated, ticket)
	}
	return err
}

func (a Agents) createTalk(r *ui.Request) (map[string]any, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return nil, err
	}
	if !a.canTalk(agent) {
		return nil, ui.Invalid("", r.Texts.T("agents.talk.invalid.not_available"))
	}
	end, err := a.talks.begin(r.Texts, r.Session.ID, time.Now())
	if err != nil {
		return nil, err
	}
	defer end()
	d, err := tested(r, agent)
	if err != nil {
		return nil, err
	}
	body, err := orderOf(map[string]any{
		"agent_id": agent.Name, "variables": givenVariables(r, d), "metadata": map[string]any{"source": "dashboard"},
		"client": "browser", "max_duration_s": int(maxTalk / time.Second),
	})
	if err != nil {
		return nil, err
	}
	ticket, err := a.Calls.PlaceWeb(r.Context(), r.Org(), body)
	if err != nil {
		return nil, refusedTalk(r.Texts, err)
	}
	id := fmt.Sprint(ticket["call_id"])
	return ticket, r.Log(operator.Entry{Action: "call.place", Object: id, After: map[string]any{"agent": agent.Name, "to": "browser"}})
}

// refusedTalk turns every refusal of a call into a text.
func refusedTalk(texts *ui.Texts, err error) error {
	err = refused(texts, err)
	if refusal, ok := errors.AsType[*control.Error](err); ok {
		return ui.Invalid("", refusal.Message)
	}
	return err
}

// orderOf encodes the request of a call.
func orderOf(fields map[string]any) (*schema.Body, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("test call: %w", err)
	}
	return schema.Parse(text)
}
