package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/apikeys"
)

const validBody = `{"agent_id":"sales","to_number":"+12025550123"`

func body(more string) string {
	if more != "" {
		more = "," + more
	}
	return validBody + more + "}"
}

// TestPhoneErrorOrder checks that POST /v1/calls/phone reports errors in the contract's order. Each request also has the errors of
// all later rows.
func TestPhoneErrorOrder(t *testing.T) {
	h := newEnv(t)
	h.agent(h.org, "draft", false)
	h.agent(h.org, "unattached", true)
	h.agent(h.org, "both", true)
	_, second := h.subgroup(h.org, "second", "b", []string{"1"}, "both", "draft")
	h.subgroup(h.org, "third", "c", []string{"1"}, "both")
	full := func(sql string) func() {
		return func() {
			h.exec(sql)
		}
	}
	otherOrg, otherKey := h.organization("globex")
	h.agent(otherOrg, "sales", true)
	otherTrunk, otherRoute := h.subgroup(otherOrg, "main", "default", []string{"1"}, "sales")

	for _, tt := range []struct {
		name, body   string
		before       func()
		after        func()
		status       int
		code, header string // Retry-After of the response
		headers      []string
	}{
		{"no key", body(""), nil, nil, 401, "api_key_required", "", []string{"Authorization", ""}},
		{"two tokens", body(""), nil, nil, 401, "api_key_required", "", []string{"Authorization", "Bearer a b"}},
		{"other scheme", body(""), nil, nil, 401, "api_key_required", "", []string{"Authorization", "Basic " + h.key}},
		{"unknown key", body(""), nil, nil, 401, "api_key_unknown", "", []string{"Authorization", "Bearer parley_00"}},
		{"too large", `{"agent_id":"` + strings.Repeat("x", 4<<20) + `"}`, nil, nil, 413, "request_too_large", "", nil},
		{"too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), func() { h.admission.QueueDepth = -1 }, nil, 422, "invalid_request", "", nil},
		{"long idempotency key", `{`, nil, nil, 422, "invalid_request", "", []string{"Idempotency-Key", strings.Repeat("k", 256)}},
		{"queue full before schema", `{`, nil, func() { h.admission.QueueDepth = 0 }, 429, "dial_queue_full", "60", nil},
		{"no JSON", `{`, nil, nil, 422, "invalid_request", "", nil},
		{"schema before trunk", `{"agent_id":"sales","to_number":5,"trunk_id":"nope"}`, nil, nil, 422, "invalid_request", "", nil},
		{"unknown trunk", body(`"trunk_id":"nope","route_id":"nope"`), nil, nil, 404, "trunk_not_found", "", nil},
		{"other organization's trunk", body(`"trunk_id":"` + otherTrunk + `"`), nil, nil, 404, "trunk_not_found", "", nil},
		{"unknown subgroup", body(`"route_id":"nope","from_number":"+1"`), nil, nil, 404, "subgroup_not_found", "", nil},
		{"alias of route_id", body(`"subgroup_id":"nope"`), nil, nil, 404, "subgroup_not_found", "", nil},
		{"other organization's subgroup", body(`"route_id":"` + otherRoute + `"`), nil, nil, 404, "subgroup_not_found", "", nil},
		{"subgroup of another trunk", body(`"trunk_id":"` + h.trunk + `","route_id":"` + second + `"`), nil, nil, 404, "subgroup_not_found", "", nil},
		{"unknown agent", `{"agent_id":"unknown","to_number":"","from_number":"+1"}`, nil, nil, 403, "agent_not_in_subgroup", "", nil},
		{"agent without subgroup", `{"agent_id":"unattached","to_number":""}`, nil, nil, 403, "agent_not_in_subgroup", "", nil},
		{"agent not in the named one", body(`"route_id":"` + second + `"`), nil, nil, 403, "agent_not_in_subgroup", "", nil},
		{"several subgroups", `{"agent_id":"both","to_number":"","from_number":"+1"}`, nil, nil, 409, "agent_subgroup_ambiguous", "", nil},
		{"caller number", `{"agent_id":"sales","to_number":"","from_number":"+12025550199"}`, nil, nil, 400, "caller_number_not_allowed", "", nil},
		{"no digits", `{"agent_id":"sales","to_number":"call me","ring_duration":1}`, nil, nil, 400, "destination_number_invalid", "", nil},
		{"emergency", `{"agent_id":"sales","to_number":"911","ring_duration":1}`, nil, nil, 403, "destination_not_allowed", "", nil},
		{"premium rate", `{"agent_id":"sales","to_number":"+1 900 555 0123"}`, nil, nil, 403, "destination_not_allowed", "", nil},
		{"not allowed by the subgroup", `{"agent_id":"sales","to_number":"+442071838750"}`, nil, nil, 403, "destination_not_allowed", "", nil},
		{
			"suppressed", body(`"ring_duration":1`), full("INSERT INTO suppressions SELECT id, '12025550123' FROM organizations WHERE name = 'acme'"),
			full("DELETE FROM suppressions"), 403, "destination_not_allowed", "", nil,
		},
		{
			"concurrency", body(`"ring_duration":1`), full("UPDATE subgroups SET concurrent_calls = 0, calls_per_minute = 0"),
			full("UPDATE subgroups SET concurrent_calls = 10"), 429, "subgroup_concurrency_limit", "", nil,
		},
		{"rate", body(`"ring_duration":1`), nil, full("UPDATE subgroups SET calls_per_minute = 30"), 429, "subgroup_rate_limit", "60", nil},
		{"ring too short", `{"agent_id":"draft","to_number":"12025550123","ring_duration":4}`, nil, nil, 400, "ring_duration_invalid", "", nil},
		{"ring not whole", `{"agent_id":"draft","to_number":"12025550123","ring_duration":5.5}`, nil, nil, 400, "ring_duration_invalid", "", nil},
		{"ring too long", `{"agent_id":"draft","to_number":"12025550123","ring_duration":121}`, nil, nil, 400, "ring_duration_invalid", "", nil},
		{"not published", `{"agent_id":"draft","to_number":"12025550123"}`, nil, nil, 409, "agent_not_published", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.before != nil {
				tt.before()
			}
			a := h.do("POST", "/v1/calls/phone", tt.body, tt.headers...)
			if tt.after != nil {
				tt.after()
			}
			if a.status != tt.status || a.code() != tt.code || a.header.Get("Retry-After") != tt.header {
				t.Errorf("%d %s Retry-After %q, want %d %s %q", a.status, a.body, a.header.Get("Retry-After"), tt.status, tt.code, tt.header)
			}
			checkEnvelope(t, a)
		})
	}
	if n := h.count("SELECT count(*) FROM calls"); n != 0 {
		t.Errorf("rejected requests created %d calls", n)
	}
	if a := h.do("POST", "/v1/calls/phone", body(`"ring_duration":null,"trunk_id":"","extra":{"a":1}`)); a.status != 202 {
		t.Errorf("a valid order: %d %s", a.status, a.body)
	}
	_ = otherKey
}

