package conformance_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCampaignLifecycle covers launch, pause, resume, cancel, and the effects of time.
func TestCampaignLifecycle(t *testing.T) {
	checkAll(t, "CL", []statement{
		{1, "each action in each status follows the table of transitions", transitions},
		{2, "pause, resume and cancel return the campaign without blockers and warnings", transitionViews},
		{3, "a launch starts a draft whose checks pass and sets launched_via to api", launchDraft},
		{4, "errors of a launch are reported in the documented order", orderOfLaunchChecks},
		{5, "a blocked launch returns 409 launch_blocked with error.blockers and leaves a draft", blockedLaunch},
		{6, "a launch without attestation.import_id returns 422 attestation_import_id_required, unless the campaign has no import", launchNamesImport},
		{7, "an attestation of another import or of a screen that changed since it was read is blocker attestation_stale", staleAttestation},
		{8, "a dnc decision on a campaign without import returns 409 dnc_decision_without_upload", decisionWithoutUpload},
		{9, "a dnc decision on an import without stored rows returns 409 dnc_screen_required, also the blocker", decisionRowsDeleted},
		{10, "the screen follows the lists until the launch and is frozen then", frozenScreen},
		{11, "a scheduled campaign runs at starts_at", scheduledStart},
		{12, "ends_at completes scheduled, running, paused and open campaigns; contacts stay pending; a draft keeps its blocker", scheduledEnd},
		{13, "a running campaign completes without pending and awaiting contacts; an open one does not", drainedCampaign},
		{14, "a read reports current checks: always attestation_required, and no_pending_contacts with a drained queue", readingChecks},
		{15, "launch-check returns blockers, warnings and dnc_screen", launchCheck},
		{16, "a blocked resume returns 409 launch_blocked", blockedResume},
		{17, "a resume checks neither the start date nor the attestation", resumeSkipsChecks},
		{18, "foreign, unknown and malformed ids return 404 campaign_not_found in every request", foreignCampaigns},
		{19, "every launch and batch has its own immutable attestation of its import", attestations},
		{20, "the list has pages of summaries with a cursor; invalid filters return 400", campaignPages},
		{21, "every change of a campaign is logged", campaignLog},
	})
}

func (o *organization) act(t *testing.T, c map[string]any, action string) response {
	t.Helper()
	return o.do(t, "POST", fmt.Sprintf("/v1/campaigns/%v/%s", c["campaign_id"], action), "")
}

func (o *organization) read(t *testing.T, c map[string]any) map[string]any {
	t.Helper()
	return o.do(t, "GET", fmt.Sprintf("/v1/campaigns/%v", c["campaign_id"]), "").want(t, 200).object(t)
}

func (o *organization) launch(t *testing.T, c map[string]any, more ...string) response {
	t.Helper()
	id := ""
	if i, ok := c["import"].(map[string]any); ok {
		id = i["import_id"].(string)
	}
	body := append([]string{fmt.Sprintf(`"attestation":{"confirmed":true,"import_id":%q}`, id)}, more...)
	return o.do(t, "POST", fmt.Sprintf("/v1/campaigns/%v/launch", c["campaign_id"]), "{"+strings.Join(body, ",")+"}")
}

func (o *organization) campaignIn(t *testing.T, status string) map[string]any {
	t.Helper()
	switch status {
	case "draft":
		return o.campaign(t, oneRow)
	case "scheduled":
		return o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"starts_at":%d`, epoch(time.Hour)))
	}
	c := o.campaign(t, oneRow, confirmed)
	switch status {
	case "paused":
		o.act(t, c, "pause").want(t, 200)
	case "cancelled":
		o.act(t, c, "cancel").want(t, 200)
	case "completed":
		o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":["2125550101"]}`).want(t, 200)
		waitUntil(t, "the campaign completes", func() bool { return o.read(t, c)["status"] == "completed" })
	}
	return o.read(t, c)
}

