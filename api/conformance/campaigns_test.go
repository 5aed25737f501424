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
)

// TestCampaigns covers POST /v1/campaigns.
func TestCampaigns(t *testing.T) {
	checkAll(t, "CC", []statement{
		{1, "a valid order returns 201 with the running campaign", validCampaign},
		{2, "a missing name, agent_id or calls_per_minute and wrong types return 422 invalid_request with a list of issues", campaignSchema},
		{3, "schema errors are reported before a missing Idempotency-Key", schemaBeforeKey},
		{4, "a missing or blank Idempotency-Key returns 422 idempotency_key_required", campaignKey},
		{5, "invalid values of enumerations have specific codes", closedSets},
		{6, "errors are reported in the documented order", orderOfCampaignChecks},
		{7, "ends_at not later than starts_at returns 422 campaign_window_invalid; without starts_at it is not compared", campaignWindow},
		{8, "an open campaign requires ends_at at most 30 days ahead", openCampaignEnds},
		{9, "fixed offsets and unknown names return 422 campaign_timezone_unknown; Region/City and UTC are accepted", campaignTimezones},
		{10, "timezone_source is request or organization, the same in create, get and list", timezoneSource},
		{11, "one matching subgroup is the binding; several are ambiguous, none is unresolved", campaignBinding},
		{12, "working hours may narrow the legal hours but not widen them; a row never crosses midnight", campaignHours},
		{13, "a name has 1 to 80 characters after trimming", campaignName},
		{14, "calls_per_minute is one of the tiers; above the subgroup's limit it is accepted with a warning", campaignPace},
		{15, "retry_config defaults to one attempt and 900 s; values out of bounds return 422 campaign_spec_invalid", campaignRetries},
		{16, "marketing requires consent tier pewc, servicing and debt_collection pec; clients cannot set it", consentTiers},
		{17, "a rejected request creates no campaign and frees the key", rejectionLeavesNoCampaign},
		{18, "without a market package rows return 409; the draft remains listed and its key in flight", noMarketPackage},
		{19, "an unpublished agent creates a draft with blocker agent_not_published", unpublishedCampaign},
		{20, "starts_at in the future schedules, earlier today starts now, before today is blocker starts_date_past", campaignStarts},
		{21, "a past ends_at is blocker ends_at_past", campaignEnded},
		{22, "only confirmed: true attests consent; otherwise the campaign is a draft with blocker attestation_required", campaignConsent},
		{23, "without rows import is null with blocker no_pending_contacts; an open campaign runs", campaignWithoutRows},
		{24, "duplicate_action reject rejects every copy, keep_first and keep_last keep one; accepted, rejected and dropped add up", campaignDuplicates},
		{25, "foreign and toll-free numbers are suppressed; a list of only such numbers has blocker contacts_geo_rejected", campaignGeography},
		{26, "a number on the do-not-call list is blocker dnc_matches; with dnc skip it is suppressed and the others are called", campaignDNC},
		{27, "the warning is either frequency_policy_active with the caps or frequency_limits_disabled", campaignFrequency},
		{28, "empty working hours have the warning working_hours_law_only", campaignLawOnly},
		{29, "a repeat returns the original response byte for byte; another body with its key returns 422 idempotency_key_reuse", campaignReplay},
		{30, "20 concurrent equal requests create one campaign", campaignOnce},
		{31, "unknown and read-only keys are ignored", campaignUnknownKeys},
		{32, "invalid rows are reported in import with 201", badRows},
		{33, "phones may be integers", integerPhones},
	})
}

func (o *organization) useUSRules(t *testing.T) *organization {
	t.Helper()
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, market: us, timezone: America/New_York}]", o.name))
	return o
}

func (o *organization) suppress(t *testing.T, numbers ...string) {
	t.Helper()
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, suppression: [%s]}]", o.name, quoted(numbers...)))
}

func quoted(all ...string) string {
	var q []string
	for _, s := range all {
		q = append(q, fmt.Sprintf("%q", s))
	}
	return strings.Join(q, ",")
}

// usOrganization returns an organization with US rules whose trunk dials no one before tomorrow.
func usOrganization(t *testing.T, s *service) *organization {
	t.Helper()
	o := s.organization(t).useUSRules(t)
	s.exec(t, "UPDATE trunks SET calls_per_second = 1e-5, next_dial_at = now() + interval '1 day' WHERE org_id = $1", o.id)
	return o
}

