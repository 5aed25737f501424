package trunks

import (
	"net/url"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/trunks"
)

// callable lists the subgroups of a trunk with each published agent attached to them.
func callable(r *ui.Request) (t trunks.Trunk, all []ui.Option, err error) {
	if t, err = find(r, r.DB()); err != nil {
		return t, nil, err
	}
	routes, err := trunks.Routes(r.Context(), r.DB(), r.Org(), "")
	if err != nil {
		return t, nil, err
	}
	known, err := agents.List(r.Context(), r.DB(), r.Org())
	if err != nil {
		return t, nil, err
	}
	for _, s := range routes {
		for _, a := range known {
			if s.TrunkID == t.ID && a.Published > 0 && slices.Contains(s.Agents, a.Name) {
				all = append(all, ui.Option{
					Value: s.ID + " " + a.ID,
					Label: r.Texts.T("trunks.call.option.through", "agent", a.Name, "subgroup", s.Name),
				})
			}
		}
	}
	return t, all, nil
}

func (Trunks) askCall(r *ui.Request) (ui.Page, error) {
	t, all, err := callable(r)
	if err != nil {
		return ui.Page{}, err
	}
	if len(all) == 0 {
		return ui.Page{}, &ui.ProblemError{
			Status: 409,
			Title:  r.Texts.T("trunks.call.none.title"),
			Text:   r.Texts.T("trunks.call.none.text"),
		}
	}
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("trunks.call.title", "name", t.Name), Crumbs: crumbs(r.Texts, trunkLink(t)),
		Lead: r.Texts.T("trunks.call.lead"),
		Data: r.Form(ui.Form{Submit: r.Texts.T("ui.form.continue"), Cancel: r.URL("trunks/" + t.ID), Fields: []ui.Field{
			{Name: "by", Label: r.Texts.T("trunks.call.by.label"), Kind: ui.Select, Options: all},
		}}),
	}, nil
}

// call redirects to the test call page of the chosen agent.
func (Trunks) call(r *ui.Request) (ui.Result, error) {
	_, all, err := callable(r)
	if err != nil {
		return ui.Result{}, err
	}
	if !slices.ContainsFunc(all, func(o ui.Option) bool { return o.Value == r.Text("by") }) {
		return ui.Result{}, ui.Invalid("by", r.Texts.T("trunks.call.invalid.by"))
	}
	route, agent, _ := strings.Cut(r.Text("by"), " ")
	return ui.Result{To: "agents/" + agent + "/call?route=" + url.QueryEscape(route)}, nil
}