func checkEnvelope(t *testing.T, a response) {
	t.Helper()
	var e struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal(a.body, &e); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	kinds := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
		405: "invalid_request_error", 409: "conflict_error", 413: "invalid_request_error", 422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 503: "service_unavailable_error",
	}
	_, list := e.Error["message"].([]any)
	if len(e.Error) != 4 || e.Error["type"] != kinds[a.status] || e.Error["status"] != float64(a.status) || e.Error["code"] == "" ||
		list != (e.Error["code"] == "invalid_request") {
		t.Errorf("envelope %s", a.body)
	}
	if a.header.Get("X-Request-Id") == "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", a.header)
	}
}

func TestSchemaIssues(t *testing.T) {
	h := newEnv(t)
	h.agent(h.org, "templated", true)
	h.subgroup(h.org, "other", "n", []string{"1"}, "templated")
	for _, tt := range []struct{ body, typ, loc string }{
		{``, "missing", `["body"]`},
		{`{"agent_id"`, "json_invalid", `["body",11]`},
		{`[]`, "dict_type", `["body"]`},
		{`{"to_number":"1"}`, "missing", `["body","agent_id"]`},
		{`{"agent_id":"a","to_number":12025550123}`, "string_type", `["body","to_number"]`},
		{`{"agent_id":"a","to_number":null}`, "string_type", `["body","to_number"]`},
		{body(`"ring_duration":"45"`), "float_type", `["body","ring_duration"]`},
		{body(`"max_duration_s":60.5`), "int_from_float", `["body","max_duration_s"]`},
		{body(`"max_duration_s":"60"`), "int_type", `["body","max_duration_s"]`},
		{body(`"max_duration_s":true`), "int_type", `["body","max_duration_s"]`},
		{body(`"max_duration_s":29`), "greater_than_equal", `["body","max_duration_s"]`},
		{body(`"max_duration_s":7201`), "less_than_equal", `["body","max_duration_s"]`},
		{body(`"record":"yes"`), "bool_type", `["body","record"]`},
		{body(`"variables":[]`), "dict_type", `["body","variables"]`},
		{body(`"voicemail":"shout"`), "literal_error", `["body","voicemail"]`},
		{body(`"name":"` + strings.Repeat("é", 201) + `"`), "string_too_long", `["body","name"]`},
		{body(`"metadata":{"a":"` + strings.Repeat("x", 8<<10) + `"}`), "value_error", `["body","metadata"]`},
		{body(`"metadata":{"a":["\u0000"]}`), "value_error", `["body","metadata","a",0]`},
		{body(`"metadata":{"a":1e999}`), "json_invalid", ``},
		{`{"agent_id":"templated","to_number":"+12025550123"}`, "missing", `["body","variables","first_name"]`},
	} {
		a := h.do("POST", "/v1/calls/phone", tt.body)
		var e struct {
			Error struct {
				Message []struct {
					Type, Msg string
					Loc       json.RawMessage
					Input     json.RawMessage
				}
			}
		}
		if err := json.Unmarshal(a.body, &e); err != nil || a.status != 422 || len(e.Error.Message) != 1 {
			t.Errorf("%.60s: %d %.200s", tt.body, a.status, a.body)
			continue
		}
		m := e.Error.Message[0]
		if m.Type != tt.typ || tt.loc != "" && string(m.Loc) != tt.loc || m.Msg == "" || m.Input == nil {
			t.Errorf("%.60s: %s %s %s, want %s %s", tt.body, m.Type, m.Loc, m.Msg, tt.typ, tt.loc)
		}
	}
	if a := h.do("POST", "/v1/calls/phone", body(`"max_duration_s":60.0,"name":null,"metadata":null,"variables":null,"voicemail":null,"record":null`)); a.status != 202 {
		t.Errorf("60.0 and nulls: %d %s", a.status, a.body)
	}
}

