package dashtest

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/control/webhook"
)

// Furnish creates one object of each kind in acme, all with the same name, which may be
// hostile. It returns the ID for {id} in paths, by the first word of the path.
func (h *Env) Furnish(t *testing.T, name string) map[string]string {
	t.Helper()
	ctx, q := t.Context(), h.DB.Pool
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]string{}
	var err error
	ids["keys"], _, err = apikeys.CreateKey(ctx, q, apikeys.Key{OrgID: h.Acme, Name: name})
	must(err)
	engine, yes, greeting := &apply.Engine{Provider: "fake", Model: name, Voice: name}, true, name+" {{first_name}}"
	must(apply.WithinTx(ctx, q, apply.Spec{Organizations: []apply.Organization{{Name: "acme", Agents: []apply.Agent{{
		Name: name, Published: &yes, Greeting: &greeting, Prompt: &name, Message: &name,
		Speech:    &apply.Speech{ASR: engine, LLM: engine, TTS: engine},
		Variables: &map[string]string{"who": name},
		Analysis:  &apply.Analysis{Fields: &[]agents.Field{{Name: "topic", Type: "string", Description: name}}},
	}}}}}, apply.Options{}))
	sales, err := agents.Find(ctx, q, h.Acme, name)
	must(err)
	ids["agents"] = sales.ID
	trunk := trunks.Trunk{ //nolint:gosec // nobody's password
		OrgID: h.Acme, Name: name, Proxy: "sip:127.0.0.1:5080;transport=udp", Username: "u",
		Password: "canary-trunk-password", CallerNumbers: []string{"+12025550100"},
		Settings: trunks.Settings{Provider: name, Headers: map[string]string{"X-Customer": "7"}, Rates: map[string]float64{"1": 0.01}},
	}
	ids["trunks"], err = trunks.Save(ctx, q, trunk)
	must(err)
	ids["subgroups"], err = trunks.SaveSubgroup(ctx, q, trunks.Subgroup{
		OrgID: h.Acme, TrunkID: ids["trunks"],
		Name: name, AllowedDestinations: []string{"1"}, ConcurrentCalls: 5, CallsPerMinute: 30,
	})
	must(err)
	must(trunks.Attach(ctx, q, h.Acme, ids["subgroups"], []string{ids["agents"]}))
	must(trunks.ReplaceGrants(ctx, q, h.Acme, []trunks.Grant{{OrgID: h.Globex, TrunkID: ids["trunks"]}}))
	one := func(sql string) (id string) {
		t.Helper()
		must(q.QueryRow(ctx, sql).Scan(&id))
		return id
	}
	ids["grants"], ids["operators"] = one("SELECT id FROM grants"), one("SELECT id FROM operators WHERE email = 'vera@example.com'")
	_, err = q.Exec(ctx, "INSERT INTO operator_identities (operator_id, issuer, subject) VALUES ($1, 'https://idp.example', $2)",
		ids["operators"], name)
	must(err)
	hook, err := webhook.Create(ctx, q, webhook.Endpoint{
		OrgID: h.Acme,
		URL:   "https://hooks.example.com/parley", Secret: webhook.NewSecret(), Events: webhook.Types(),
	})
	must(err)
	ids["webhooks"], ids["deliveries"], ids["do-not-call"], ids["calls"], ids["carriers"] = hook.ID, "evt_1", "12025550123", "call_1", "telnyx"
	_, err = q.Exec(ctx, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
		trunk_id, route_id, ring_seconds, created_at, name) VALUES ('call_1', $1, 'phone', 'ended', $2, $5, 1, '12025550123', '12025550100', '12025550123', $3, $4, 45, now(), $5)`,
		h.Acme, ids["agents"], ids["trunks"], ids["subgroups"], name)
	must(err)
	_, err = q.Exec(ctx, `INSERT INTO webhook_deliveries (id, endpoint_id, call_id, type, payload, state, tries, next_at, created_at, last_status, last_error, settled_at, org_id)
		VALUES ('evt_1', $1, 'call_1', 'call_ended', $2, 'dead', 10, $3, $3, NULL, $4, $3, $5)`, ids["webhooks"], []byte(`{"type":"call_ended"}`), time.Now(), name, h.Acme)
	must(err)
	_, _, err = dnc.AddNumber(ctx, q, h.Acme, ids["do-not-call"])
	must(err)
	h.furnishCalls(t, name, ids)
	return ids
}
