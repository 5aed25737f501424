package conformance_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
)

// TestBatches covers POST /v1/campaigns/{id}/calls.
func TestBatches(t *testing.T) {
	checkAll(t, "CB", []statement{
		{1, "an accepted batch returns 201 with the campaign summary, the import with its screen, and blockers", validBatch},
		{2, "errors are reported in the documented order", orderOfBatchChecks},
		{3, "the attestation is an object with the single key confirmed, set to true", batchAttestation},
		{4, "a batch has 1 to 1000 rows; the maximum is configurable", batchSize},
		{5, "one invalid row rejects the whole batch: 422 calls_rejected with error.import", rejectedBatch},
		{6, "one number on the do-not-call list rejects the whole batch: 422 calls_dnc_matched; invalid rows are reported first", listedBatch},
		{7, "a list without a phone column or without a usable row returns calls_rejected", structuralBatch},
		{8, "error.import has the first 50 issues and 50 matches", firstIssues},
		{9, "a rejected batch is stored as an import without contacts or attestation, and frees the key", rejectedBatchLeaves},
		{10, "dnc and agent_id in the body of a batch are ignored", batchIgnores},
		{11, "duplicate_action applies within a batch", batchDuplicates},
		{12, "a number that the campaign already has becomes a new contact, even after a call", repeatedNumber},
		{13, "in market kz with use_contact_timezone, a row without timezone rejects a batch but not a creation", timezoneOfBatch},
		{14, "a batch does not replace the campaign's launch import and screen", launchImportStays},
		{15, "a repeat returns the same response; another body with its key returns 422 idempotency_key_reuse", batchReplay},
		{16, "idempotency keys of batches are scoped to the campaign", batchKeyScope},
		{17, "a repeat after the campaign closed returns 409 campaign_closed", replayAfterClose},
		{18, "a paused campaign accepts calls with blocker campaign_paused; blockers have only code and field", pausedBatch},
		{19, "a batch reports no blockers about attestation, pending contacts, screen or matches", batchBlockers},
		{20, "numbers of other countries are accepted and suppressed", foreignBatch},
		{21, "20 concurrent equal requests create one batch", batchOnce},
		{22, "without a market package a batch returns 409 and frees the key", batchWithoutMarket},
		{23, "accepts_call_additions does not affect whether calls are accepted", batchWithoutAdditions},
		{24, "a request counts once toward the key's limit, whatever its number of rows", batchRateLimit},
	})
}

const oneCall = `"calls":[{"phone":"2125550101"}]`

func (o *organization) add(t *testing.T, c map[string]any, key string, members ...string) response {
	t.Helper()
	body := strings.Join(members, ",")
	if !strings.Contains(body, "attestation") {
		body += "," + confirmed
	}
	return o.do(t, "POST", fmt.Sprintf("/v1/campaigns/%v/calls", c["campaign_id"]), "{"+body+"}", "Idempotency-Key", key)
}

func (o *organization) contacts(t *testing.T, c map[string]any) float64 {
	t.Helper()
	return o.progress(t, c)["counters"].(map[string]any)["contacts"].(float64)
}

func validBatch(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	b := o.add(t, c, "k", `"calls":[{"phone":"2125550102","name":"Bob"},{"phone":"2125550103"}]`).want(t, http.StatusCreated).object(t)
	short := b["campaign"].(map[string]any)
	list := o.do(t, "GET", "/v1/campaigns", "").want(t, 200).object(t)["campaigns"].([]any)[0]
	if fmt.Sprint(short) != fmt.Sprint(list) {
		t.Errorf("the short view is %v, but %v in the list", short, list)
	}
	if codes(t, b, "blockers") != "" {
		t.Errorf("%v", b["blockers"])
	}
	i := b["import"].(map[string]any)
	hasMembers(t, i, map[string]any{"status": "accepted", "kind": "batch", "rows_seen": 2, "accepted": 2, "campaign_id": c["campaign_id"], "refusal_code": ""})
	x := b["dnc_screen"].(map[string]any)
	if x["import_id"] != i["import_id"] || x["audit_id"] == 0.0 || x["decision"] != "clean" || x["as_of_launch"] != false {
		t.Errorf("%v", x)
	}
	got := o.do(t, "GET", fmt.Sprintf("/v1/imports/%v", i["import_id"]), "").want(t, 200).object(t)
	if fmt.Sprint(got) != fmt.Sprint(i) {
		t.Errorf("read again:\n%v\nwant\n%v", got, i)
	}
	if n := o.contacts(t, c); n != 3 {
		t.Errorf("%v contacts", n)
	}
}

