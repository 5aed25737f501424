package dashboard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// setupChecks are checks of carriers and providers whose results a scene sets.
type setupChecks struct {
	agents.ProviderChecker

	carrier, reason string
	tested          bool
	fault           error
	warnings        []string
}

func (c *setupChecks) Propose(string) agents.Definition {
	d := agents.Default()
	d.Speech.ASR.Provider, d.Speech.LLM.Provider, d.Speech.TTS.Provider = "deepgram", "openai", "elevenlabs"
	return d
}

func (c *setupChecks) Tested(context.Context, db.Querier, string, agents.Definition) (bool, error) {
	return c.tested, nil
}

func (c *setupChecks) Carrier(context.Context, media.Trunk, bool) (state, reason string) {
	return c.carrier, c.reason
}

func (c *setupChecks) Check(context.Context, db.Querier, string, agents.Definition) error {
	return c.fault
}

func (c *setupChecks) Warnings(string, agents.Definition) []string { return c.warnings }

// settingUp shows the page of the set-up in its states, and the forms that it opens.
func settingUp(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	c := &setupChecks{}
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Checks, h.Dashboard.Agents = c, c })
	agent := func() string { return h.Text(t, "SELECT id FROM agents WHERE org_id = $1", h.Acme) }
	start := func(checks setupChecks, b dashtest.Tab) {
		*c = checks
		b.Go("start")
	}
	return h, []scene{
		{"start_nothing", func(b dashtest.Tab) {
			for _, table := range []string{"operator_sessions", "calls", "subgroup_agents", "subgroups", "trunks", "agent_versions", "agents"} {
				h.Exec(t, "DELETE FROM "+table)
			}
			h.Exec(t, "UPDATE organizations SET settings = settings - 'market'")
			*c = setupChecks{}
			b.SignIn("ada")
			b.Go("start")
		}},
		{"start_carriers", func(b dashtest.Tab) { b.Go("carriers?next=start") }},
		{"start_carrier_refused", func(b dashtest.Tab) {
			b.Go("carriers/telnyx?next=start")
			b.Run("document.querySelector('[name=caller_numbers]').removeAttribute('required')")
			b.Press("Connect")
		}},
		{"start_carrier_down", func(b dashtest.Tab) {
			h.AddSales(t, "us", false)
			start(setupChecks{carrier: "down", reason: "registration: 403 Forbidden"}, b)
		}},
		{"start_providers_failed", func(b dashtest.Tab) {
			start(setupChecks{carrier: "up", fault: errors.New("speech-to-text: deepgram refuses the key")}, b)
		}},
		{"start_draft", func(b dashtest.Tab) { start(setupChecks{carrier: "up", tested: true}, b) }},
		{"publish_fault", func(b dashtest.Tab) {
			c.fault = errors.New("voice: no key for elevenlabs is set")
			b.Go("agents/" + agent() + "/publish?next=start")
		}},
		{"publish_warnings", func(b dashtest.Tab) {
			c.fault, c.warnings = nil, []string{"voice: elevenlabs failed in the last 10 minutes"}
			b.Go("agents/" + agent() + "/publish?next=start")
		}},
		{"start_call_failed", func(b dashtest.Tab) {
			h.Exec(t, "INSERT INTO agent_versions (agent_id, version, definition) SELECT id, 1, draft FROM agents")
			h.Exec(t, "UPDATE agents SET published_version = 1")
			h.Exec(t, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
				ring_seconds, created_at, disconnection_reason) VALUES ('call_1', $1, 'phone', 'failed', 'a', 'sales', 1, '12025550123', '12025550100', '12025550123', 't', 'r', 45, now(), 'no_answer')`, h.Acme)
			start(setupChecks{carrier: "up", tested: true}, b)
		}},
		{"start_call_answered", func(b dashtest.Tab) {
			h.Exec(t, "UPDATE calls SET status = 'ended', answered_at = now(), ended_at = now(), disconnection_reason = 'callee_hangup'")
			start(setupChecks{carrier: "up", tested: true}, b)
		}},
		{"start_viewer", func(b dashtest.Tab) {
			h.Exec(t, "DELETE FROM operator_sessions")
			b.SignIn("vera")
			b.Go("start")
		}},
	}
}

// agentAtWork shows an agent whose draft differs from its published version, with providers to choose from.
func agentAtWork(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	h := dashtest.New(t, withFakes(t, fakeprovider.Script{}))
	id := h.Furnish(t, "sales")["agents"]
	h.Exec(t, `UPDATE agents SET draft = (draft::jsonb || '{"greeting": "Hello {{first_name}}, this is Anna from the book shop.",
		"prompt": "You are Anna from the book shop.\nYou call people whose order has arrived.\nNever ask for card numbers."}')::json WHERE id = $1`, id)
	at := "agents/" + id
	all := []scene{{"agent_changed", func(b dashtest.Tab) {
		h.Exec(t, "DELETE FROM operator_sessions")
		b.SignIn("oscar")
		b.Go(at)
	}}}
	all = append(all, pages(at+"/edit", at+"/diff")...)
	return h, append(all, scene{"agent_chat_answered", func(b dashtest.Tab) {
		b.Go(at + "/chat")
		b.Fill("[name='variable.first_name']", "Ada")
		b.Fill("[name=message]", "Is the atlas there?")
		b.Run(`document.querySelector("[data-chat] button.first").click()`)
		b.Until(`document.querySelector(".chat-lines").innerText.includes("First word after")`)
	}})
}
