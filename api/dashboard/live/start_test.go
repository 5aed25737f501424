package live_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// checks are tests of carriers and providers with set results.
type checks struct {
	agents.ProviderChecker

	state, reason string
	tested        bool
	fault         error
}

func (c *checks) Propose(string) agents.Definition {
	d := agents.Default()
	d.Greeting, d.Speech.ASR.Provider, d.Speech.LLM.Provider, d.Speech.TTS.Provider = "Hello.", "deepgram", "openai", "cartesia"
	return d
}

func (c *checks) Tested(context.Context, db.Querier, string, agents.Definition) (bool, error) {
	return c.tested, nil
}

func (c *checks) Carrier(_ context.Context, _ media.Trunk, ask bool) (state, reason string) {
	if ask && c.state == "unknown" {
		return "down", "no answer"
	}
	return c.state, c.reason
}

func (c *checks) Check(context.Context, db.Querier, string, agents.Definition) error { return c.fault }

func (c *checks) Warnings(string, agents.Definition) []string { return nil }

// TestSetup leads an organization through the steps. Each state follows from the data alone.
func TestSetup(t *testing.T) {
	c := &checks{state: "unknown"}
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Checks = c })
	b, viewer := h.SignIn(t, "ada"), h.SignIn(t, "vera")
	says := func(want ...string) {
		t.Helper()
		page := b.Get("start")
		for _, text := range want {
			if !strings.Contains(page.Text(), text) {
				t.Errorf("the page lacks %q: %s", text, page.Text())
			}
		}
		if strings.Contains(page.Body, "canary") {
			t.Error("the page shows a secret")
		}
	}
	says("0 of 6", "Choose rules", "Choose a carrier", "deepgram", "Create a first agent")
	if text := b.Get("overview").Text(); !strings.Contains(text, "Set up calling") {
		t.Errorf("Overview says %s", text)
	}
	if page := viewer.Get("start"); page.Status != http.StatusOK || strings.Contains(page.Body, `<form method="post" action="/dashboard/`+h.Acme) || !strings.Contains(page.Text(), "An owner can do this.") {
		t.Errorf("a viewer sees %s", page.Body)
	}
	if a := b.Post("market/use?next=start", "rules", "us"); !strings.HasSuffix(a.Location(), "/start") {
		t.Errorf("the rules lead to %s", a.Location())
	}
	says("1 of 6", "Market: us.")
	for _, to := range []string{"//evil.example", "https://evil.example", "/dashboard", "a?b=c", "a%0d"} {
		if a := b.Post("market/use?next="+to, "rules", "us"); !strings.HasSuffix(a.Location(), "/market") {
			t.Errorf("next=%s leads to %s", to, a.Location())
		}
	}
	back := `<a class="button" href="` + b.URL("start") + `">Cancel</a>`
	for _, to := range []string{"market/use", "carriers/telnyx", "trunks/new", "agents/new"} {
		if page := b.Get(to + "?next=start").Body; !strings.Contains(page, back) {
			t.Errorf("Cancel on %s does not lead to the steps", to)
		}
		if page := b.Get(to + "?next=//evil.example").Body; strings.Contains(page, "evil") || strings.Contains(page, back) {
			t.Errorf("%s leads elsewhere", to)
		}
	}
	if list := b.Get("carriers?next=start").Body; !strings.Contains(list, `/carriers/telnyx?next=start"`) {
		t.Errorf("the list of carriers forgets the steps: %s", list)
	}
	if a := b.Post("carriers/telnyx", "username", "u", "password", "canary", "caller_numbers", ""); a.Status != http.StatusUnprocessableEntity || strings.Contains(a.Body, "canary") {
		t.Errorf("a carrier without numbers: %d %s", a.Status, a.Text())
	}
	if a := b.Post("carriers/twilio", "username", "u", "caller_numbers", "+12025550100"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `id="f-proxy-error"`) {
		t.Errorf("a carrier without proxy: %d %s", a.Status, a.Text())
	}
	b.Follow("carriers/telnyx", "username", "u", "password", "canary", "caller_numbers", "+12025550100\n+12025550101")
	says("1 of 6", "Trunk telnyx is saved", "Check now")
	if text := b.Follow("start/carrier").Text(); !strings.Contains(text, "Not reached: telnyx: no answer.") {
		t.Errorf("the check says %s", text)
	}
	c.state, c.reason = "down", "registration: 403"
	says("1 of 6", "failed", "Telnyx: registration: 403.")
	c.state = "up"
	says("2 of 6", "the carrier answers")
	if n := h.Count(t, "SELECT count(*) FROM subgroups WHERE org_id = $1 AND allowed_destinations = '{US}' AND name = 'default'", h.Acme); n != 1 {
		t.Errorf("%d subgroups", n)
	}
	testAgentSteps(t, h, b, says)
}