// week is long enough to contain working hours.
const week = 7 * 24 * time.Hour

// zoneAtNoon returns a time zone in which now is between 12:00 and 13:00.
func zoneAtNoon(now time.Time) string {
	return []string{
		"Pacific/Tarawa", "Pacific/Noumea", "Australia/Brisbane", "Asia/Tokyo", "Asia/Singapore", "Asia/Bangkok", "Asia/Thimphu", "Asia/Tashkent",
		"Asia/Dubai", "Africa/Nairobi", "Africa/Maputo", "Africa/Lagos", "Africa/Abidjan", "Atlantic/Cape_Verde", "Atlantic/South_Georgia",
		"America/Cayenne", "America/Puerto_Rico", "America/Panama", "America/Regina", "America/Phoenix", "Pacific/Pitcairn", "Pacific/Gambier",
		"Pacific/Honolulu", "Pacific/Pago_Pago",
	}[now.UTC().Hour()]
}

const (
	confirmed = `"attestation":{"confirmed":true}`
	oneRow    = `"planned_calls":[{"phone":"2125550101"}]`
)

func (o *organization) create(t *testing.T, key string, more ...string) response {
	t.Helper()
	return o.do(t, "POST", "/v1/campaigns", campaignBody(more...), "Idempotency-Key", key)
}

func campaignBody(more ...string) string {
	return "{" + strings.Join(append([]string{`"name":"Spring","agent_id":"sales","calls_per_minute":20`}, more...), ",") + "}"
}

func (o *organization) campaign(t *testing.T, more ...string) map[string]any {
	t.Helper()
	return o.create(t, fmt.Sprint(time.Now().UnixNano()), more...).want(t, http.StatusCreated).object(t)
}

func epoch(d time.Duration) int64 { return time.Now().Add(d).Unix() }

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

func hasMembers(t *testing.T, m, want map[string]any) {
	t.Helper()
	for name, v := range want {
		if fmt.Sprint(m[name]) != fmt.Sprint(v) {
			t.Errorf("%s is %v, want %v", name, m[name], v)
		}
	}
}

// wantErrorWith is wantError for an error with one more field, which it returns.
func wantErrorWith(t *testing.T, a response, status int, code, field string) any {
	t.Helper()
	e := a.want(t, status).envelope(t)
	if got := slices.Sorted(maps.Keys(e)); !slices.Equal(got, slices.Sorted(slices.Values([]string{"code", "message", "status", "type", field}))) {
		t.Errorf("%v has the fields %v", a, got)
	}
	if e["code"] != code || e["status"] != float64(status) {
		t.Errorf("%v, want %s", a, code)
	}
	return e[field]
}

func validCampaign(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, `"planned_calls":[{"phone":"2125550101","name":"Ada","variables":{"a":"b"}}],"working_hours":[{"days":[4,0,0],"start":"10:00","end":"17:00"}]`, confirmed)
	hasMembers(t, c, map[string]any{
		"status": "running", "created_via": "api", "launched_via": "api", "name": "Spring", "agent_id": "sales", "timezone": "America/New_York",
		"timezone_source": "organization", "starts_at": nil, "ends_at": nil, "accepts_call_additions": false, "calls_per_minute": 20,
		"call_strategy": "standard", "classification": "marketing", "consent_tier": "pewc", "duplicate_action": "reject", "use_contact_timezone": false,
		"retry_config": map[string]any{"attempts": 1, "interval_s": 900}, "working_hours": "[map[days:[0 4] end:17:00 start:10:00]]", "blockers": []any{},
	})
	for name := range c["binding"].(map[string]any) {
		if c["binding"].(map[string]any)[name] == "" {
			t.Errorf("binding.%s is empty", name)
		}
	}
	i := c["import"].(map[string]any)
	hasMembers(t, i, map[string]any{
		"status": "accepted", "rows_seen": 1, "accepted": 1, "warned": 0, "rejected": 0, "duplicates_found": 0, "dnc_matched": 0, "refusal_code": "", "dnc_matches": []any{},
	})
	x := c["dnc_screen"].(map[string]any)
	if fmt.Sprint(x) != fmt.Sprint(i["dnc_screen"]) || x["as_of_launch"] != true || x["audit_id"] == 0.0 || x["import_id"] != i["import_id"] || x["matched_rows"] != 0.0 {
		t.Errorf("screen %v", x)
	}
	for _, name := range []string{
		"status", "checked_rows", "unscreened_rows", "matched_rows", "suppressed_contacts", "hidden_rows", "fingerprint", "items", "has_more",
		"all_dialable_suppressed", "as_of_launch", "screened_at", "audit_id", "decision", "import_id",
	} {
		if _, ok := x[name]; !ok {
			t.Errorf("the screen has no %s", name)
		}
	}
}

