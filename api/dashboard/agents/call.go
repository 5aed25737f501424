package agents

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
)

func (Agents) askCall(r *frame.Request) (frame.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	routes, err := trunks.Routes(r.Context(), r.DB(), r.Org(), agent.ID)
	if err != nil {
		return frame.Page{}, err
	}
	all := []frame.Field{frame.Once(), {Name: "to", Label: "Number to call", Kind: "tel", Placeholder: "+12025550123", Complete: "tel", Help: "It is called at once, for real. Do-not-call lists and limits count."}}
	if len(routes) > 1 {
		var options []frame.Option
		for _, s := range routes {
			options = append(options, frame.Option{Value: s.ID, Label: s.TrunkName + " / " + s.Name})
		}
		all = append(all, frame.Field{Name: "route", Label: "Subgroup", Kind: frame.Select, Options: options, Value: r.Query("route")})
	}
	for _, name := range agent.Draft.Places() {
		all = append(all, frame.Field{Name: "variable." + name, Label: name, Value: agent.Draft.Variables[name], Optional: true})
	}
	return frame.Page{
		Template: "form.html", Title: "Test call with " + agent.Name, Crumbs: above(of(agent)), Lead: "A real call, with the version that is published.",
		Data: r.Form(frame.Form{Submit: "Call now", Cancel: r.URL("agents/" + agent.ID), Fields: all}),
	}, nil
}

// call places a test call; a form that comes again leads to the call of the first.
func (a Agents) call(r *frame.Request) (frame.Done, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return frame.Done{}, err
	}
	scope, key, err := r.OnceKey()
	if err != nil {
		return frame.Done{}, err
	}
	variables := map[string]string{}
	for _, name := range agent.Draft.Places() {
		if v := r.Text("variable." + name); v != "" {
			variables[name] = v
		}
	}
	text, err := json.Marshal(map[string]any{
		"agent_id": agent.Name, "to_number": r.Text("to"), "route_id": r.Text("route"), "variables": variables, "metadata": map[string]any{"source": "dashboard"},
	})
	if err != nil {
		return frame.Done{}, fmt.Errorf("test call: %w", err)
	}
	body, err := schema.Parse(text)
	if err != nil {
		return frame.Done{}, err
	}
	shown, again, err := a.Calls.Place(r.Context(), r.Org(), scope, key, body)
	if err != nil {
		return frame.Done{}, refused(err)
	}
	var placed struct {
		ID string `json:"call_id"`
		To string `json:"to_number"`
	}
	if err = json.Unmarshal(shown, &placed); err != nil {
		return frame.Done{}, fmt.Errorf("test call: %w", err)
	}
	if again {
		return frame.Done{To: "calls/" + placed.ID, Say: "The call was placed already: a form places one."}, nil
	}
	err = r.Log(operator.Entry{Action: "call.place", Object: placed.ID, After: map[string]any{"agent": agent.Name, "to": placed.To}})
	return frame.Done{To: "calls/" + placed.ID, Say: "The call is placed."}, err
}

// refused puts the API's refusal of a call to the field that it is about.
func refused(err error) error {
	if invalid, ok := errors.AsType[*respond.InvalidError](err); ok {
		for _, issue := range invalid.Issues {
			switch loc := issue.Loc; {
			case len(loc) > 2 && loc[1] == "variables" && issue.Type == "missing":
				return frame.Invalid(fmt.Sprintf("variable.%v", loc[2]), "Say what this is.")
			case len(loc) > 2 && loc[1] == "variables":
				return frame.Invalid(fmt.Sprintf("variable.%v", loc[2]), issue.Msg)
			case len(loc) > 1 && loc[1] == "to_number":
				return frame.Invalid("to", issue.Msg)
			}
		}
		return frame.Invalid("", invalid)
	}
	if refusal, ok := errors.AsType[*control.Error](err); ok && (refusal.Code == control.CodeDestinationInvalid || refusal.Code == control.CodeDestinationNotAllowed) {
		return frame.Invalid("to", refusal.Message)
	}
	return err
}