func TestPathsAndMethods(t *testing.T) {
	h := newEnv(t)
	id := h.place()
	for _, tt := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/nope", 404, "not_found_error", ""},
		{"GET", "/v1/nope", 404, "not_found_error", ""},
		{"GET", "/v1/calls/", 404, "not_found_error", ""},
		{"GET", "//v1/calls", 404, "not_found_error", ""},
		{"GET", "/v1/../v1/calls", 404, "not_found_error", ""},
		{"DELETE", "/v1/calls", 405, "invalid_request_error", "GET, HEAD"},
		{"POST", "/v1/calls/" + id, 405, "invalid_request_error", "GET, HEAD"},
		{"PUT", "/v1/calls/phone", 405, "invalid_request_error", "POST"},
		{"GET", "/v1/calls/call_00000000000000000000000000", 404, "call_not_found", ""},
		{"GET", "/v1/calls/%00", 404, "call_not_found", ""},
		{"GET", "/v1/calls/nope/turns", 404, "call_not_found", ""},
		{"POST", "/v1/calls/nope/end", 404, "call_not_found", ""},
	} {
		a := h.do(tt.method, tt.path, "")
		if a.status != tt.status || a.code() != tt.code || a.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d %s Allow %q", tt.method, tt.path, a.status, a.body, a.header.Get("Allow"))
		}
		checkEnvelope(t, a)
		if strings.HasPrefix(tt.path, "/v1/") && a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: Cache-Control %q", tt.path, a.header.Get("Cache-Control"))
		}
	}
	if a := h.do("GET", "/v1/nope", "", "Authorization", ""); a.status != 401 {
		t.Errorf("an unknown path without a key: %d", a.status)
	}
}