func testAgentSteps(t *testing.T, h *dashtest.Env, b *dashtest.Browser, says func(...string)) {
	t.Helper()
	b.Follow("start/agent")
	b.Follow("start/agent") // creates no second one
	says("2 of 6", "The agent assistant is a draft.", "Publish assistant")
	id := h.Text(t, "SELECT id FROM agents WHERE org_id = $1", h.Acme)
	h.Exec(t, "INSERT INTO agent_versions (agent_id, version, definition) SELECT id, 1, draft FROM agents WHERE id = $1", id)
	h.Exec(t, "UPDATE agents SET published_version = 1 WHERE id = $1", id)
	says("3 of 6", "The agent assistant is published.", "Test call")
	h.Exec(t, "DELETE FROM subgroup_agents")
	says("2 of 6", "No subgroup of a trunk lets the agent call.")
	b.Follow("start/attach")
	says("3 of 6")
	addCall := func(id, status, reason, answered string) {
		h.Exec(t, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
			ring_seconds, created_at, disconnection_reason, answered_at) VALUES ($1, $2, 'phone', $3, 'a', 'assistant', 1, '1', '1', '1', 't', 'r', 45, now(), nullif($4, ''), nullif($5, '')::timestamptz)`,
			id, h.Acme, status, reason, answered)
	}
	addCall("call_1", "ringing", "", "")
	says("3 of 6", "A call is in progress.")
	h.Exec(t, "UPDATE calls SET status = 'failed', disconnection_reason = 'auth_failed'")
	says("3 of 6", "The carrier rejected the trunk’s credentials.")
	if text := b.Get("overview").Text(); !strings.Contains(text, "The set-up is not finished.") {
		t.Errorf("Overview says %s", text)
	}
	addCall("call_2", "ended", "callee_hangup", "2026-01-01")
	says("A call was answered.")
	if text := b.Follow("start/hide").Text(); !strings.Contains(text, "hidden") || strings.Contains(text, "not finished") {
		t.Errorf("Overview says %s", text)
	}
	says("Show these steps")
	b.Follow("start/hide", "show", "on")
	if text := b.Get("overview").Text(); !strings.Contains(text, "not finished") {
		t.Errorf("Overview says %s", text)
	}
}

// TestSetupProviders checks the states of the step about providers.
func TestSetupProviders(t *testing.T) {
	c := &checks{}
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Checks, h.Dashboard.Agents = c, c })
	b := h.SignIn(t, "oscar")
	for _, tt := range []struct {
		tested bool
		fault  error
		want   string
	}{
		{false, nil, "Check the providers to do"},
		{false, errors.New("deepgram refuses the key"), "Check the providers failed"},
		{true, errors.New("deepgram refuses the key"), "Deepgram refuses the key."},
		{true, nil, "Check the providers done"},
	} {
		c.tested, c.fault = tt.tested, tt.fault
		if text := b.Get("start").Text(); !strings.Contains(text, tt.want) {
			t.Errorf("%+v: %s", tt, text)
		}
	}
}