func transitions(t *testing.T, s *service) {
	o := usOrganization(t, s)
	actions := []string{"launch", "pause", "resume", "cancel", "calls"}
	const no = "campaign_transition_invalid"
	for status, row := range map[string][5]string{
		"draft":     {"running", no, no, "cancelled", "draft"},
		"scheduled": {"scheduled", no, no, "cancelled", "scheduled"},
		"running":   {"running", "paused", "running", "cancelled", "running"},
		"paused":    {no, "paused", "running", "cancelled", "paused"},
		"completed": {no, no, no, no, "campaign_closed"},
		"cancelled": {no, no, no, "cancelled", "campaign_closed"},
	} {
		for i, want := range row {
			c := o.campaignIn(t, status)
			if c["status"] != status {
				t.Fatalf("%v, want %s: %v", c["status"], status, c["blockers"])
			}
			var a response
			switch actions[i] {
			case "launch":
				a = o.launch(t, c)
			case "calls":
				a = o.add(t, c, "k", oneCall)
			default:
				a = o.act(t, c, actions[i])
			}
			if strings.Contains(want, "_") {
				wantError(t, a, 409, want)
				continue
			}
			m := a.object(t)
			if actions[i] == "calls" {
				m = a.want(t, 201).object(t)["campaign"].(map[string]any)
			}
			if m["status"] != want || a.status > 201 || o.read(t, c)["status"] != want {
				t.Errorf("%s, %s: %v, want %s", status, actions[i], a, want)
			}
			o.act(t, c, "cancel") // whatever the status is
		}
	}
}

func transitionViews(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	for _, action := range []string{"pause", "pause", "resume", "resume", "cancel", "cancel"} {
		m := o.act(t, c, action).want(t, 200).object(t)
		_, blockers := m["blockers"]
		_, warnings := m["warnings"]
		if blockers || warnings || m["dnc_screen"] == nil || m["import"] == nil {
			t.Errorf("%s: %v", action, m)
		}
	}
}

func launchDraft(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow)
	if c["launched_via"] != "" || c["launched_at"] != nil || c["agent_version"] != nil {
		t.Errorf("a draft: %v", c)
	}
	c = o.launch(t, c).want(t, 200).object(t)
	hasMembers(t, c, map[string]any{"status": "running", "launched_via": "api", "agent_version": 1, "blockers": []any{}})
	if codes(t, c, "warnings") == "" {
		t.Error("no warnings")
	}
	c = o.campaign(t, oneRow, fmt.Sprintf(`"starts_at":%d`, epoch(time.Hour)))
	hasMembers(t, o.launch(t, c).want(t, 200).object(t), map[string]any{"status": "scheduled"})
}

func orderOfLaunchChecks(t *testing.T, s *service) {
	o := usOrganization(t, s)
	paused := o.campaignIn(t, "paused")
	launch := func(id any, body string) response {
		return o.do(t, "POST", fmt.Sprintf("/v1/campaigns/%v/launch", id), body)
	}
	id := paused["campaign_id"]
	wantError(t, launch("cmp_00000000000000000000000000", `{"attestation":7,"dnc":"x"}`), 422, "invalid_request")
	wantError(t, launch("cmp_00000000000000000000000000", `{"dnc":"x"}`), 404, "campaign_not_found")
	wantError(t, launch(id, `{"dnc":"x"}`), 422, "attestation_import_id_required")
	wantError(t, launch(id, `{"attestation":{"import_id":"x"},"dnc":"x"}`), 422, "dnc_decision_invalid")
	wantError(t, launch(id, `{"attestation":{"import_id":"x"},"dnc":"skip"}`), 409, "campaign_transition_invalid")
	without := o.campaign(t)
	o.act(t, without, "cancel")
	wantError(t, launch(without["campaign_id"], `{"dnc":"skip"}`), 409, "campaign_transition_invalid")
	wantError(t, launch(o.campaign(t)["campaign_id"], `{"dnc":"skip"}`), 409, "dnc_decision_without_upload")
	// A launch that changes nothing runs no checks.
	running := o.campaignIn(t, "running")
	hasMembers(t, launch(running["campaign_id"], `{"attestation":{"import_id":"imp_x"}}`).want(t, 200).object(t), map[string]any{"status": "running"})
}