func campaignSchema(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for _, body := range []string{
		"{", "[]", `{"agent_id":"sales","calls_per_minute":20}`, `{"name":"x","calls_per_minute":20}`, `{"name":"x","agent_id":"sales"}`,
		`{"name":7,"agent_id":"sales","calls_per_minute":20}`, `{"name":"x","agent_id":"sales","calls_per_minute":"20"}`,
		`{"name":"x","agent_id":"sales","calls_per_minute":20.5}`, campaignBody(`"planned_calls":{}`), campaignBody(`"planned_calls":[7]`),
		campaignBody(`"starts_at":"soon"`), campaignBody(`"accepts_call_additions":"yes"`), campaignBody(`"attestation":true`),
		campaignBody(`"retry_config":{"attempts":"2"}`), campaignBody(`"retry_config":{"attempts":true}`), campaignBody(`"working_hours":[{"days":"all"}]`),
	} {
		wantError(t, o.do(t, "POST", "/v1/campaigns", body, "Idempotency-Key", "k"), 422, "invalid_request")
	}
	o.create(t, "k", `"planned_calls":null,"starts_at":null,"ends_at":null,"working_hours":null`).want(t, 201)
	o.do(t, "POST", "/v1/campaigns", `{"name":"x","agent_id":"sales","calls_per_minute":20.0}`, "Idempotency-Key", "k2").want(t, 201)
}

func schemaBeforeKey(t *testing.T, s *service) {
	wantError(t, s.empty(t).do(t, "POST", "/v1/campaigns", `{"name":7}`), 422, "invalid_request")
}

func campaignKey(t *testing.T, s *service) {
	o := s.organization(t)
	wantError(t, o.do(t, "POST", "/v1/campaigns", campaignBody()), 422, "idempotency_key_required")
	wantError(t, o.create(t, "   "), 422, "idempotency_key_required")
	wantError(t, o.create(t, strings.Repeat("k", 256)), 422, "invalid_request")
}

func closedSets(t *testing.T, s *service) {
	o := s.organization(t)
	for more, code := range map[string]string{
		`"dnc":"maybe"`: "dnc_decision_invalid", `"classification":"survey"`: "campaign_classification_invalid",
		`"duplicate_action":"merge"`: "campaign_spec_invalid", `"call_strategy":"wild"`: "campaign_spec_invalid",
	} {
		wantError(t, o.create(t, "k", more), 422, code)
	}
}

func orderOfCampaignChecks(t *testing.T, s *service) {
	o := usOrganization(t, s)
	bad := []struct{ member, code string }{ // in the documented order
		{`"dnc":"maybe"`, "dnc_decision_invalid"},
		{`"starts_at":2000000000,"ends_at":1999999999`, "campaign_window_invalid"},
		{`"accepts_call_additions":true`, "campaign_open_ends_at_required"},
		{`"agent_id":"unknown"`, "campaign_agent_unknown"},
		{`"timezone":"GMT+5"`, "campaign_timezone_unknown"},
		{`"route_id":"rte_x"`, "dialing_binding_incomplete"},
		{`"working_hours":[{"days":[0],"start":"03:00","end":"04:00"},{"days":[9],"start":"1","end":"2"}]`, "working_hours_wider_than_law"},
		{`"call_strategy":"wild"`, "campaign_spec_invalid"},
		{`"classification":"survey"`, "campaign_classification_invalid"},
	}
	for i, first := range bad {
		for _, second := range bad[i+1:] {
			members := []string{`"name":"x"`, `"calls_per_minute":20`, first.member, second.member}
			if !strings.Contains(first.member+second.member, "agent_id") {
				members = append(members, `"agent_id":"sales"`)
			}
			a := o.do(t, "POST", "/v1/campaigns", "{"+strings.Join(members, ",")+"}", "Idempotency-Key", "k")
			if first.code == "campaign_window_invalid" && strings.Contains(second.member, "additions") || i == 0 {
				wantError(t, a, 422, first.code)
				continue
			}
			// An invalid classification has no legal hours either.
			if first.code == "working_hours_wider_than_law" && second.code == "campaign_classification_invalid" && a.status == 422 {
				continue
			}
			wantError(t, a, 422, first.code)
		}
	}
}

