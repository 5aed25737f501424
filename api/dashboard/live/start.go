package live

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

// Checks tests what an organization needs for its first call.
type Checks interface {
	// Propose returns the definition of a first agent, with the providers that the organization can use.
	Propose(orgID string) agents.Definition
	// Tested reports whether the last test of each provider of d succeeded. It sends no requests.
	Tested(ctx context.Context, q db.Querier, orgID string, d agents.Definition) (bool, error)
	// Carrier returns "up", "down" or "unknown", and why the trunk is down. If ask is set, it sends OPTIONS first.
	Carrier(ctx context.Context, t media.Trunk, ask bool) (state, reason string)
}

// States of a step.
const (
	stepDone   = "done"
	stepToDo   = "to_do"
	stepFailed = "failed"
)

// A step is a part of the set-up of an organization. Its state is computed from the data of the organization, so it can
// be left and continued at any time.
type step struct {
	Label, State string
	Text         string    // what the step is for, or what is done
	Reason       string    // why it failed
	Links        []ui.Link // pages that do the step
	Buttons      []ui.Link // forms that do the step or check it again
	Seen         *ui.Field // hidden field of these forms: the object that they change; nil for none
	Now          bool      // the first step that is not done
}

// Done reports whether the step is done.
func (s step) Done() bool { return s.State == stepDone }

// fail sets why the step failed.
func (s *step) fail(reason string) { s.State, s.Reason = stepFailed, reason }

// setup is what the steps are computed from.
type setup struct {
	market string
	hidden bool
	trunks []trunks.Trunk
	routes []trunks.Route
	agents []agents.Summary
	agent  *agents.Summary // the first published agent, or the first draft
	draft  agents.Definition
	// newest is the newest phone call, or nil. answered means that a phone call was answered, and has ended.
	newest   *overview.Recent
	answered bool
	planned  bool // there is a campaign
}

func (l *Live) readSetup(r *ui.Request) (s setup, err error) {
	ctx, q, org := r.Context(), r.DB(), r.Org()
	if s, err = readRoutes(r, q); err != nil {
		return s, err
	}
	o, err := l.Campaigns.Organization(ctx, q, org)
	if err != nil {
		return s, err
	}
	s.market = o.Market
	if s.hidden, s.planned, err = overview.Setup(ctx, q, org); err != nil {
		return s, err
	}
	if s.trunks, err = trunks.List(ctx, q, org); err != nil {
		return s, err
	}
	if s.agent != nil {
		a, fault := agents.ByID(ctx, q, org, s.agent.ID)
		if fault != nil {
			return s, fault
		}
		s.draft = a.Draft
	} else if l.Checks != nil {
		s.draft = l.Checks.Propose(org)
	}
	if s.newest, err = overview.NewestPhoneCall(ctx, q, org); err != nil {
		return s, err
	}
	s.answered, err = overview.HasAnsweredPhoneCall(ctx, q, org)
	return s, err
}

// readRoutes reads the subgroups and the agents.
func readRoutes(r *ui.Request, q db.Querier) (s setup, err error) {
	if s.routes, err = trunks.Routes(r.Context(), q, r.Org(), ""); err != nil {
		return s, err
	}
	if s.agents, err = agents.List(r.Context(), q, r.Org()); err != nil || len(s.agents) == 0 {
		return s, err
	}
	at := max(0, slices.IndexFunc(s.agents, func(a agents.Summary) bool { return a.Published > 0 }))
	s.agent = &s.agents[at]
	return s, nil
}

// isInCall reports whether the newest phone call is in progress.
func (s setup) isInCall() bool { return s.newest != nil && !s.newest.Over }

// firstRoute returns what decides which agents call through the first subgroup. Forms that change it carry its digest.
func (s setup) firstRoute() any { return []any{s.routes[0].Subgroup, s.routes[0].Agents, s.agent.ID} }

// steps returns the way to the first campaign.
func (l *Live) steps(r *ui.Request, s setup) ([]step, error) {
	carrier := l.carrierStep(r, s)
	providers, err := l.providerStep(r, s)
	if err != nil {
		return nil, err
	}
	agent := l.agentStep(r, s)
	return []step{marketStep(r.Texts, s), carrier, providers, agent, callStep(r.Texts, s), campaignStep(r.Texts, s)}, nil
}

// next makes a form return to the page of the steps.
const next = "?next=start"