func blockedLaunch(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow)
	i := c["import"].(map[string]any)["import_id"]
	for _, given := range []string{"false", `"true"`, "1", "null"} {
		a := o.do(t, "POST", fmt.Sprintf("/v1/campaigns/%v/launch", c["campaign_id"]), fmt.Sprintf(`{"attestation":{"confirmed":%s,"import_id":%q}}`, given, i))
		if given == "null" && a.status == 422 {
			continue
		}
		all, _ := wantErrorWith(t, a, 409, "launch_blocked", "blockers").([]any)
		if len(all) != 1 {
			t.Fatalf("%v", all)
		}
		hasMembers(t, all[0].(map[string]any), map[string]any{"code": "attestation_required", "field": "attestation"})
	}
	if got := o.read(t, c); got["status"] != "draft" || got["launched_via"] != "" {
		t.Errorf("%v", got["status"])
	}
}

func launchNamesImport(t *testing.T, s *service) {
	o := usOrganization(t, s)
	launch := func(c map[string]any, body string) response {
		return o.do(t, "POST", fmt.Sprintf("/v1/campaigns/%v/launch", c["campaign_id"]), body)
	}
	c := o.campaign(t, oneRow)
	for _, body := range []string{`{}`, `{"attestation":{"confirmed":true}}`, `{"attestation":{"confirmed":true,"import_id":""}}`, `{"attestation":{"confirmed":true,"import_id":null}}`} {
		wantError(t, launch(c, body), 422, "attestation_import_id_required")
	}
	open := o.campaign(t, fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(week)))
	hasMembers(t, launch(open, `{"attestation":{"confirmed":true}}`).want(t, 200).object(t), map[string]any{"status": "running"})
	// The attestation of a draft that has only batches may name one of them, and no other import.
	drafts := o.campaign(t)
	batch := o.add(t, drafts, "k", oneCall).want(t, 201).object(t)["import"].(map[string]any)["import_id"]
	foreign := c["import"].(map[string]any)["import_id"]
	all, _ := wantErrorWith(t, launch(drafts, fmt.Sprintf(`{"attestation":{"confirmed":true,"import_id":%q}}`, foreign)), 409, "launch_blocked", "blockers").([]any)
	if len(all) != 1 || all[0].(map[string]any)["code"] != "attestation_stale" {
		t.Errorf("%v", all)
	}
	hasMembers(t, launch(drafts, fmt.Sprintf(`{"attestation":{"confirmed":true,"import_id":%q}}`, batch)).want(t, 200).object(t), map[string]any{"status": "running", "import": nil})
}

func staleAttestation(t *testing.T, s *service) {
	o := usOrganization(t, s)
	stale := func(a response) {
		t.Helper()
		all, _ := wantErrorWith(t, a, 409, "launch_blocked", "blockers").([]any)
		if len(all) != 1 || all[0].(map[string]any)["code"] != "attestation_stale" {
			t.Errorf("%v", all)
		}
	}
	c := o.campaign(t, `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"}]`)
	stale(o.do(t, "POST", fmt.Sprintf("/v1/campaigns/%v/launch", c["campaign_id"]), `{"attestation":{"confirmed":true,"import_id":"imp_00000000000000000000000000"}}`))
	o.suppress(t, "2125550102")
	stale(o.launch(t, c, `"dnc":"skip"`))
	stale(o.launch(t, c, `"dnc":"skip"`)) // an error does not show the new screening
	o.do(t, "GET", fmt.Sprintf("/v1/imports/%v", c["import"].(map[string]any)["import_id"]), "").want(t, 200)
	hasMembers(t, o.launch(t, c, `"dnc":"skip"`).want(t, 200).object(t), map[string]any{"status": "running"})
}

func decisionWithoutUpload(t *testing.T, s *service) {
	o := usOrganization(t, s)
	wantError(t, o.launch(t, o.campaign(t), `"dnc":"block"`), 409, "dnc_decision_without_upload")
}

func decisionRowsDeleted(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow)
	i := c["import"].(map[string]any)["import_id"]
	s.exec(t, "UPDATE imports SET source_key = NULL WHERE id = $1", i)
	wantError(t, o.launch(t, c, `"dnc":"skip"`), 409, "dnc_screen_required")
	all, _ := wantErrorWith(t, o.launch(t, c), 409, "launch_blocked", "blockers").([]any)
	if len(all) != 1 || all[0].(map[string]any)["code"] != "dnc_screen_required" {
		t.Errorf("%v", all)
	}
	wantError(t, o.do(t, "GET", fmt.Sprintf("/v1/imports/%v/report?only=dnc_match", i), ""), 409, "dnc_screen_required")
}