func campaignWindow(t *testing.T, s *service) {
	o := usOrganization(t, s)
	at := epoch(time.Hour)
	wantError(t, o.create(t, "k", fmt.Sprintf(`"starts_at":%d,"ends_at":%d`, at, at)), 422, "campaign_window_invalid")
	c := o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"ends_at":%d`, epoch(-time.Hour)))
	if c["status"] != "draft" || codes(t, c, "blockers") != "ends_at_past" {
		t.Errorf("%v %v", c["status"], c["blockers"])
	}
}

func openCampaignEnds(t *testing.T, s *service) {
	o := usOrganization(t, s)
	wantError(t, o.create(t, "k", `"accepts_call_additions":true`), 422, "campaign_open_ends_at_required")
	wantError(t, o.create(t, "k", fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(30*24*time.Hour+time.Minute))), 422, "campaign_open_ends_at_too_far")
	c := o.campaign(t, confirmed, fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(30*24*time.Hour-time.Minute)))
	if c["accepts_call_additions"] != true || c["status"] != "running" {
		t.Errorf("%v %v", c["status"], c["blockers"])
	}
}

func campaignTimezones(t *testing.T, s *service) {
	o := s.organization(t)
	for _, name := range []string{"Local", "Factory", "GMT", "Zulu", "EST5EDT", "EST", "Etc/GMT-5", "+05:00", "UTC+5", "GMT+5", "Z", "america/new_york", "Mars/Base", "../etc"} {
		wantError(t, o.create(t, "k", fmt.Sprintf(`"timezone":%q`, name)), 422, "campaign_timezone_unknown")
	}
	for i, name := range []string{"UTC", "Etc/UTC", "Asia/Almaty", "America/Argentina/Buenos_Aires"} {
		if c := o.create(t, fmt.Sprint("k", i), fmt.Sprintf(`"timezone":%q`, name)).want(t, 201).object(t); c["timezone"] != name {
			t.Errorf("%v", c["timezone"])
		}
	}
}

func timezoneSource(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for more, want := range map[string][2]string{
		`"timezone":""`: {"America/New_York", "organization"}, `"timezone":"America/New_York"`: {"America/New_York", "request"}, `"timezone":null`: {"America/New_York", "organization"},
	} {
		c := o.campaign(t, more)
		id := c["campaign_id"].(string)
		views := []map[string]any{c, o.do(t, "GET", "/v1/campaigns/"+id, "").want(t, 200).object(t)}
		for _, x := range o.do(t, "GET", "/v1/campaigns", "").want(t, 200).object(t)["campaigns"].([]any) {
			if m := x.(map[string]any); m["campaign_id"] == id {
				views = append(views, m)
			}
		}
		for i, v := range views {
			if v["timezone"] != want[0] || v["timezone_source"] != want[1] {
				t.Errorf("%s, view %d: %v from %v", more, i, v["timezone"], v["timezone_source"])
			}
		}
		if len(views) != 3 {
			t.Errorf("%d views", len(views))
		}
	}
}

func campaignBinding(t *testing.T, s *service) {
	o := s.organization(t)
	b := o.campaign(t)["binding"].(map[string]any)
	trunk, route := fmt.Sprint(b["trunk_id"]), fmt.Sprint(b["route_id"])
	if b["from_number"] != "+12025550100" {
		t.Errorf("from_number %v", b["from_number"])
	}
	for _, more := range []string{`"route_id":"` + route + `"`, `"from_number":"+12025550100"`} {
		wantError(t, o.create(t, "k", more), 422, "dialing_binding_incomplete")
	}
	of := `"trunk_id":"` + trunk + `"`
	for _, more := range []string{`"trunk_id":"trk_x"`, of + `,"route_id":"rte_x"`, of + `,"from_number":"+12025559999"`} {
		wantError(t, o.create(t, "k", more), 422, "dialing_route_unresolved")
	}
	if got := o.campaign(t, of+`,"from_number":"12025550101"`)["binding"].(map[string]any); got["from_number"] != "+12025550101" {
		t.Errorf("%v", got)
	}
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, trunks: [{name: main, subgroups: [{name: second, allowed_destinations: ["1"], agents: [sales]}]}]}]`, o.name))
	wantError(t, o.create(t, "k"), 422, "dialing_route_ambiguous")
	if got := o.campaign(t, of+`,"route_id":"`+route+`"`)["binding"].(map[string]any); got["route_id"] != route {
		t.Errorf("%v", got)
	}
}