func orderOfBatchChecks(t *testing.T, s *service) {
	o := usOrganization(t, s)
	closed := o.campaign(t, oneRow, confirmed)
	o.act(t, closed, "cancel").want(t, 200)
	path := fmt.Sprintf("/v1/campaigns/%v/calls", closed["campaign_id"])
	many := `"calls":[` + strings.TrimSuffix(strings.Repeat(`{"phone":"2125550101"},`, 1001), ",") + "]"
	unknown := "/v1/campaigns/cmp_00000000000000000000000000/calls"
	post := func(path, body string) response { return o.do(t, "POST", path, body, "Idempotency-Key", "k") }
	// Each request also has the errors that the requests below it test: the error that is checked first wins.
	wantError(t, o.do(t, "POST", unknown, `{"calls":7}`), 422, "idempotency_key_required")
	wantError(t, o.do(t, "POST", unknown, `{`, "Idempotency-Key", " "), 422, "idempotency_key_required")
	wantError(t, post(unknown, `{"calls":7}`), 422, "invalid_request")
	wantError(t, post(unknown, `{"calls":[]}`), 422, "calls_required")
	wantError(t, post(unknown, `{}`), 422, "calls_required")
	wantError(t, post(unknown, "{"+many+"}"), 422, "calls_batch_too_large")
	wantError(t, post(unknown, `{`+oneCall+`}`), 422, "attestation_invalid")
	wantError(t, post(unknown, `{`+oneCall+`,`+confirmed+`}`), 404, "campaign_not_found")
	wantError(t, post(path, `{`+oneCall+`,`+confirmed+`}`), 409, "campaign_closed")
	running := o.campaign(t, oneRow, confirmed)
	o.add(t, running, "k", oneCall).want(t, 201)
	wantError(t, o.add(t, running, "k", `"calls":[{"phone":"x"}]`), 422, "idempotency_key_reuse")
}

func batchAttestation(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	for _, a := range []string{
		"null", "true", `"yes"`, "[]", "{}", `{"confirmed":1}`, `{"confirmed":"true"}`, `{"confirmed":false}`, `{"confirmed":null}`,
		`{"confirmed":true,"import_id":"imp_1"}`, `{"confirmed":true,"odd":null}`, `{"Confirmed":true}`,
	} {
		wantError(t, o.add(t, c, "k", oneCall, `"attestation":`+a), 422, "attestation_invalid")
	}
	o.add(t, c, "k", oneCall).want(t, 201)
}

func batchSize(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	rows := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"phone":"212555%04d"}`, i))
		}
		return `"calls":[` + strings.Join(all, ",") + "]"
	}
	o.add(t, c, "k", rows(1000)).want(t, 201)
	wantError(t, o.add(t, c, "k2", rows(1001)), 422, "calls_batch_too_large")
	small := s.isolated(t, "PARLEY_BATCH_ROWS=2", "PARLEY_CAMPAIGN_ROWS=3", "PARLEY_WITHDRAW_ADDRESSES=1", "PARLEY_OPEN_HORIZON=1h").useUSRules(t)
	d := small.campaign(t, `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"},{"phone":"2125550103"}]`)
	small.add(t, d, "k", rows(2)).want(t, 201)
	wantError(t, small.add(t, d, "k2", rows(3)), 422, "calls_batch_too_large")
	wantError(t, small.create(t, "k", `"planned_calls":[{},{},{},{}]`), 422, "campaign_spec_invalid")
	wantError(t, small.create(t, "k", fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(2*time.Hour))), 422, "campaign_open_ends_at_too_far")
	wantError(t, small.do(t, "POST", "/v1/contacts/withdraw", `{"phones":["1"],"contact_ids":["2"]}`), 422, "addresses_too_many")
}

func rejectedBatch(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	for _, row := range []string{`{"phone":"12"}`, `{"name":"x","phone":""}`, `{"phone":"2125550103","variables":[]}`, `{"phone":"2125550103","timezone":"Z"}`} {
		i := wantErrorWith(t, o.add(t, c, "k", `"calls":[{"phone":"2125550102"},`+row+`]`), 422, "calls_rejected", "import").(map[string]any)
		hasMembers(t, i, map[string]any{"status": "refused", "refusal_code": "calls_rejected", "rows_seen": 2, "accepted": 0, "warned": 0, "rejected": 1, "kind": "batch"})
		if item := i["issues"].(map[string]any)["items"].([]any)[0].(map[string]any); item["row"] != 2.0 || item["severity"] != "error" {
			t.Errorf("%v", item)
		}
	}
	if n := o.contacts(t, c); n != 1 {
		t.Errorf("%v contacts", n)
	}
	wantError(t, o.add(t, c, "k", `"calls":[7]`), 422, "invalid_request")
}

