package agents

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
)

func (Agents) askCall(r *ui.Request) (ui.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	routes, err := trunks.Routes(r.Context(), r.DB(), r.Org(), agent.ID)
	if err != nil {
		return ui.Page{}, err
	}
	all := []ui.Field{
		ui.OnceField(),
		{
			Name: "to", Label: r.Texts.T("agents.call.to.label"), Kind: "tel", Placeholder: "+1 202 555 0123", Complete: "tel",
			Help: r.Texts.T("agents.call.to.help"),
		},
	}
	if len(routes) > 1 {
		var options []ui.Option
		for _, s := range routes {
			options = append(options, ui.Option{Value: s.ID, Label: s.TrunkName + " / " + s.Name})
		}
		all = append(all, ui.Field{
			Name: "route", Label: r.Texts.T("agents.call.route.label"), Kind: ui.Select, Options: options,
			Value: r.Query("route"),
		})
	}
	d, err := tested(r, agent)
	if err != nil {
		return ui.Page{}, err
	}
	all = append(all, variableFields(d)...)
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("agents.call.title", "name", agent.Name), Crumbs: crumbs(r.Texts, agentLink(agent)),
		Lead: r.Texts.T("agents.call.lead"),
		Data: r.Form(ui.Form{Submit: r.Texts.T("agents.call.submit"), Cancel: r.URL("agents/" + agent.ID), Fields: all}),
	}, nil
}

// call places a test call. A repeated form redirects to the first call.
func (a Agents) call(r *ui.Request) (ui.Result, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Result{}, err
	}
	scope, key, err := r.OnceKey()
	if err != nil {
		return ui.Result{}, err
	}
	d, err := tested(r, agent)
	if err != nil {
		return ui.Result{}, err
	}
	body, err := orderOf(map[string]any{
		"agent_id": agent.Name, "to_number": r.Text("to"), "route_id": r.Text("route"),
		"variables": givenVariables(r, d), "metadata": map[string]any{"source": "dashboard"},
	})
	if err != nil {
		return ui.Result{}, err
	}
	shown, again, err := a.Calls.Place(r.Context(), r.Org(), scope, key, body)
	if err != nil {
		return ui.Result{}, refused(r.Texts, err)
	}
	var placed struct {
		ID string `json:"call_id"`
		To string `json:"to_number"`
	}
	if err = json.Unmarshal(shown, &placed); err != nil {
		return ui.Result{}, fmt.Errorf("test call: %w", err)
	}
	if again {
		return ui.Result{To: "calls/" + placed.ID, Notice: r.Texts.T("agents.call.repeated")}, nil
	}
	err = r.Log(operator.Entry{Action: "call.place", Object: placed.ID, After: map[string]any{"agent": agent.Name, "to": placed.To}})
	return ui.Result{To: "calls/" + placed.ID, Notice: r.Texts.T("agents.call.notice")}, err
}

func refused(texts *ui.Texts, err error) error {
	if invalid, ok := errors.AsType[*response.InvalidError](err); ok {
		for _, issue := range invalid.Issues {
			switch loc := issue.Loc; {
			case len(loc) > 2 && loc[1] == "variables" && issue.Type == "missing":
				return ui.Invalid(fmt.Sprintf("variable.%v", loc[2]), texts.T("ui.field.required"))
			case len(loc) > 2 && loc[1] == "variables":
				return ui.Invalid(fmt.Sprintf("variable.%v", loc[2]), issue.Msg)
			case len(loc) > 1 && loc[1] == "to_number":
				return ui.Invalid("to", issue.Msg)
			}
		}
		return ui.Invalid("", invalid)
	}
	if refusal, ok := errors.AsType[*control.Error](err); ok &&
		(refusal.Code == control.CodeDestinationInvalid || refusal.Code == control.CodeDestinationNotAllowed) {
		return ui.Invalid("to", refusal.Message)
	}
	return err
}