func frozenScreen(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"}]`)
	x := func() map[string]any { return o.read(t, c)["dnc_screen"].(map[string]any) }
	if x()["matched_rows"] != 0.0 || x()["audit_id"] == 0.0 {
		t.Errorf("%v", x())
	}
	clean := x()["fingerprint"]
	o.suppress(t, "2125550102")
	if x()["matched_rows"] != 1.0 || x()["fingerprint"] == clean || x()["as_of_launch"] != false {
		t.Errorf("live: %v", x())
	}
	o.launch(t, c, `"dnc":"skip"`).want(t, 200)
	frozen := x()
	o.suppress(t)
	if got := x(); fmt.Sprint(got) != fmt.Sprint(frozen) || got["as_of_launch"] != true || got["matched_rows"] != 1.0 {
		t.Errorf("frozen: %v", got)
	}
	i := o.do(t, "GET", fmt.Sprintf("/v1/imports/%v", c["import"].(map[string]any)["import_id"]), "").want(t, 200).object(t)
	if fmt.Sprint(i["dnc_screen"]) != fmt.Sprint(frozen) || i["dnc_matched"] != 1.0 {
		t.Errorf("screen of the import: %v", i["dnc_screen"])
	}
}

func scheduledStart(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"starts_at":%d`, epoch(3*time.Second)))
	if c["status"] != "scheduled" {
		t.Fatalf("%v", c["status"])
	}
	waitUntil(t, "the campaign runs", func() bool { return o.read(t, c)["status"] == "running" })
	if got := o.read(t, c); got["starts_at"] != c["starts_at"] {
		t.Errorf("starts_at %v", got["starts_at"])
	}
}

func scheduledEnd(t *testing.T, s *service) {
	o := usOrganization(t, s)
	end := epoch(10 * time.Second) // after the six requests below
	ends := fmt.Sprintf(`"ends_at":%d,"timezone":%q`, end, zoneAtNoon(time.Now()))
	paused := o.campaign(t, oneRow, confirmed, ends)
	o.act(t, paused, "pause").want(t, 200)
	all := map[string]map[string]any{
		"running": o.campaign(t, oneRow, confirmed, ends), "paused": paused,
		"scheduled": o.campaign(t, oneRow, confirmed, ends, fmt.Sprintf(`"starts_at":%d`, end-1)),
		"open":      o.campaign(t, oneRow, confirmed, ends, `"accepts_call_additions":true`),
	}
	draft := o.campaign(t, oneRow, ends)
	for name, c := range all {
		waitUntil(t, name+" completes", func() bool { return o.read(t, c)["status"] == "completed" })
		got := o.read(t, c)
		if hasMembers(t, got, map[string]any{"status_reason": "ends_at"}); got["completed_at"] == nil {
			t.Errorf("%s: %v", name, got)
		}
		hasMembers(t, o.progress(t, c), map[string]any{"by_state": map[string]any{"pending": 1}, "held_reasons": map[string]any{"campaign_not_running": 1}})
		wantError(t, o.add(t, c, "k", oneCall), 409, "campaign_closed")
	}
	if got := o.read(t, draft); got["status"] != "draft" || !strings.Contains(codes(t, got, "blockers"), "ends_at_past") {
		t.Errorf("the draft: %v %v", got["status"], got["blockers"])
	}
}

func drainedCampaign(t *testing.T, s *service) {
	o := usOrganization(t, s)
	rows := `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"}]`
	c := o.campaign(t, rows, confirmed)
	open := o.campaign(t, rows, confirmed, fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(week)))
	paused := o.campaign(t, rows, confirmed)
	o.act(t, paused, "pause").want(t, 200)
	o.setContact(t, "+12125550101", "state = 'awaiting'")
	o.setContact(t, "+12125550102", "state = 'done'")
	other := usOrganization(t, s)
	for range 2 { // the pass that completes another campaign also examines c
		other.campaignIn(t, "completed")
	}
	if got := o.read(t, c)["status"]; got != "running" {
		t.Fatalf("status with one awaiting contact: %v", got)
	}
	o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":["2125550101"]}`).want(t, 200)
	waitUntil(t, "the campaign completes", func() bool { return o.read(t, c)["status"] == "completed" })
	hasMembers(t, o.read(t, c), map[string]any{"status_reason": "queue_drained"})
	hasMembers(t, o.read(t, open), map[string]any{"status": "running"})
	hasMembers(t, o.read(t, paused), map[string]any{"status": "paused"})
	o.act(t, paused, "resume").want(t, 200)
	waitUntil(t, "the resumed campaign completes", func() bool { return o.read(t, paused)["status"] == "completed" })
}