func listedBatch(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.suppress(t, "2125550102")
	c := o.campaign(t, oneRow, confirmed)
	i := wantErrorWith(t, o.add(t, c, "k", `"calls":[{"phone":"2125550103"},{"phone":"2125550102","name":"Bob"}]`), 422, "calls_dnc_matched", "import").(map[string]any)
	hasMembers(t, i, map[string]any{"status": "refused", "refusal_code": "calls_dnc_matched", "accepted": 0, "dnc_matched": 1})
	hasMembers(t, i["dnc_matches"].([]any)[0].(map[string]any), map[string]any{"row": 2, "phone": "+12125550102", "registry": "org_suppression"})
	i = wantErrorWith(t, o.add(t, c, "k", `"calls":[{"phone":"x"},{"phone":"2125550102"}]`), 422, "calls_rejected", "import").(map[string]any)
	hasMembers(t, i, map[string]any{"refusal_code": "calls_rejected", "rejected": 1, "dnc_matched": 1})
}

func structuralBatch(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	for rows, code := range map[string]string{`[{"name":"x"},{}]`: "no_phone_column", `[{"phone":"x"},{"phone":"y"}]`: "no_usable_rows"} {
		i := wantErrorWith(t, o.add(t, c, "k", `"calls":`+rows), 422, "calls_rejected", "import").(map[string]any)
		if i["issues"].(map[string]any)["by_code"].(map[string]any)[code] != 1.0 || i["rejected"] != 2.0 {
			t.Errorf("%v", i)
		}
	}
}

func firstIssues(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	var rows, numbers []string
	for i := range 60 {
		rows = append(rows, fmt.Sprintf(`{"phone":"x%d"},{"phone":"212555%04d"}`, i, i))
		numbers = append(numbers, fmt.Sprintf("212555%04d", i))
	}
	o.suppress(t, numbers...)
	i := wantErrorWith(t, o.add(t, c, "k", `"calls":[`+strings.Join(rows, ",")+"]"), 422, "calls_rejected", "import").(map[string]any)
	hasMembers(t, i["issues"].(map[string]any), map[string]any{"total": 60, "shown": 50, "truncated": true})
	x := i["dnc_screen"].(map[string]any)
	if hasMembers(t, x, map[string]any{"matched_rows": 60, "hidden_rows": 10, "has_more": true}); len(i["dnc_matches"].([]any)) != 50 || len(i["issues"].(map[string]any)["items"].([]any)) != 50 {
		t.Errorf("%v", i)
	}
	full := o.report(t, i["import_id"], "?only=dnc_match")
	if len(full) != 61 {
		t.Errorf("the report has %d lines", len(full))
	}
}

func rejectedBatchLeaves(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	i := wantErrorWith(t, o.add(t, c, "k", `"calls":[{"phone":"x"}]`), 422, "calls_rejected", "import").(map[string]any)
	got := o.do(t, "GET", fmt.Sprintf("/v1/imports/%v", i["import_id"]), "").want(t, 200).object(t)
	if fmt.Sprint(got) != fmt.Sprint(i) {
		t.Errorf("stored as %v, reported as %v", got, i)
	}
	if attested := s.rowCount(t, "SELECT count(*) FROM attestations WHERE import_id = $1", i["import_id"]); attested != 0 {
		t.Errorf("%d attestations", attested)
	}
	if n := o.contacts(t, c); n != 1 {
		t.Errorf("%v contacts", n)
	}
	// A rejected request does not use up its key.
	wantErrorWith(t, o.add(t, c, "k", `"calls":[{"phone":"x"}]`), 422, "calls_rejected", "import")
	o.add(t, c, "k", oneCall).want(t, 201)
}

