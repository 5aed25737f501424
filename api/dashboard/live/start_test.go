package live_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
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
	says("1 of 6", "failed", "Trunk telnyx: registration: 403.")
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
	addCall := func(id, kind, status, reason, answered string) {
		h.Exec(t, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
			ring_seconds, created_at, disconnection_reason, answered_at, ended_at) VALUES ($1, $2, $3, $4, 'a', 'assistant', 1, '1', '1', '1',
			CASE WHEN $3 = 'phone' THEN 't' ELSE '' END, '', 45, clock_timestamp(), nullif($5, ''), nullif($6, '')::timestamptz, CASE WHEN $4 = 'ended' THEN now() END)`,
			id, h.Acme, kind, status, reason, answered)
	}
	addCall("call_0", "web", "ended", "caller_hangup", "2026-01-01")
	says("3 of 6", "Call your own phone to do")
	addCall("call_1", "phone", "ringing", "", "")
	says("3 of 6", "A call is in progress.")
	h.Exec(t, "UPDATE calls SET status = 'failed', disconnection_reason = 'auth_failed'")
	says("3 of 6", "The carrier rejected the trunk’s credentials.")
	if text := b.Get("overview").Text(); !strings.Contains(text, "The set-up is not finished.") {
		t.Errorf("Overview says %s", text)
	}
	addCall("call_2", "phone", "ended", "callee_hangup", "2026-01-01")
	says("A phone call was answered.")
	for n := range 21 {
		addCall("call_3"+strconv.Itoa(n), "phone", "failed", "busy", "")
	}
	says("4 of 6", "A phone call was answered.")
	addCall("call_4", "phone", "ringing", "", "")
	says("4 of 6", "A phone call was answered. A call is in progress.")
	if text := b.Follow("start/hide").Text(); !strings.Contains(text, "hidden") || strings.Contains(text, "not finished") {
		t.Errorf("Overview says %s", text)
	}
	says("Show these steps")
	b.Follow("start/hide", "show", "on")
	if text := b.Get("overview").Text(); !strings.Contains(text, "not finished") {
		t.Errorf("Overview says %s", text)
	}
}

// TestAttachAfterChange checks that the button of the agent's step does not undo what someone else changed after the page
// was opened.
func TestAttachAfterChange(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	h.Exec(t, "INSERT INTO agents (id, org_id, name, draft) SELECT 'agt_other', org_id, 'support', draft FROM agents")
	h.Exec(t, "DELETE FROM subgroup_agents")
	b := h.SignIn(t, "oscar")
	seen := func() string {
		t.Helper()
		_, form, _ := strings.Cut(b.Get("start").Body, `/start/attach">`)
		m := regexp.MustCompile(`^<input type="hidden" name="seen" value="([0-9a-f]+)">`).FindStringSubmatch(form)
		if m == nil {
			t.Fatalf("the form has no digest: %.200s", form)
		}
		return m[1]
	}
	attached := func() string {
		return h.Text(t, "SELECT coalesce(string_agg(agent_id, ' ' ORDER BY agent_id = 'agt_other'), '') FROM subgroup_agents WHERE subgroup_id = $1", ids["subgroups"])
	}
	opened := seen()
	h.Exec(t, "INSERT INTO subgroup_agents (org_id, subgroup_id, agent_id) VALUES ($1, $2, 'agt_other')", h.Acme, ids["subgroups"])
	page := b.Follow("start/attach", "seen", opened)
	if !strings.Contains(page.Text(), "someone else changed the subgroup sales / sales") || attached() != "agt_other" {
		t.Errorf("%q may call; the page says %s", attached(), page.Text())
	}
	page = b.Follow("start/attach", "seen", seen())
	if !strings.Contains(page.Text(), "sales may call through sales / sales.") || attached() != ids["agents"]+" agt_other" {
		t.Errorf("%q may call; the page says %s", attached(), page.Text())
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
