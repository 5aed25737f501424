package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func (h *env) setMarket(code string) {
	h.t.Helper()
	h.exec("UPDATE organizations SET settings = settings || jsonb_build_object('market', $2::text), timezone = 'America/New_York' WHERE id = $1", h.org, code)
}

func (h *env) campaign(key, more string) response {
	h.t.Helper()
	return h.do("POST", "/v1/campaigns", `{"name":"Spring","agent_id":"sales","calls_per_minute":20`+more+`}`, "Idempotency-Key", key)
}

func codes(t *testing.T, m map[string]any, name string) string {
	t.Helper()
	all, ok := m[name].([]any)
	if !ok {
		t.Fatalf("%s is %v", name, m[name])
	}
	var found []string
	for _, x := range all {
		found = append(found, x.(map[string]any)["code"].(string))
	}
	return strings.Join(found, " ")
}

func TestCampaignRuns(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	a := h.campaign("k1", `,"planned_calls":[{"phone":"2125550123","name":"Ada","variables":{"first_name":"Ada"}},{"phone":12125550124},{"phone":"4165550123"},{"phone":"12"}],
		"attestation":{"confirmed":true},"working_hours":[{"days":[4,0,0],"start":"10:00","end":"17:00"}]`)
	if a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	c := a.json(t)
	for name, want := range map[string]string{
		"status": `"running"`, "created_via": `"api"`, "launched_via": `"api"`, "name": `"Spring"`, "agent_id": `"sales"`, "timezone": `"America/New_York"`,
		"timezone_source": `"organization"`, "starts_at": `null`, "accepts_call_additions": `false`, "calls_per_minute": `20`, "call_strategy": `"standard"`,
		"classification": `"marketing"`, "consent_tier": `"pewc"`, "retry_config": `{"attempts":1,"interval_s":900}`, "duplicate_action": `"reject"`,
		"working_hours": `[{"days":[0,4],"end":"17:00","start":"10:00"}]`, "market": `"us"`, "agent_version": `1`,
		"binding": fmt.Sprintf(`{"from_number":"+12025550100","route_id":"%s","trunk_id":"%s"}`, h.route, h.trunk),
	} {
		if got, err := json.Marshal(c[name]); err != nil || string(got) != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := codes(t, c, "blockers"); got != "" {
		t.Errorf("blockers: %s", got)
	}
	if got := codes(t, c, "warnings"); !strings.HasPrefix(got, "starts_immediately frequency_policy_active contacts_geo_partially_rejected") {
		t.Errorf("warnings: %s", got)
	}
	i := c["import"].(map[string]any)
	for name, want := range map[string]any{"status": "accepted", "rows_seen": 4.0, "accepted": 3.0, "warned": 1.0, "rejected": 1.0, "duplicates_found": 0.0, "refusal_code": ""} {
		if i[name] != want {
			t.Errorf("import.%s is %v, want %v", name, i[name], want)
		}
	}
	if s := c["dnc_screen"].(map[string]any); s["as_of_launch"] != true || s["audit_id"] == 0.0 || s["status"] != "unscreened" || s["import_id"] != i["import_id"] {
		t.Errorf("screen: %v", s)
	}
	// GET checks the campaign again. The request has no attestation, so GET reports that blocker.
	id := c["campaign_id"].(string)
	if got := codes(t, h.do("GET", "/v1/campaigns/"+id, "").json(t), "blockers"); got != "attestation_required" {
		t.Errorf("blockers of a read: %s", got)
	}
	again := h.campaign("k1", `,"planned_calls":[{"phone":"2125550123","name":"Ada","variables":{"first_name":"Ada"}},{"phone":12125550124},{"phone":"4165550123"},{"phone":"12"}],
		"attestation":{"confirmed":true},"working_hours":[{"days":[4,0,0],"start":"10:00","end":"17:00"}]`)
	if again.status != http.StatusCreated || string(again.body) != string(a.body) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replayed: %d %s", again.status, again.body)
	}
	if got := h.campaign("k1", ""); got.code() != "idempotency_key_reuse" {
		t.Errorf("another body: %d %s", got.status, got.body)
	}
	for _, step := range []struct{ do, status, code string }{
		{"resume", "running", ""},
		{"pause", "paused", ""},
		{"pause", "paused", ""},
		{"launch", "", "attestation_import_id_required"},
		{"resume", "running", ""},
		{"cancel", "cancelled", ""},
		{"cancel", "cancelled", ""},
		{"resume", "", "campaign_transition_invalid"},
		{"pause", "", "campaign_transition_invalid"},
	} {
		got := h.do("POST", "/v1/campaigns/"+id+"/"+step.do, "{}")
		if got.code() != step.code || step.status != "" && got.json(t)["status"] != step.status {
			t.Errorf("%s: %d %s", step.do, got.status, got.body)
		}
		if m := got.json(t); step.code == "" && (m["blockers"] != nil || m["warnings"] != nil) {
			t.Errorf("%s returns checks", step.do)
		}
	}
}