func campaignHours(t *testing.T, s *service) {
	o := usOrganization(t, s)
	row := func(days, start, end string) string {
		return fmt.Sprintf(`"working_hours":[{"days":[%s],"start":%q,"end":%q}]`, days, start, end)
	}
	for _, wide := range []string{row("0", "07:59", "12:00"), row("0", "12:00", "21:01"), row("6", "00:00", "24:00")} {
		wantError(t, o.create(t, "k", wide), 422, "working_hours_wider_than_law")
	}
	for _, form := range []string{row("", "10:00", "11:00"), row("7", "10:00", "11:00"), row("0", "11:00", "11:00"), row("0", "12:00", "11:00"), row("0", "9:00", "11:00"), row("0", "10:00", "25:00")} {
		wantError(t, o.create(t, "k", form), 422, "campaign_spec_invalid")
	}
	if c := o.campaign(t, row("0,1,2,3,4", "08:00", "21:00")); strings.Contains(codes(t, c, "warnings"), "working_hours") {
		t.Errorf("%v", c["warnings"])
	}
}

func campaignName(t *testing.T, s *service) {
	o := s.organization(t)
	named := func(name string) response {
		return o.do(t, "POST", "/v1/campaigns", fmt.Sprintf(`{"name":%q,"agent_id":"sales","calls_per_minute":1}`, name), "Idempotency-Key", name+"k")
	}
	long := strings.Repeat("é", 80)
	wantError(t, named(" \t "), 422, "campaign_spec_invalid")
	wantError(t, named(long+"é"), 422, "campaign_spec_invalid")
	if c := named("  "+long+" ").want(t, 201).object(t); c["name"] != long {
		t.Errorf("%v", c["name"])
	}
}

func campaignPace(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.subgroup(t, "calls_per_minute: 5")
	pace := func(v string) response {
		return o.do(t, "POST", "/v1/campaigns", fmt.Sprintf(`{"name":"x","agent_id":"sales","calls_per_minute":%s}`, v), "Idempotency-Key", v)
	}
	for _, v := range []string{"0", "-1", "3", "50", "201", "1000000"} {
		wantError(t, pace(v), 422, "campaign_spec_invalid")
	}
	for _, v := range []int{1, 2, 5, 10, 20, 30, 60, 100, 200} {
		c := pace(fmt.Sprint(v)).want(t, 201).object(t)
		if c["calls_per_minute"] != float64(v) || strings.Contains(codes(t, c, "warnings"), "pace_exceeds_route_limit") != (v > 5) {
			t.Errorf("%d: %v %v", v, c["calls_per_minute"], c["warnings"])
		}
	}
}

func campaignRetries(t *testing.T, s *service) {
	o := s.organization(t)
	for _, bad := range []string{
		`"retry_config":{"attempts":0}`, `"retry_config":{"attempts":11}`, `"retry_config":{"interval_s":59}`, `"retry_config":{"interval_s":604801}`,
		`"retry_config":{"rules":[{"on":["busy"],"action":"redial"}]}`, `"call_strategy":"expert"`, `"call_strategy":"expert","retry_config":{"rules":[{"on":["rain"],"action":"redial"}]}`,
		`"call_strategy":"expert","retry_config":{"rules":[{"on":["busy"],"action":"redial","odd":1}]}`,
	} {
		wantError(t, o.create(t, "k", bad), 422, "campaign_spec_invalid")
	}
	hasMembers(t, o.campaign(t, `"retry_config":{"attempts":3}`), map[string]any{"retry_config": map[string]any{"attempts": 3, "interval_s": 900}})
	c := o.campaign(t, `"call_strategy":"expert","retry_config":{"attempts":2,"rules":[{"on":["busy"],"action":"redial","interval_s":60}]}`)
	if rules, _ := c["retry_config"].(map[string]any)["rules"].([]any); len(rules) != 1 || c["call_strategy"] != "expert" {
		t.Errorf("%v", c["retry_config"])
	}
}