func readingChecks(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for _, status := range []string{"draft", "scheduled", "running", "paused", "cancelled", "completed"} {
		c := o.campaignIn(t, status)
		got := codes(t, o.read(t, c), "blockers")
		if !strings.HasPrefix(got, "attestation_required") || strings.Contains(got, "no_pending_contacts") != (status == "completed") || strings.Contains(got, "campaign_paused") {
			t.Errorf("%s: %s", status, got)
		}
		o.act(t, c, "cancel")
	}
}

func launchCheck(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow)
	m := o.do(t, "GET", fmt.Sprintf("/v1/campaigns/%v/launch-check", c["campaign_id"]), "").want(t, 200).object(t)
	if got := slices.Sorted(maps.Keys(m)); !slices.Equal(got, []string{"blockers", "dnc_screen", "warnings"}) {
		t.Errorf("%v", got)
	}
	if codes(t, m, "blockers") != "attestation_required" || m["dnc_screen"].(map[string]any)["fingerprint"] != c["dnc_screen"].(map[string]any)["fingerprint"] {
		t.Errorf("%v", m)
	}
}

func blockedResume(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaignIn(t, "paused")
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: sales, published: false}]}]`, o.name))
	all, _ := wantErrorWith(t, o.act(t, c, "resume"), 409, "launch_blocked", "blockers").([]any)
	if len(all) != 1 || all[0].(map[string]any)["code"] != "agent_not_published" || o.read(t, c)["status"] != "paused" {
		t.Errorf("%v", all)
	}
	o.publish(t, "sales")
	hasMembers(t, o.act(t, c, "resume").want(t, 200).object(t), map[string]any{"status": "running"})
}

func resumeSkipsChecks(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"starts_at":%d`, epoch(time.Second)))
	waitUntil(t, "the campaign runs", func() bool { return o.read(t, c)["status"] == "running" })
	o.act(t, c, "pause").want(t, 200)
	// Simulate that two days passed.
	s.exec(t, "UPDATE campaigns SET starts_at = starts_at - interval '2 days', launched_at = launched_at - interval '2 days' WHERE org_id = $1", o.id)
	if got := codes(t, o.read(t, c), "blockers"); got != "attestation_required" {
		t.Errorf("%s", got)
	}
	o.act(t, c, "resume").want(t, 200)
}

func foreignCampaigns(t *testing.T, s *service) {
	owner, o := usOrganization(t, s), usOrganization(t, s)
	c := owner.campaign(t, oneRow, confirmed)
	for _, id := range []any{c["campaign_id"], "cmp_00000000000000000000000000", "cmp_", "x", "%00", "%ff"} {
		path := fmt.Sprintf("/v1/campaigns/%v", id)
		for _, a := range []response{
			o.do(t, "GET", path, ""), o.do(t, "GET", path+"/launch-check", ""), o.do(t, "GET", path+"/progress", ""), o.do(t, "POST", path+"/pause", ""),
			o.do(t, "POST", path+"/resume", ""), o.do(t, "POST", path+"/cancel", ""), o.do(t, "POST", path+"/launch", "{}"),
			o.do(t, "POST", path+"/calls", "{"+oneCall+","+confirmed+"}", "Idempotency-Key", "k"),
		} {
			wantError(t, a, 404, "campaign_not_found")
		}
	}
	if owner.read(t, c)["status"] != "running" {
		t.Error("a foreign request changed the campaign")
	}
	i := c["import"].(map[string]any)["import_id"]
	for _, id := range []any{i, "imp_00000000000000000000000000", "x"} {
		wantError(t, o.do(t, "GET", fmt.Sprintf("/v1/imports/%v", id), ""), 404, "import_not_found")
		wantError(t, o.do(t, "GET", fmt.Sprintf("/v1/imports/%v/report", id), ""), 404, "import_not_found")
	}
	w := o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":["2125550101"]}`).want(t, 200).object(t)
	if len(w["not_found"].([]any)) != 1 {
		t.Errorf("%v", w)
	}
}