func batchIgnores(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.suppress(t, "2125550102")
	c := o.campaign(t, oneRow, confirmed)
	wantErrorWith(t, o.add(t, c, "k", `"calls":[{"phone":"2125550102"}]`, `"dnc":"skip"`), 422, "calls_dnc_matched", "import")
	o.add(t, c, "k", oneCall, `"dnc":"maybe"`, `"agent_id":"unknown"`, `"calls_per_minute":7`).want(t, 201)
	hasMembers(t, o.read(t, c), map[string]any{"agent_id": "sales", "calls_per_minute": 20})
}

func batchDuplicates(t *testing.T, s *service) {
	o := usOrganization(t, s)
	rows := `"calls":[{"phone":"2125550102","name":"a"},{"phone":"12125550102","name":"b"}]`
	i := wantErrorWith(t, o.add(t, o.campaign(t, oneRow, confirmed), "k", rows), 422, "calls_rejected", "import").(map[string]any)
	hasMembers(t, i, map[string]any{"rejected": 2, "duplicates_found": 1})
	for _, action := range []string{"keep_first", "keep_last"} {
		c := o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"duplicate_action":%q`, action))
		i := o.add(t, c, "k", rows).want(t, 201).object(t)["import"].(map[string]any)
		hasMembers(t, i, map[string]any{"accepted": 1, "rejected": 0, "duplicates_found": 1})
	}
}

func repeatedNumber(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(week)))
	for i, state := range []string{"state = 'done'", "state = 'exhausted'", "state = 'suppressed', reason = 'withdrawn_by_client'", "state = 'pending'"} {
		o.setContact(t, "+12125550101", state+map[bool]string{true: ", reason = ''"}[!strings.Contains(state, "reason")])
		b := o.add(t, c, fmt.Sprint("k", i), oneCall).want(t, 201).object(t)["import"].(map[string]any)
		hasMembers(t, b, map[string]any{"accepted": 1, "warned": 1})
		if b["issues"].(map[string]any)["by_code"].(map[string]any)["already_in_campaign"] != 1.0 {
			t.Errorf("%v", b["issues"])
		}
		if n := o.contacts(t, c); n != float64(i+2) {
			t.Errorf("%v contacts", n)
		}
	}
}

func timezoneOfBatch(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, market: kz, timezone: Asia/Almaty}]", o.name))
	rows := `[{"phone":"+77012345678"},{"phone":"+77012345679","timezone":"Asia/Almaty"}]`
	c := o.campaign(t, confirmed, `"use_contact_timezone":true,"planned_calls":`+rows)
	hasMembers(t, c["import"].(map[string]any), map[string]any{"accepted": 2, "rejected": 0})
	i := wantErrorWith(t, o.add(t, c, "k", `"calls":`+rows), 422, "calls_rejected", "import").(map[string]any)
	if item := i["issues"].(map[string]any)["items"].([]any)[0].(map[string]any); item["code"] != "timezone_required" || item["row"] != 1.0 {
		t.Errorf("%v", item)
	}
	o.add(t, o.campaign(t, confirmed, `"planned_calls":`+rows), "k", `"calls":`+rows).want(t, 201)
	us := usOrganization(t, s)
	us.add(t, us.campaign(t, oneRow, confirmed, `"use_contact_timezone":true`), "k", oneCall).want(t, 201)
}

func launchImportStays(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for _, attested := range []string{confirmed, `"dnc":"block"`} {
		c := o.campaign(t, oneRow, attested)
		o.add(t, c, "k", `"calls":[{"phone":"2125550102"}]`).want(t, 201)
		got := o.read(t, c)
		if fmt.Sprint(got["import"].(map[string]any)["import_id"]) != fmt.Sprint(c["import"].(map[string]any)["import_id"]) ||
			got["dnc_screen"].(map[string]any)["fingerprint"] != c["dnc_screen"].(map[string]any)["fingerprint"] || got["import"].(map[string]any)["rows_seen"] != 1.0 {
			t.Errorf("%v", got["import"])
		}
	}
	empty := o.campaign(t)
	o.add(t, empty, "k", oneCall).want(t, 201)
	if got := o.read(t, empty); got["import"] != nil || got["dnc_screen"].(map[string]any)["status"] != "not_screened" || strings.Contains(codes(t, got, "blockers"), "no_pending") {
		t.Errorf("%v %v", got["import"], got["blockers"])
	}
}

func batchReplay(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	first := o.add(t, c, "k", oneCall).want(t, 201)
	o.act(t, c, "pause").want(t, 200)
	again := o.add(t, c, "k", oneCall).want(t, 201)
	if string(again.body) != string(first.body) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v, want %v", again, first)
	}
	wantError(t, o.add(t, c, "k", `"calls":[{"phone":"2125550102"}]`), 422, "idempotency_key_reuse")
	if n := o.contacts(t, c); n != 2 {
		t.Errorf("%v contacts", n)
	}
}

func batchKeyScope(t *testing.T, s *service) {
	o := usOrganization(t, s)
	a, b := o.campaign(t, oneRow, confirmed), o.campaign(t, oneRow, confirmed)
	for _, c := range []map[string]any{a, b} {
		o.add(t, c, "k", oneCall).want(t, 201)
		if n := o.contacts(t, c); n != 2 {
			t.Errorf("%v contacts", n)
		}
	}
}

func replayAfterClose(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	o.add(t, c, "k", oneCall).want(t, 201)
	o.act(t, c, "cancel").want(t, 200)
	wantError(t, o.add(t, c, "k", oneCall), 409, "campaign_closed")
}

func pausedBatch(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	o.act(t, c, "pause").want(t, 200)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: sales, published: false}]}]`, o.name))
	b := o.add(t, c, "k", oneCall).want(t, 201).object(t)
	if codes(t, b, "blockers") != "agent_not_published campaign_paused" {
		t.Errorf("%v", b["blockers"])
	}
	for _, x := range b["blockers"].([]any) {
		for _, name := range slices.Sorted(maps.Keys(x.(map[string]any))) {
			if name != "code" && name != "field" {
				t.Errorf("%v", x)
			}
		}
	}
}