func TestCampaignDraft(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	h.exec("INSERT INTO suppressions (org_id, number) VALUES ($1, '2125550124')", h.org)
	a := h.campaign("k", `,"planned_calls":[{"phone":"2125550123"},{"phone":"2125550124"}]`)
	c := a.json(t)
	if a.status != http.StatusCreated || c["status"] != "draft" || c["launched_via"] != "" || codes(t, c, "blockers") != "attestation_required dnc_matches" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id, imp := c["campaign_id"].(string), c["import"].(map[string]any)["import_id"].(string)
	launch := func(body string) response { return h.do("POST", "/v1/campaigns/"+id+"/launch", body) }
	for body, code := range map[string]string{
		`{}`: "attestation_import_id_required", `{"attestation":{"confirmed":true}}`: "attestation_import_id_required",
		`{"attestation":{"import_id":"` + imp + `"},"dnc":"maybe"}`:                                    "dnc_decision_invalid",
		`{"attestation":{"confirmed":true,"import_id":"` + imp + `"}}`:                                 "launch_blocked",
		`{"attestation":{"confirmed":true,"import_id":"imp_00000000000000000000000000"},"dnc":"skip"}`: "launch_blocked",
		`{"attestation":{"confirmed":"true","import_id":"` + imp + `"},"dnc":"skip"}`:                  "launch_blocked",
		`{"attestation":7}`: "invalid_request",
	} {
		if got := launch(body); got.code() != code {
			t.Errorf("%s: %d %s, want %s", body, got.status, got.body, code)
		}
	}
	blocked := launch(`{"attestation":{"confirmed":true,"import_id":"` + imp + `"}}`)
	var e struct {
		Error struct {
			Blockers []struct{ Code, Field string }
		}
	}
	if err := json.Unmarshal(blocked.body, &e); err != nil || len(e.Error.Blockers) != 1 || e.Error.Blockers[0].Code != "dnc_matches" || e.Error.Blockers[0].Field != "dnc" {
		t.Errorf("%s %v", blocked.body, err)
	}
	a = launch(`{"attestation":{"confirmed":true,"import_id":"` + imp + `"},"dnc":"skip"}`)
	c = a.json(t)
	if a.status != http.StatusOK || c["status"] != "running" || codes(t, c, "blockers") != "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if s := c["dnc_screen"].(map[string]any); s["suppressed_contacts"] != 1.0 || s["decision"] != "skip" || s["matched_rows"] != 1.0 {
		t.Errorf("%v", s)
	}
	if got := launch(`{"attestation":{"import_id":"` + imp + `"}}`); got.status != http.StatusOK {
		t.Errorf("a second launch: %d %s", got.status, got.body)
	}
	// The stored screening does not change with the lists.
	h.exec("DELETE FROM suppressions")
	if s := h.do("GET", "/v1/imports/"+imp, "").json(t)["dnc_screen"].(map[string]any); s["matched_rows"] != 1.0 || s["as_of_launch"] != true {
		t.Errorf("%v", s)
	}
	if rows := h.count("SELECT count(*) FROM attestations WHERE org_id = $1", h.org); rows != 1 {
		t.Errorf("%d attestations", rows)
	}
	if _, err := h.db.Pool.Exec(t.Context(), "UPDATE attestations SET actor = 'x'"); err == nil {
		t.Error("an attestation was changed")
	}
}

