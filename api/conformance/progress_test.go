package conformance_test

import (
	"fmt"
	"testing"
	"time"
)

// TestProgress covers GET /v1/campaigns/{id}/progress.
func TestProgress(t *testing.T) {
	checkAll(t, "CP", []statement{
		{1, "by_state has only states with contacts", statesOfProgress},
		{2, "ready and holds add up to the pending contacts; each held contact has one reason", readyAndHolds},
		{3, "contacts of a campaign that is not running are held with campaign_not_running", heldNotRunning},
		{4, "contacts are held until not_before and until their retry is due", heldUntilLater},
		{5, "suppressed_reasons counts suppressed contacts; do-not-call matches are counted at launch and mid-campaign", suppressedReasons},
		{6, "pace and counters are reported", paceAndCounters},
		{7, "an unknown campaign returns 404 campaign_not_found", progressUnknown},
		{8, "a campaign without money left keeps its contacts ready; POST budget changes and removes the budget", budgetOfCampaign},
	})
}

// progress reads the progress of a campaign and checks its invariants.
func (o *organization) progress(t *testing.T, c map[string]any) map[string]any {
	t.Helper()
	p := o.do(t, "GET", fmt.Sprintf("/v1/campaigns/%v/progress", c["campaign_id"]), "").want(t, 200).object(t)
	sum := func(m any) (n float64) {
		for name, v := range m.(map[string]any) {
			if v == 0.0 {
				t.Errorf("%s is reported with 0", name)
			}
			n += v.(float64)
		}
		return n
	}
	n := func(m any, name string) float64 { v, _ := m.(map[string]any)[name].(float64); return v }
	for what, pair := range map[string][2]float64{
		"ready + holds = pending":            {n(p, "ready") + n(p, "holds"), n(p["by_state"], "pending")},
		"held_reasons = holds":               {sum(p["held_reasons"]), n(p, "holds")},
		"suppressed_reasons = suppressed":    {sum(p["suppressed_reasons"]), n(p["by_state"], "suppressed")},
		"at launch + mid campaign = by list": {n(p, "dnc_suppressed_at_launch") + n(p, "dnc_suppressed_mid_campaign"), n(p["suppressed_reasons"], "dnc_suppressed")},
		"by_governing_cap = held + blocked":  {sum(p["frequency"].(map[string]any)["by_governing_cap"]), n(p["frequency"], "held") + n(p["frequency"], "blocked")},
		"by_state = contacts":                {sum(p["by_state"]), n(p["counters"], "contacts")},
		"in_call = calls in progress":        {n(p["by_state"], "in_call"), n(p["counters"], "calls_in_progress")},
		"attempts = outcomes + in progress":  {n(p["counters"], "attempts"), attempts(p["counters"])},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s does not hold: %v in %v", what, pair, p)
		}
	}
	return p
}

func attempts(counters any) (n float64) {
	for _, name := range []string{"answered", "voicemail", "ivr", "no_answer", "busy", "declined", "failed", "calls_in_progress"} {
		n += counters.(map[string]any)[name].(float64)
	}
	return n
}

// setContact changes contacts as calls would.
func (o *organization) setContact(t *testing.T, number, change string) {
	t.Helper()
	tag, err := o.s.db.Pool.Exec(t.Context(), "UPDATE contacts SET "+change+" WHERE org_id = $1 AND number = $2", o.id, number)
	if err != nil || tag.RowsAffected() == 0 {
		t.Fatalf("%v %v", tag, err)
	}
}

func statesOfProgress(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"},{"phone":"+14165550101"},{"phone":"x"}]`)
	hasMembers(t, o.progress(t, c), map[string]any{"status": "running", "campaign_id": c["campaign_id"], "by_state": map[string]any{"pending": 2, "suppressed": 1}})
	o.setContact(t, "+12125550101", "state = 'awaiting'")
	hasMembers(t, o.progress(t, c), map[string]any{"by_state": map[string]any{"pending": 1, "awaiting": 1, "suppressed": 1}})
}

func readyAndHolds(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, `"planned_calls":[{"phone":"2125550101"},{"phone":"3105550101"},{"phone":"8085550101"},{"phone":"2025550101"}]`)
	p := o.progress(t, c)
	for reason := range p["held_reasons"].(map[string]any) {
		switch reason {
		case "outside_legal_window", "legal_holiday": // depends on the time of day
		default:
			t.Errorf("held for %s", reason)
		}
	}
	open := p["pace"].(map[string]any)["window_open"] == true
	if open != (p["pace"].(map[string]any)["next_window_at"] == nil) {
		t.Errorf("%v", p["pace"])
	}
}

func heldNotRunning(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for _, more := range []string{`"dnc":"block"`, confirmed + fmt.Sprintf(`,"starts_at":%d`, epoch(time.Hour))} {
		c := o.campaign(t, oneRow, more)
		hasMembers(t, o.progress(t, c), map[string]any{"ready": 0, "holds": 1, "held_reasons": map[string]any{"campaign_not_running": 1}})
	}
	c := o.campaign(t, oneRow, confirmed)
	o.do(t, "POST", fmt.Sprintf("/v1/campaigns/%v/cancel", c["campaign_id"]), "").want(t, 200)
	hasMembers(t, o.progress(t, c), map[string]any{"by_state": map[string]any{"pending": 1}, "held_reasons": map[string]any{"campaign_not_running": 1}})
}