func consentTiers(t *testing.T, s *service) {
	o := s.organization(t)
	for class, tier := range map[string]string{"marketing": "pewc", "servicing": "pec", "debt_collection": "pec"} {
		hasMembers(t, o.campaign(t, fmt.Sprintf(`"classification":%q,"consent_tier":"none"`, class)), map[string]any{"classification": class, "consent_tier": tier})
	}
}

func (o *organization) campaigns(t *testing.T) int {
	t.Helper()
	return len(o.do(t, "GET", "/v1/campaigns?limit=100", "").want(t, 200).object(t)["campaigns"].([]any))
}

func rejectionLeavesNoCampaign(t *testing.T, s *service) {
	o := usOrganization(t, s)
	wantError(t, o.create(t, "k", `"timezone":"GMT+5"`), 422, "campaign_timezone_unknown")
	if n := o.campaigns(t); n != 0 {
		t.Errorf("%d campaigns were created", n)
	}
	o.create(t, "k", oneRow, confirmed).want(t, 201)
}

func noMarketPackage(t *testing.T, s *service) {
	o := s.organization(t)
	wantError(t, o.create(t, "k", oneRow, confirmed), 409, "market_package_not_installed")
	wantError(t, o.create(t, "k", oneRow, confirmed), 409, "idempotency_key_in_flight")
	wantError(t, o.create(t, "k", oneRow), 422, "idempotency_key_reuse")
	all := o.do(t, "GET", "/v1/campaigns", "").want(t, 200).object(t)["campaigns"].([]any)
	if len(all) != 1 || all[0].(map[string]any)["status"] != "draft" {
		t.Fatalf("%v", all)
	}
	c := o.do(t, "GET", "/v1/campaigns/"+all[0].(map[string]any)["campaign_id"].(string), "").want(t, 200).object(t)
	if c["import"] != nil || c["dnc_screen"].(map[string]any)["status"] != "not_screened" {
		t.Errorf("%v", c)
	}
}

func unpublishedCampaign(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: sales, published: false}]}]`, o.name))
	c := o.campaign(t, oneRow, confirmed)
	if c["status"] != "draft" || codes(t, c, "blockers") != "agent_not_published" || c["blockers"].([]any)[0].(map[string]any)["field"] != "agent_id" {
		t.Errorf("%v %v", c["status"], c["blockers"])
	}
}

func campaignStarts(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"starts_at":%d`, epoch(time.Hour)))
	if c["status"] != "scheduled" || strings.Contains(codes(t, c, "warnings"), "starts_immediately") {
		t.Errorf("%v %v", c["status"], c["warnings"])
	}
	// Today's midnight in the campaign's zone is not a past date.
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	y, m, d := time.Now().In(zone).Date()
	midnight := time.Date(y, m, d, 0, 0, 0, 0, zone)
	if c = o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"starts_at":%d`, midnight.Unix())); c["status"] != "running" || !strings.Contains(codes(t, c, "warnings"), "starts_immediately") {
		t.Errorf("earlier today: %v %v", c["status"], c["blockers"])
	}
	if c = o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"starts_at":%d`, midnight.Unix()-1)); c["status"] != "draft" || codes(t, c, "blockers") != "starts_date_past" {
		t.Errorf("yesterday: %v %v", c["status"], c["blockers"])
	}
}

func campaignEnded(t *testing.T, s *service) {
	c := usOrganization(t, s).campaign(t, oneRow, confirmed, fmt.Sprintf(`"ends_at":%d`, epoch(-time.Second)))
	if c["status"] != "draft" || codes(t, c, "blockers") != "ends_at_past" {
		t.Errorf("%v %v", c["status"], c["blockers"])
	}
}

func campaignConsent(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for _, a := range []string{`"attestation":null`, `"attestation":{}`, `"attestation":{"confirmed":1}`, `"attestation":{"confirmed":"true"}`, `"attestation":{"confirmed":false}`} {
		if a == `"attestation":null` {
			a = `"dnc":"block"`
		}
		c := o.campaign(t, oneRow, a)
		if c["status"] != "draft" || codes(t, c, "blockers") != "attestation_required" || c["launched_via"] != "" {
			t.Errorf("%s: %v %v", a, c["status"], c["blockers"])
		}
	}
	if c := o.campaign(t, oneRow, `"attestation":{"confirmed":true,"import_id":"","odd":1}`); c["status"] != "running" {
		t.Errorf("%v %v", c["status"], c["blockers"])
	}
}