// TestCampaignRejections checks that a rejection before the campaign exists stores nothing and frees the key, and
// that after it the campaign and the key stay.
func TestCampaignRejections(t *testing.T) {
	h := newEnv(t)
	for body, code := range map[string]string{
		`{"agent_id":"sales","calls_per_minute":20}`:                                            "invalid_request",
		`{"name":"x","agent_id":"sales","calls_per_minute":20,"dnc":"maybe"}`:                   "dnc_decision_invalid",
		`{"name":"x","agent_id":"sales","calls_per_minute":20.5}`:                               "invalid_request",
		`{"name":"x","agent_id":"sales","calls_per_minute":3}`:                                  "campaign_spec_invalid",
		`{"name":"x","agent_id":"unknown","calls_per_minute":20}`:                               "campaign_agent_unknown",
		`{"name":"x","agent_id":"sales","calls_per_minute":20,"planned_calls":[7]}`:             "invalid_request",
		`{"name":"x","agent_id":"sales","calls_per_minute":20,"retry_config":{"attempts":"2"}}`: "invalid_request",
		`{"name":"x","agent_id":"sales","calls_per_minute":20,"retry_config":{"attempts":99}}`:  "campaign_spec_invalid",
		`{"name":"x","agent_id":"sales","calls_per_minute":20,"working_hours":[{"days":[0]}]}`:  "campaign_spec_invalid",
		`{"name":"x","agent_id":"sales","calls_per_minute":20,"route_id":"rte_1"}`:              "dialing_binding_incomplete",
	} {
		if got := h.do("POST", "/v1/campaigns", body, "Idempotency-Key", "k"); got.code() != code {
			t.Errorf("%s: %d %s, want %s", body, got.status, got.body, code)
		}
	}
	if got := h.do("POST", "/v1/campaigns", `{"name":"x","agent_id":"sales","calls_per_minute":20}`, "Idempotency-Key", "  "); got.code() != "idempotency_key_required" {
		t.Errorf("a blank key: %s", got.body)
	}
	count := func() int { return h.count("SELECT count(*) FROM campaigns") }
	if n := count(); n != 0 {
		t.Errorf("%d campaigns were created", n)
	}
	if got := h.campaign("k", `,"planned_calls":[{"phone":"2125550123"}]`); got.code() != "market_package_not_installed" || got.status != http.StatusConflict {
		t.Errorf("no market: %d %s", got.status, got.body)
	}
	if got := h.campaign("k", `,"planned_calls":[{"phone":"2125550123"}]`); got.code() != "idempotency_key_in_flight" {
		t.Errorf("the key was freed: %d %s", got.status, got.body)
	}
	if n := count(); n != 1 {
		t.Errorf("%d campaigns, want the draft", n)
	}
	_, foreign := h.organization("globex")
	var id string
	if err := h.db.Pool.QueryRow(t.Context(), "SELECT id FROM campaigns").Scan(&id); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/campaigns/" + id, "/v1/campaigns/cmp_00000000000000000000000000", "/v1/campaigns/x"} {
		if got := h.do("GET", path, "", "Authorization", "Bearer "+foreign); got.code() != "campaign_not_found" || got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// TestCampaignOnce checks that concurrent equal requests create one campaign.
func TestCampaignOnce(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	var all sync.WaitGroup
	answers := make([]response, 20)
	for i := range answers {
		all.Go(func() {
			answers[i] = h.campaign("same", `,"planned_calls":[{"phone":"2125550123"}],"attestation":{"confirmed":true}`)
		})
	}
	all.Wait()
	ids := map[string]bool{}
	for _, a := range answers {
		switch {
		case a.status == http.StatusCreated:
			ids[a.json(t)["campaign_id"].(string)] = true
		case a.code() != "idempotency_key_in_flight":
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := h.count("SELECT count(*) FROM campaigns"); n != 1 || len(ids) != 1 {
		t.Errorf("%d campaigns, %d ids", n, len(ids))
	}
}

func TestCampaignList(t *testing.T) {
	h := newEnv(t)
	for i := range 5 {
		more := fmt.Sprintf(`,"classification":"%s"`, []string{"marketing", "servicing"}[i%2])
		if a := h.campaign(fmt.Sprint("k", i), more); a.status != http.StatusCreated || a.json(t)["import"] != nil || a.json(t)["status"] != "draft" {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	var seen []string
	next := ""
	for range 5 {
		p := h.do("GET", "/v1/campaigns?limit=2&order=asc"+next, "").json(t)
		for _, x := range p["campaigns"].([]any) {
			m := x.(map[string]any)
			if m["blockers"] != nil || m["timezone_source"] != "organization" || m["accepts_call_additions"] != false {
				t.Errorf("%v", m)
			}
			seen = append(seen, m["campaign_id"].(string))
		}
		if p["has_more"] == false {
			break
		}
		next = "&cursor=" + p["next_cursor"].(string)
	}
	if len(seen) != 5 {
		t.Errorf("%d seen", len(seen))
	}
	if p := h.do("GET", "/v1/campaigns?classification=servicing&status=draft,running&name=Spr", "").json(t); len(p["campaigns"].([]any)) != 2 {
		t.Errorf("%v", p)
	}
	for query, code := range map[string]string{
		"limit=0": "invalid_filter_value", "status=%zz": "invalid_filter_value", "status=asleep": "invalid_filter_value", "created_after=soon": "invalid_filter_value", "cursor=abc": "invalid_cursor",
	} {
		if got := h.do("GET", "/v1/campaigns?"+query, ""); got.code() != code {
			t.Errorf("%s: %s", query, got.body)
		}
	}
}