func heldUntilLater(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, fmt.Sprintf(`"planned_calls":[{"phone":"2125550101","not_before":%d},{"phone":"2125550102"},{"phone":"2125550103"}]`, epoch(time.Hour)))
	o.setContact(t, "+12125550102", "attempts = 1, next_attempt_at = now() + interval '1 hour'")
	p := o.progress(t, c)
	held := p["held_reasons"].(map[string]any)
	if held["outside_legal_window"] == nil && held["legal_holiday"] == nil { // calls are allowed now
		hasMembers(t, p, map[string]any{"ready": 1, "holds": 2, "held_reasons": map[string]any{"not_before": 1, "retry_wait": 1}})
	} else if p["holds"] != 3.0 {
		t.Errorf("%v", p)
	}
	if p["counters"].(map[string]any)["redials_scheduled"] != 1.0 {
		t.Errorf("%v", p["counters"])
	}
}

func suppressedReasons(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.suppress(t, "+12125550102")
	c := o.campaign(t, confirmed, `"dnc":"skip","planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"},{"phone":"+14165550101"},{"phone":"2125550103"},{"phone":"2125550104"},{"phone":"2125550105"}]`)
	o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":["2125550101"]}`).want(t, 200)
	o.setContact(t, "+12125550103", "state = 'suppressed', reason = 'dnc_suppressed'")
	o.setContact(t, "+12125550104", "state = 'suppressed', reason = 'frequency_capped', governing_cap = 'daily'")
	p := o.progress(t, c)
	hasMembers(t, p, map[string]any{
		"suppressed_reasons":       map[string]any{"dnc_suppressed": 2, "withdrawn_by_client": 1, "geo_rejected": 1, "frequency_capped": 1},
		"dnc_suppressed_at_launch": 1, "dnc_suppressed_mid_campaign": 1, "frequency": map[string]any{"held": 0, "blocked": 1, "by_governing_cap": map[string]any{"daily": 1}},
	})
}

func paceAndCounters(t *testing.T, s *service) {
	o := usOrganization(t, s)
	p := o.progress(t, o.campaign(t, oneRow, confirmed))
	limited := []any{}
	if p["ready"] == 1.0 { // the next call of its subgroup is due tomorrow
		limited = []any{"subgroup_rate_limit"}
	}
	hasMembers(t, p["pace"].(map[string]any), map[string]any{"calls_per_minute": 20, "dialed_last_60s": 0, "in_flight": 0, "limited_by": limited})
	hasMembers(t, p["counters"].(map[string]any), map[string]any{"contacts": 1, "attempts": 0})
	if at, ok := p["as_of"].(float64); !ok || time.Since(time.Unix(int64(at), 0)).Abs() > time.Minute {
		t.Errorf("as_of %v", p["as_of"])
	}
}

func progressUnknown(t *testing.T, s *service) {
	o := s.empty(t)
	for _, id := range []string{"cmp_00000000000000000000000000", "x", "%00"} {
		wantError(t, o.do(t, "GET", "/v1/campaigns/"+id+"/progress", ""), 404, "campaign_not_found")
	}
}

func budgetOfCampaign(t *testing.T, s *service) {
	o := usOrganization(t, s)
	wantError(t, o.create(t, "zero", oneRow, `"budget":0`), 422, "campaign_spec_invalid")
	c := o.campaign(t, oneRow, confirmed, `"budget":1.5`)
	if c["budget"] != 1.5 {
		t.Errorf("budget %v", c["budget"])
	}
	at := fmt.Sprintf("/v1/campaigns/%v", c["campaign_id"])
	hasMembers(t, o.progress(t, c)["budget"].(map[string]any),
		map[string]any{"limit": 1.5, "spent": 0, "in_progress": 0, "left": 1.5, "expected_per_call": 0.075})
	const spend = "INSERT INTO cost_tallies (owner, slot, cost_nano) VALUES ($1, '-infinity', 1500000000)"
	if _, err := o.s.db.Pool.Exec(t.Context(), spend, c["campaign_id"]); err != nil {
		t.Fatal(err)
	}
	p := o.progress(t, c)
	hasMembers(t, p["budget"].(map[string]any), map[string]any{"spent": 1.5, "left": 0})
	if limited := p["pace"].(map[string]any)["limited_by"].([]any); p["ready"] == 1.0 && (len(limited) == 0 || limited[0] != "campaign_budget_exceeded") {
		t.Errorf("limited by %v", limited)
	}
	for _, body := range []string{`{}`, `{"budget":"2"}`} {
		wantError(t, o.do(t, "POST", at+"/budget", body), 422, "invalid_request")
	}
	wantError(t, o.do(t, "POST", at+"/budget", `{"budget":-1}`), 422, "campaign_spec_invalid")
	hasMembers(t, o.do(t, "POST", at+"/budget", `{"budget":4}`).want(t, 200).object(t), map[string]any{"budget": 4})
	hasMembers(t, o.progress(t, c)["budget"].(map[string]any), map[string]any{"limit": 4, "left": 2.5})
	o.do(t, "POST", at+"/budget", `{"budget":null}`).want(t, 200)
	if got := o.do(t, "GET", at, "").want(t, 200).object(t)["budget"]; got != nil || o.progress(t, c)["budget"] != nil {
		t.Errorf("budget %v", got)
	}
	o.do(t, "POST", at+"/cancel", "").want(t, 200)
	wantError(t, o.do(t, "POST", at+"/budget", `{"budget":4}`), 409, "campaign_transition_invalid")
}