func campaignWithoutRows(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, `"planned_calls":[]`)
	if c["import"] != nil || c["status"] != "draft" || codes(t, c, "blockers") != "no_pending_contacts" {
		t.Errorf("%v %v %v", c["import"], c["status"], c["blockers"])
	}
	x := c["dnc_screen"].(map[string]any)
	hasMembers(t, x, map[string]any{"status": "not_screened", "audit_id": 0, "screened_at": 0, "fingerprint": "", "import_id": "", "decision": "", "items": []any{}})
	c = o.campaign(t, confirmed, fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(week)))
	if c["import"] != nil || c["status"] != "running" || codes(t, c, "blockers") != "" {
		t.Errorf("open: %v %v %v", c["import"], c["status"], c["blockers"])
	}
}

func campaignDuplicates(t *testing.T, s *service) {
	o := usOrganization(t, s)
	rows := `"planned_calls":[{"phone":"2125550101","name":"a"},{"phone":"+1 (212) 555-0101","name":"b"},{"phone":"12125550101","name":"c"},{"phone":"2125550102"},{"phone":"x"}]`
	for action, want := range map[string][4]int{"reject": {1, 4, 2, 0}, "keep_first": {2, 1, 2, 2}, "keep_last": {2, 1, 2, 2}} {
		i := o.campaign(t, rows, confirmed, fmt.Sprintf(`"duplicate_action":%q`, action))["import"].(map[string]any)
		got := [3]int{int(i["accepted"].(float64)), int(i["rejected"].(float64)), int(i["duplicates_found"].(float64))}
		if got != [3]int(want[:3]) || got[0]+got[1]+want[3] != int(i["rows_seen"].(float64)) {
			t.Errorf("%s: accepted, rejected, duplicates are %v", action, got)
		}
		severity := map[bool]string{true: "error", false: "warning"}[action == "reject"]
		for _, x := range i["issues"].(map[string]any)["items"].([]any) {
			if m := x.(map[string]any); m["code"] == "duplicate_phone" && m["severity"] != severity {
				t.Errorf("%s: %v", action, m)
			}
		}
	}
}

func campaignGeography(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, `"planned_calls":[{"phone":"2125550101"},{"phone":"+14165550101"},{"phone":"8005550101"},{"phone":"+442079460101"}]`, confirmed)
	hasMembers(t, c["import"].(map[string]any), map[string]any{"accepted": 4, "rejected": 0, "warned": 3})
	if c["status"] != "running" || !strings.Contains(codes(t, c, "warnings"), "contacts_geo_partially_rejected") {
		t.Errorf("%v %v", c["status"], c["warnings"])
	}
	p := o.progress(t, c)
	hasMembers(t, p["suppressed_reasons"].(map[string]any), map[string]any{"geo_rejected": 3})
	c = o.campaign(t, `"planned_calls":[{"phone":"+14165550101"}]`, confirmed)
	if c["status"] != "draft" || !strings.Contains(codes(t, c, "blockers"), "contacts_geo_rejected") {
		t.Errorf("%v %v", c["status"], c["blockers"])
	}
}

func campaignDNC(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.suppress(t, "+12125550102")
	rows := `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102","name":"Bob"}]`
	c := o.campaign(t, rows, confirmed)
	x := c["dnc_screen"].(map[string]any)
	hasMembers(t, x, map[string]any{"matched_rows": 1, "suppressed_contacts": 0, "as_of_launch": false, "decision": "block", "hidden_rows": 0, "has_more": false})
	hasMembers(t, x["items"].([]any)[0].(map[string]any), map[string]any{"row": 2, "phone": "+12125550102", "name": "Bob", "registry": "org_suppression"})
	if c["status"] != "draft" || codes(t, c, "blockers") != "dnc_matches" || c["import"].(map[string]any)["dnc_matched"] != 1.0 {
		t.Errorf("%v %v", c["status"], c["blockers"])
	}
	c = o.campaign(t, rows, confirmed, `"dnc":"skip"`)
	hasMembers(t, c["dnc_screen"].(map[string]any), map[string]any{"matched_rows": 1, "suppressed_contacts": 1, "as_of_launch": true, "decision": "skip"})
	p := o.progress(t, c)
	hasMembers(t, p, map[string]any{"dnc_suppressed_at_launch": 1, "dnc_suppressed_mid_campaign": 0})
	c = o.campaign(t, `"planned_calls":[{"phone":"2125550102"}],"dnc":"skip"`, confirmed)
	if x := c["dnc_screen"].(map[string]any); x["all_dialable_suppressed"] != true {
		t.Errorf("%v %v", c["status"], x)
	}
}