func marketStep(texts *ui.Texts, s setup) step {
	p := step{
		Label: texts.T("live.start.market.label"), State: stepToDo, Text: texts.T("live.start.market.text"),
		Links: []ui.Link{{Label: texts.T("live.start.market.choose"), Path: "market/use" + next, Role: operator.Owner}},
	}
	if s.market != "" {
		p.State, p.Text = stepDone, texts.T("live.start.market.done", "market", s.market)
		p.Links[0].Label = texts.T("live.start.market.change")
	}
	return p
}

func (l *Live) carrierStep(r *ui.Request, s setup) step {
	p := step{Label: r.Texts.T("live.start.carrier.label"), State: stepToDo, Text: r.Texts.T("live.start.carrier.text")}
	if len(s.trunks)+len(s.routes) == 0 {
		p.Links = []ui.Link{{Label: r.Texts.T("live.start.carrier.choose"), Path: "carriers" + next}}
		return p
	}
	if len(s.routes) == 0 {
		p.Links = []ui.Link{{Label: r.Texts.T("live.start.carrier.add_subgroup"), Path: "trunks/" + s.trunks[0].ID + "/subgroup" + next}}
		p.fail(r.Texts.T("live.start.carrier.no_subgroup", "trunk", s.trunks[0].Name))
		return p
	}
	if len(s.trunks) == 0 { // the trunk belongs to another organization
		p.State, p.Text = stepDone, r.Texts.T("live.start.carrier.lent", "trunk", s.routes[0].TrunkName)
		return p
	}
	reasons := []string{}
	for _, t := range s.trunks {
		state, reason := "unknown", ""
		if l.Checks != nil {
			state, reason = l.Checks.Carrier(r.Context(), t.MediaTrunk(), false)
		}
		if state == "up" {
			p.State, p.Text = stepDone, r.Texts.T("live.start.carrier.done", "trunk", t.Name)
			return p
		}
		if state == "down" {
			reason = cmp.Or(reason, r.Texts.T("live.start.carrier.no_answer"))
			reasons = append(reasons, r.Texts.T("live.start.carrier.down", "trunk", t.Name, "reason", reason))
		}
	}
	p.Text = r.Texts.T("live.start.carrier.saved", "trunk", s.trunks[0].Name)
	p.Links = []ui.Link{{Label: r.Texts.T("live.start.carrier.edit"), Path: "trunks/" + s.trunks[0].ID + "/edit" + next}}
	p.Buttons = []ui.Link{{Label: r.Texts.T("live.start.carrier.check"), Path: "start/carrier"}}
	if len(reasons) > 0 {
		p.Text = r.Texts.T("live.start.carrier.unusable", "trunk", s.trunks[0].Name)
		p.fail(r.Texts.Sentence(strings.Join(reasons, "; ")))
	}
	return p
}

func (l *Live) providerStep(r *ui.Request, s setup) (step, error) {
	e, none := s.draft.Speech, r.Texts.T("live.start.providers.none")
	p := step{
		Label: r.Texts.T("live.start.providers.label"), State: stepToDo,
		Text: r.Texts.T("live.start.providers.text",
			"asr", cmp.Or(e.ASR.Provider, none), "llm", cmp.Or(e.LLM.Provider, none), "tts", cmp.Or(e.TTS.Provider, none)),
	}
	if slices.Contains([]string{e.ASR.Provider, e.LLM.Provider, e.TTS.Provider}, "fake") {
		p.Text += " " + r.Texts.T("live.start.providers.fake")
	}
	if l.Agents == nil || l.Checks == nil {
		return p, nil
	}
	p.Buttons = []ui.Link{{Label: r.Texts.T("live.start.providers.test"), Path: "start/providers"}}
	engines := s.draft
	engines.Tools = nil // tools are not part of this step
	if err := l.Agents.Check(r.Context(), r.DB(), r.Org(), engines); err != nil {
		p.fail(r.Texts.Sentence(err.Error()))
		return p, nil
	}
	tested, err := l.Checks.Tested(r.Context(), r.DB(), r.Org(), s.draft)
	switch found := l.Agents.Warnings(r.Org(), engines); {
	case len(found) > 0:
		p.fail(r.Texts.Sentence(strings.Join(found, "; ")))
	case tested || s.answered:
		p.State = stepDone
	}
	return p, err
}