func TestTenantIsolation(t *testing.T) {
	h := newEnv(t)
	id := h.place()
	_, other := h.organization("globex")
	as := []string{"Authorization", "Bearer " + other}
	const unknown = "call_00000000000000000000000000"
	for _, tt := range []struct{ method, path string }{{"GET", "/v1/calls/%s"}, {"GET", "/v1/calls/%s/turns"}, {"POST", "/v1/calls/%s/end"}} {
		theirs := h.do(tt.method, fmt.Sprintf(tt.path, id), "", as...)
		none := h.do(tt.method, fmt.Sprintf(tt.path, unknown), "", as...)
		if theirs.status != 404 || string(theirs.body) != string(none.body) {
			t.Errorf("%s: %d %s, unknown id: %s", tt.path, theirs.status, theirs.body, none.body)
		}
	}
	if n := len(h.do("GET", "/v1/calls", "", as...).json(t)["calls"].([]any)); n != 0 {
		t.Errorf("the other organization lists %d calls", n)
	}
	if c := h.do("GET", "/v1/calls/"+id, "").json(t); c["status"] != "queued" {
		t.Errorf("the call is %v after another organization's end", c["status"])
	}
}

func TestKeysAndRate(t *testing.T) {
	h := newEnv(t)
	h.api.RateLimit = 3
	id, secret, err := apikeys.CreateKey(t.Context(), h.db.Pool, apikeys.Key{OrgID: h.org})
	if err != nil {
		t.Fatal(err)
	}
	as := []string{"Authorization", "bearer " + string(secret)}
	for i := range 5 {
		a := h.do("GET", "/v1/calls", "", as...)
		if i < 3 && (a.status != 200 || a.header.Get("X-RateLimit-Limit") != "3" || a.header.Get("X-RateLimit-Remaining") != fmt.Sprint(2-i)) {
			t.Errorf("request %d: %d %v", i, a.status, a.header)
		}
		if i >= 3 && (a.status != 429 || a.code() != "api_key_rate_limit_exceeded" || a.header.Get("Retry-After") != "60" ||
			!strings.Contains(string(a.body), `"this API key has sent its 3 requests of a minute: repeat the request in 60 seconds"`)) {
			t.Errorf("request %d: %d %s", i, a.status, a.body)
		}
	}
	// A changed limit and a revocation apply from the next request.
	if err = apikeys.SetRateLimit(t.Context(), h.db.Pool, id, 4); err != nil {
		t.Fatal(err)
	}
	if a := h.do("GET", "/v1/calls", "", as...); a.status != 200 {
		t.Errorf("after the limit was raised: %d", a.status)
	}
	if err = apikeys.Revoke(t.Context(), h.db.Pool, id); err != nil {
		t.Fatal(err)
	}
	if a := h.do("GET", "/v1/calls", "", as...); a.status != 401 || a.code() != "api_key_revoked" {
		t.Errorf("after the revocation: %d %s", a.status, a.body)
	}
	keys, err := apikeys.ListKeys(t.Context(), h.db.Pool)
	if err != nil || len(keys) != 2 || keys[1].LastUsedAt == nil || keys[1].RevokedAt == nil {
		t.Errorf("keys %+v: %v", keys, err)
	}
}

// TestInternalErrorHidesCause closes the pool under the service.
func TestInternalErrorHidesCause(t *testing.T) {
	h := newEnv(t)
	h.db.Pool.Close()
	a := h.do("GET", "/v1/calls", "")
	if a.status != http.StatusInternalServerError || a.code() != "internal_error" {
		t.Errorf("%d %s", a.status, a.body)
	}
	checkEnvelope(t, a)
	if strings.Contains(string(a.body), "pool") {
		t.Errorf("the response contains the cause: %s", a.body)
	}
}
