package trunks

import (
	"net/url"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/trunks"
)

// callable are the subgroups on a trunk, each with an agent that is published and may dial
// through it.
func callable(r *frame.Request) (t trunks.Trunk, all []frame.Option, err error) {
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
				all = append(all, frame.Option{Value: s.ID + " " + a.ID, Label: a.Name + " through " + s.Name})
			}
		}
	}
	return t, all, nil
}

func (Trunks) askCall(r *frame.Request) (frame.Page, error) {
	t, all, err := callable(r)
	if err != nil {
		return frame.Page{}, err
	}
	if len(all) == 0 {
		return frame.Page{}, &frame.ProblemError{Status: 409, Title: "Nobody can call through it yet", Text: "A test call needs a subgroup on the trunk, and an agent that is published and may dial through it."}
	}
	return frame.Page{
		Template: "form.html", Title: "Test call through " + t.Name, Crumbs: above(of(t)), Lead: "Whom to call is asked next.",
		Data: r.Form(frame.Form{Submit: "Go on", Cancel: r.URL("trunks/" + t.ID), Fields: []frame.Field{
			{Name: "by", Label: "Who calls", Kind: frame.Select, Options: all},
		}}),
	}, nil
}

// call leads to the page on which the agent that was chosen calls.
func (Trunks) call(r *frame.Request) (frame.Done, error) {
	_, all, err := callable(r)
	if err != nil {
		return frame.Done{}, err
	}
	if !slices.ContainsFunc(all, func(o frame.Option) bool { return o.Value == r.Text("by") }) {
		return frame.Done{}, frame.Invalid("by", "Choose one of these.")
	}
	route, agent, _ := strings.Cut(r.Text("by"), " ")
	return frame.Done{To: "agents/" + agent + "/call?route=" + url.QueryEscape(route)}, nil
}