func (l *Live) agentStep(r *ui.Request, s setup) step {
	p := step{Label: r.Texts.T("live.start.agent.label"), State: stepToDo, Text: r.Texts.T("live.start.agent.text")}
	if s.agent == nil {
		p.Buttons = []ui.Link{{Label: r.Texts.T("live.start.agent.create"), Path: "start/agent"}}
		p.Links = []ui.Link{{Label: r.Texts.T("live.start.agent.write"), Path: "agents/new" + next}}
		return p
	}
	at := "agents/" + s.agent.ID
	p.Links = []ui.Link{{Label: r.Texts.T("live.start.agent.edit", "agent", s.agent.Name), Path: at + "/edit" + next}}
	if s.agent.Published == 0 {
		p.Text = r.Texts.T("live.start.agent.draft", "agent", s.agent.Name)
		publish := ui.Link{Label: r.Texts.T("live.start.agent.publish", "agent", s.agent.Name), Path: at + "/publish" + next}
		p.Links = append([]ui.Link{publish}, p.Links...)
		if l.Agents != nil {
			if err := l.Agents.Check(r.Context(), r.DB(), r.Org(), s.draft); err != nil {
				p.fail(r.Texts.Sentence(err.Error()))
			}
		}
		return p
	}
	p.State, p.Text = stepDone, r.Texts.T("live.start.agent.done", "agent", s.agent.Name)
	if len(s.routes) > 0 && !slices.ContainsFunc(s.routes, func(x trunks.Route) bool { return slices.Contains(x.Agents, s.agent.Name) }) {
		p.Buttons = []ui.Link{{Label: r.Texts.T("live.start.agent.allow", "agent", s.agent.Name), Path: "start/attach"}}
		p.Seen = new(r.Seen(s.firstRoute()))
		p.fail(r.Texts.T("live.start.agent.no_subgroup"))
	}
	return p
}

func callStep(texts *ui.Texts, s setup) step {
	p := step{Label: texts.T("live.start.call.label"), State: stepToDo, Text: texts.T("live.start.call.needs")}
	if s.agent != nil && s.agent.Published > 0 && len(s.routes) > 0 {
		p.Text = texts.T("live.start.call.text")
		p.Links = []ui.Link{{Label: texts.T("live.start.call.test"), Path: "agents/" + s.agent.ID + "/call" + next}}
	}
	if s.newest != nil {
		p.Links = append(p.Links, ui.Link{Label: texts.T("live.start.call.open"), Path: "calls/" + s.newest.ID, Role: operator.Viewer})
	}
	if s.answered {
		p.State, p.Text = stepDone, texts.T("live.start.call.done")
	}
	switch {
	case s.isInCall() && s.answered:
		p.Text += " " + texts.T("live.start.call.in_progress")
	case s.isInCall():
		p.Text = texts.T("live.start.call.in_progress")
	case s.newest != nil && !s.answered:
		p.fail(texts.Label("ui.end_reason", s.newest.Reason))
	}
	return p
}

func campaignStep(texts *ui.Texts, s setup) step {
	p := step{
		Label: texts.T("live.start.campaign.label"), State: stepToDo, Text: texts.T("live.start.campaign.text"),
		Links: []ui.Link{{Label: texts.T("live.start.campaign.new"), Path: "campaigns/new"}},
	}
	if s.market == "" {
		p.Text += " " + texts.T("live.start.campaign.needs_market")
	}
	if s.planned {
		p.State, p.Text = stepDone, texts.T("live.start.campaign.done")
		p.Links = []ui.Link{{Label: texts.T("live.start.campaign.open"), Path: "campaigns", Role: operator.Viewer}}
	}
	return p
}

type startPage struct {
	Steps   []step
	Done    int
	Hidden  bool
	Refresh bool // a call is in progress, or the answer of a carrier is awaited
}

func (l *Live) showStart(r *ui.Request) (ui.Page, error) {
	s, err := l.readSetup(r)
	if err != nil {
		return ui.Page{}, err
	}
	p := startPage{Hidden: s.hidden, Refresh: s.isInCall()}
	if p.Steps, err = l.steps(r, s); err != nil {
		return ui.Page{}, err
	}
	p.Refresh = p.Refresh || len(s.trunks) > 0 && p.Steps[1].State == stepToDo
	for i := range p.Steps {
		if p.Steps[i].Done() {
			p.Done++
		}
	}
	if now := slices.IndexFunc(p.Steps, func(x step) bool { return !x.Done() }); now >= 0 {
		p.Steps[now].Now = true
	}
	return ui.Page{
		Template: "start.html", Title: r.Texts.T("live.start.title"), Lead: r.Texts.T("live.start.lead"), Data: p,
	}, nil
}