func batchBlockers(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.suppress(t, "2125550109")
	c := o.campaign(t, `"planned_calls":[{"phone":"2125550109"}]`) // a draft that is blocked by attestation_required and dnc_matches
	if b := o.add(t, c, "k", oneCall).want(t, 201).object(t); codes(t, b, "blockers") != "" {
		t.Errorf("%v", b["blockers"])
	}
	ended := o.campaign(t, oneRow, fmt.Sprintf(`"ends_at":%d`, epoch(-time.Minute)))
	if b := o.add(t, ended, "k", oneCall).want(t, 201).object(t); codes(t, b, "blockers") != "ends_at_past" {
		t.Errorf("%v", b["blockers"])
	}
}

func foreignBatch(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(week)), confirmed)
	b := o.add(t, c, "k", `"calls":[{"phone":"+14165550101"}]`).want(t, 201).object(t)
	hasMembers(t, b["import"].(map[string]any), map[string]any{"accepted": 1, "warned": 1, "rejected": 0})
	if codes(t, b, "blockers") != "contacts_geo_rejected" {
		t.Errorf("%v", b["blockers"])
	}
	hasMembers(t, o.progress(t, c), map[string]any{"suppressed_reasons": map[string]any{"geo_rejected": 1}})
}

func batchOnce(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	var all sync.WaitGroup
	answers := make([]response, 20)
	for i := range answers {
		all.Go(func() {
			var err error
			answers[i], err = o.request(t.Context(), "POST", fmt.Sprintf("/v1/campaigns/%v/calls", c["campaign_id"]), "{"+oneCall+","+confirmed+"}", "Idempotency-Key", "k")
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, a := range answers {
		if a.status != 201 {
			wantError(t, a, 409, "idempotency_key_in_flight")
		}
	}
	if n := o.contacts(t, c); n != 2 {
		t.Errorf("%v contacts", n)
	}
}

func batchWithoutMarket(t *testing.T, s *service) {
	o := s.organization(t)
	c := o.campaign(t)
	wantError(t, o.add(t, c, "k", oneCall), 409, "market_package_not_installed")
	o.useUSRules(t)
	o.add(t, c, "k", `"calls":[{"phone":"2125550102"}]`).want(t, 201)
}

func batchWithoutAdditions(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for _, more := range []string{`"accepts_call_additions":false`, fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(week))} {
		o.add(t, o.campaign(t, oneRow, confirmed, more), "k", oneCall).want(t, 201)
	}
}

func batchRateLimit(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed)
	o.key, _ = o.newKey(t, apikeys.Key{RateLimit: 3})
	a := o.add(t, c, "k", `"calls":[{"phone":"2125550101"},{"phone":"2125550102"},{"phone":"2125550103"}]`).want(t, 201)
	if got := a.header.Get("X-Ratelimit-Remaining"); got != "2" {
		t.Errorf("X-Ratelimit-Remaining %s, want 2", got)
	}
}