func campaignFrequency(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t)
	found := 0
	for _, x := range c["warnings"].([]any) {
		if w := x.(map[string]any); w["code"] == "frequency_policy_active" {
			found++
			if w["rolling_7d_cap"] == nil || w["daily_cap"] == nil || w["source"] == nil {
				t.Errorf("%v", w)
			}
		}
	}
	if found != 1 || strings.Contains(codes(t, c, "warnings"), "frequency_limits_disabled") {
		t.Errorf("%v", c["warnings"])
	}
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, frequency_caps: {enabled: false}}]`, o.name))
	if w := codes(t, o.campaign(t), "warnings"); !strings.Contains(w, "frequency_limits_disabled") || strings.Contains(w, "frequency_policy_active") {
		t.Errorf("%s", w)
	}
}

func campaignLawOnly(t *testing.T, s *service) {
	if w := codes(t, usOrganization(t, s).campaign(t), "warnings"); !strings.Contains(w, "working_hours_law_only") || strings.Contains(w, "org_window") {
		t.Errorf("%s", w)
	}
	o := s.organization(t)
	if w := codes(t, o.campaign(t), "warnings"); !strings.Contains(w, "working_hours_org_window_only") || strings.Contains(w, "law_only") {
		t.Errorf("without a market: %s", w)
	}
}

func campaignReplay(t *testing.T, s *service) {
	o := usOrganization(t, s)
	first := o.create(t, "k", oneRow, confirmed).want(t, 201)
	id := first.object(t)["campaign_id"].(string)
	o.do(t, "POST", "/v1/campaigns/"+id+"/cancel", "").want(t, 200)
	again := o.create(t, " k ", confirmed, oneRow).want(t, 201) // the order of members has no effect
	if string(again.body) != string(first.body) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v", again)
	}
	wantError(t, o.create(t, "k", oneRow), 422, "idempotency_key_reuse")
	// Errors that precede the key check apply to a repeat too.
	wantError(t, o.create(t, "k", `"dnc":"maybe"`), 422, "dnc_decision_invalid")
	if n := o.campaigns(t); n != 1 {
		t.Errorf("%d campaigns", n)
	}
}

func campaignOnce(t *testing.T, s *service) {
	o := usOrganization(t, s)
	var all sync.WaitGroup
	answers := make([]response, 20)
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = o.request(t.Context(), "POST", "/v1/campaigns", campaignBody(oneRow, confirmed), "Idempotency-Key", "same"); err != nil {
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
	if n := o.campaigns(t); n != 1 {
		t.Errorf("%d campaigns", n)
	}
}

func campaignUnknownKeys(t *testing.T, s *service) {
	c := usOrganization(t, s).campaign(t, oneRow, confirmed, `"frequency_override":{"daily":99},"consent_tier":"none","status":"completed","created_via":"dashboard","PLANNED_CALLS":7`)
	hasMembers(t, c, map[string]any{"status": "running", "consent_tier": "pewc", "created_via": "api"})
}

func badRows(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, `"planned_calls":[{"phone":"2125550101"},{"phone":"12"},{"name":"unknown"},{"phone":"2125550102","variables":{"n":1}},{"phone":"2125550103","timezone":"GMT+5"}]`)
	i := c["import"].(map[string]any)
	hasMembers(t, i, map[string]any{"status": "accepted", "rows_seen": 5, "accepted": 1, "rejected": 4})
	issues := i["issues"].(map[string]any)
	hasMembers(t, issues, map[string]any{
		"total": 4, "shown": 4, "truncated": false,
		"by_code": map[string]any{"phone_invalid": 1, "phone_missing": 1, "variables_invalid": 1, "timezone_unknown": 1},
	})
	hasMembers(t, issues["items"].([]any)[0].(map[string]any), map[string]any{"row": 2, "column": "phone", "code": "phone_invalid", "severity": "error", "value": "12"})
}

func integerPhones(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, `"planned_calls":[{"phone":12125550101}]`)
	w := o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":[12125550101]}`).want(t, 200).object(t)
	if got := w["withdrawn"].([]any); len(got) != 1 || got[0].(map[string]any)["phone"] != "+12125550101" || got[0].(map[string]any)["campaign_id"] != c["campaign_id"] {
		t.Errorf("%v", w)
	}
}