// checkCarrier sends OPTIONS to the trunks.
func (l *Live) checkCarrier(r *ui.Request) (ui.Result, error) {
	all, err := trunks.List(r.Context(), r.DB(), r.Org())
	if err != nil || l.Checks == nil {
		return ui.Result{To: "start"}, err
	}
	reasons := []string{}
	for _, t := range all[:min(len(all), mostChecked)] {
		state, reason := l.Checks.Carrier(r.Context(), t.MediaTrunk(), true)
		if state == "up" {
			return ui.Result{To: "start", Notice: r.Texts.T("live.start.carrier.checked", "trunk", t.Name)}, nil
		}
		reason = cmp.Or(reason, r.Texts.T("live.start.carrier.no_answer_yet"))
		reasons = append(reasons, r.Texts.T("live.start.carrier.not_reached", "trunk", t.Name, "reason", reason))
	}
	return ui.Result{To: "start", Notice: r.Texts.T("live.start.carrier.failed", "reasons", strings.Join(reasons, "; ")), Failed: true}, nil
}

// mostChecked limits the trunks that a request checks, one after the other.
const mostChecked = 3

// testProviders sends a short request to each provider.
func (l *Live) testProviders(r *ui.Request) (ui.Result, error) {
	s, err := l.readSetup(r)
	if err != nil || l.Agents == nil {
		return ui.Result{To: "start"}, err
	}
	l.Agents.Probe(r.Context(), r.Org(), s.draft.Speech)
	l.Agents.Save(r.Context(), r.DB(), r.Org(), s.draft.Speech)
	p, err := l.providerStep(r, s)
	if p.State == stepFailed {
		return ui.Result{To: "start", Notice: p.Reason, Failed: true}, err
	}
	return ui.Result{To: "start", Notice: r.Texts.T("live.start.providers.checked")}, err
}

// createAgent creates the draft of a first agent.
func (l *Live) createAgent(r *ui.Request) (ui.Result, error) {
	name := "assistant"
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		if all, err := agents.List(r.Context(), q, r.Org()); err != nil || len(all) > 0 || l.Checks == nil {
			return operator.Entry{}, err
		}
		a := apply.FromAgent(agents.Agent{Name: name, Draft: l.Checks.Propose(r.Org())})
		if err := r.Apply(q, apply.Organization{Name: r.Member.Name, Agents: []apply.Agent{a}}); err != nil {
			return operator.Entry{}, err
		}
		is, err := agents.Find(r.Context(), q, r.Org(), name)
		if err != nil {
			return operator.Entry{}, err
		}
		routes, err := trunks.Routes(r.Context(), q, r.Org(), "")
		if err == nil && len(routes) > 0 && len(routes[0].Agents) == 0 {
			err = trunks.Attach(r.Context(), q, r.Org(), routes[0].ID, []string{is.ID})
		}
		return operator.Entry{Action: "agent.create", Object: is.ID, After: map[string]any{"name": name}}, err
	})
	return ui.Result{To: "start", Notice: r.Texts.T("live.start.agent.created")}, err
}

// attach lets the agent of the steps call through the first subgroup.
func (l *Live) attach(r *ui.Request) (ui.Result, error) {
	done := ui.Result{To: "start"}
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		s, err := readRoutes(r, q)
		if err != nil || s.agent == nil || len(s.routes) == 0 {
			return operator.Entry{}, err
		}
		x := s.routes[0]
		if r.Same(s.firstRoute()) != nil {
			return operator.Entry{}, ui.Invalid("", r.Texts.T("live.start.agent.changed", "trunk", x.TrunkName, "subgroup", x.Name))
		}
		ids := []string{s.agent.ID}
		for _, a := range s.agents {
			if slices.Contains(x.Agents, a.Name) {
				ids = append(ids, a.ID)
			}
		}
		done.Notice = r.Texts.T("live.start.agent.allowed", "agent", s.agent.Name, "trunk", x.TrunkName, "subgroup", x.Name)
		e := operator.Entry{Action: "subgroup.change", Object: x.ID, After: map[string]any{"name": x.Name, "agent": s.agent.Name}}
		return e, trunks.Attach(r.Context(), q, r.Org(), x.ID, ids)
	})
	return done, err
}

// hide removes the link to the steps from Overview, or shows it again.
func (l *Live) hide(r *ui.Request) (ui.Result, error) {
	hidden := r.Text("show") == ""
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		entry := operator.Entry{Action: "organization.setup", Object: r.Org(), After: map[string]any{"hidden": hidden}}
		return entry, overview.HideSetup(r.Context(), q, r.Org(), hidden)
	})
	if !hidden {
		return ui.Result{To: "start"}, err
	}
	return ui.Result{To: "overview", Notice: r.Texts.T("live.start.hidden")}, err
}