func attestations(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	batch := o.add(t, c, "k", oneCall).want(t, 201).object(t)["import"].(map[string]any)["import_id"]
	o.add(t, c, "k2", `"calls":[{"phone":"x"}]`).want(t, 422)
	found := map[any]int{}
	rows, err := s.db.Pool.Query(t.Context(), "SELECT import_id FROM attestations WHERE org_id = $1 AND contacts <> '' AND api_key_id <> '' AND consent_tier = 'pewc'", o.id)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		found[id]++
	}
	if len(found) != 2 || found[batch] != 1 || found[c["import"].(map[string]any)["import_id"]] != 1 {
		t.Errorf("%v", found)
	}
	for _, change := range []string{"UPDATE attestations SET actor = 'x'", "DELETE FROM attestations", "UPDATE dnc_audit SET rules = ''", "DELETE FROM dnc_audit", "DELETE FROM campaign_log"} {
		if _, err := s.db.Pool.Exec(t.Context(), change+" WHERE org_id = $1", o.id); err == nil {
			t.Errorf("%s succeeded", change)
		}
	}
	// A deleted campaign takes its records with it.
	if _, err := s.db.Pool.Exec(t.Context(), "DELETE FROM campaigns WHERE org_id = $1", o.id); err != nil {
		t.Error(err)
	}
}

func campaignPages(t *testing.T, s *service) {
	o := usOrganization(t, s)
	var want []string
	for range 5 {
		want = append(want, o.campaign(t)["campaign_id"].(string))
	}
	slices.Reverse(want) // newest first
	var seen []string
	next := ""
	for range 9 {
		p := o.do(t, "GET", "/v1/campaigns?limit=2"+next, "").want(t, 200).object(t)
		for _, x := range p["campaigns"].([]any) {
			m := x.(map[string]any)
			seen = append(seen, m["campaign_id"].(string))
			for _, name := range []string{"status", "name", "agent_id", "timezone_source", "accepts_call_additions", "calls_per_minute", "created_at"} {
				if _, ok := m[name]; !ok {
					t.Errorf("a summary has no %s", name)
				}
			}
			if m["blockers"] != nil || m["import"] != nil {
				t.Errorf("%v", m)
			}
		}
		if p["has_more"] == false {
			if p["next_cursor"] != nil {
				t.Errorf("the last page has a cursor")
			}
			break
		}
		next = "&cursor=" + p["next_cursor"].(string)
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
	for query, code := range map[string]string{
		"cursor=x": "invalid_cursor", "status=asleep": "invalid_filter_value", "limit=0": "invalid_filter_value", "limit=101": "invalid_filter_value",
		"created_after=soon": "invalid_filter_value", "order=up": "invalid_filter_value",
	} {
		wantError(t, o.do(t, "GET", "/v1/campaigns?"+query, ""), 400, code)
	}
	wantError(t, o.do(t, "GET", "/v1/campaigns?status=draft"+next, ""), 400, "invalid_cursor") // the cursor is for another filter
	o.do(t, "GET", "/v1/campaigns?status=draft,running&status=paused&odd=1", "").want(t, 200)
}

func campaignLog(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow)
	o.launch(t, c).want(t, 200)
	o.act(t, c, "pause").want(t, 200)
	o.act(t, c, "pause").want(t, 200) // changes nothing
	o.act(t, c, "resume").want(t, 200)
	o.add(t, c, "k", oneCall).want(t, 201)
	o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":["2125550101"]}`).want(t, 200)
	o.act(t, c, "cancel").want(t, 200)
	var all []string
	if err := s.db.Pool.QueryRow(t.Context(), "SELECT array_agg(action || ' ' || status ORDER BY id) FROM campaign_log WHERE campaign_id = $1 AND api_key_id <> ''", c["campaign_id"]).Scan(&all); err != nil {
		t.Fatal(err)
	}
	want := []string{"created draft", "launched running", "paused paused", "resumed running", "calls_added running", "withdrawn running", "cancelled cancelled"}
	if !slices.Equal(all, want) {
		t.Errorf("%v", all)
	}
}
