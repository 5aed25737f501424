package conformance_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
)

// TestKeys covers authentication and rate limits.
func TestKeys(t *testing.T) {
	checkAll(t, "A", []statement{
		{1, "a request without an Authorization header returns 401 api_key_required", noKey},
		{2, "a malformed Authorization header returns 401 api_key_required", malformedKey},
		{3, "an unknown key returns 401 api_key_unknown", unknownKey},
		{4, "a revoked key returns 401 api_key_revoked from the next request", revokedKey},
		{5, "requests beyond the key's limit in 60 seconds return 429 api_key_rate_limit_exceeded with Retry-After: 60", rateLimit},
		{6, "every request counts once, whatever its response", everyRequestCounts},
		{7, "rejected requests do not count: the full limit is available 60 seconds after it was used", rejectedDoNotCount},
		{8, "the limit is exact across all processes of one database", sharedLimit},
		{9, "a changed limit applies from the next request", changedLimit},
		{10, "a limit of 0 means the platform's limit, 60 per minute by default", platformLimit},
		{11, "a key may have no limit", noLimit},
		{12, "the operator may disable all limits", noLimits},
		{13, "each key has its own limit", separateKeys},
		{14, "an expired key returns 401 api_key_expired for every operation", expiredKey},
		{15, "a key with scopes returns 403 key_scope_insufficient for every operation that they do not include", narrowKeys},
		{16, "a key creates only keys that may do no more and end no later; a key that may not read gets no content of calls", grantedKeys},
		{17, "an API key, narrow or not, opens nothing outside of /v1", keysElsewhere},
	})
}

func noKey(t *testing.T, s *service) {
	wantError(t, s.empty(t).do(t, "GET", "/v1/calls", "", "Authorization", ""), 401, "api_key_required")
}

func malformedKey(t *testing.T, s *service) {
	o := s.empty(t)
	for _, h := range []string{"Bearer", "Bearer a b", "Basic " + o.key, o.key, "Bearer" + o.key} {
		wantError(t, o.do(t, "GET", "/v1/calls", "", "Authorization", h), 401, "api_key_required")
	}
}

func unknownKey(t *testing.T, s *service) {
	o := s.empty(t)
	for _, secret := range []string{"x", "parley_00", o.key[:len(o.key)-1], o.key + "0"} {
		wantError(t, o.do(t, "GET", "/v1/calls", "", "Authorization", "Bearer "+secret), 401, "api_key_unknown")
	}
}

func revokedKey(t *testing.T, s *service) {
	o := s.empty(t)
	secret, id := o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff})
	o.key = secret
	o.do(t, "GET", "/v1/calls", "").want(t, 200)
	if err := apikeys.Revoke(t.Context(), s.db.Pool, id); err != nil {
		t.Fatal(err)
	}
	wantError(t, o.do(t, "GET", "/v1/calls", ""), 401, "api_key_revoked")
}

func expiredKey(t *testing.T, s *service) {
	o := s.organization(t)
	secret, id := o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff, ExpiresAt: new(time.Now().Add(time.Hour))})
	o.key = secret
	o.do(t, "GET", "/v1/calls", "").want(t, 200)
	if _, err := s.db.Pool.Exec(t.Context(), "UPDATE api_keys SET expires_at = now() WHERE id = $1", id); err != nil {
		t.Fatal(err)
	}
	for _, op := range s.operations(t) {
		if strings.HasPrefix(op.path, "/v1/") {
			wantError(t, o.do(t, op.method, strings.ReplaceAll(op.path, "{id}", "x"), "{}"), 401, "api_key_expired")
		}
	}
}

// allowed returns the scopes that include an operation. It repeats docs/api.md, and shares no code with the server.
func allowed(op operation) []apikeys.Scope {
	switch reads := op.method == "GET"; {
	case strings.HasPrefix(op.path, "/v1/admin/"):
		return []apikeys.Scope{apikeys.ScopeAdmin}
	case op.path == "/v1/dialing-routes":
		return []apikeys.Scope{apikeys.ScopeRead, apikeys.ScopeCalls, apikeys.ScopeCampaigns}
	case strings.HasPrefix(op.path, "/v1/calls") && reads:
		return []apikeys.Scope{apikeys.ScopeRead}
	case strings.HasPrefix(op.path, "/v1/calls"):
		return []apikeys.Scope{apikeys.ScopeCalls}
	case reads:
		return []apikeys.Scope{apikeys.ScopeRead, apikeys.ScopeCampaigns}
	default:
		return []apikeys.Scope{apikeys.ScopeCampaigns}
	}
}

// grantedKeys tries to widen narrow keys: by new keys, by webhooks and by the response to the end of a call.
func grantedKeys(t *testing.T, s *service) {
	root, o := s.root(t), s.organization(t)
	soon := float64(time.Now().Unix() + 600)
	create := func(by apikeys.Key, body string) response {
		by.RateLimit, by.Privileged = apikeys.RateOff, true
		r := *root
		r.key, _ = root.newKey(t, by)
		return r.do(t, "POST", "/v1/admin/keys", fmt.Sprintf(`{"organization_id":%q,%s}`, o.id, body))
	}
	admin, reads := []apikeys.Scope{apikeys.ScopeAdmin}, []apikeys.Scope{apikeys.ScopeAdmin, apikeys.ScopeRead}
	ends := new(time.Now().Add(10 * time.Minute))
	for _, tt := range []struct {
		by   apikeys.Key
		body string
		want int
	}{
		{apikeys.Key{Scopes: admin}, `"name":"x"`, 403},
		{apikeys.Key{Scopes: admin}, `"scopes":null`, 403},
		{apikeys.Key{Scopes: admin}, `"scopes":[]`, 403},
		{apikeys.Key{Scopes: admin}, `"scopes":["admin","read"]`, 403},
		{apikeys.Key{Scopes: admin}, `"scopes":["calls"]`, 403},
		{apikeys.Key{Scopes: admin}, `"scopes":["admin"]`, 201},
		{apikeys.Key{Scopes: reads}, `"scopes":["read"]`, 201},
		{apikeys.Key{Scopes: reads}, `"scopes":["campaigns"]`, 403},
		{apikeys.Key{ExpiresAt: ends}, `"scopes":["read"]`, 403},
		{apikeys.Key{ExpiresAt: ends}, fmt.Sprintf(`"expires_at":%.0f`, soon+60), 403},
		{apikeys.Key{ExpiresAt: ends}, fmt.Sprintf(`"expires_at":%.0f`, soon-60), 201},
		{apikeys.Key{}, `"name":"x"`, 201},
	} {
		if a := create(tt.by, tt.body); a.status != tt.want || tt.want == 403 && !strings.Contains(string(a.body), "key_scope_insufficient") {
			t.Errorf("a key %v, %v creates {%s}: %v", tt.by.Scopes, tt.by.ExpiresAt, tt.body, a)
		}
	}
	for _, scopes := range [][]apikeys.Scope{admin, reads} {
		r := *root
		r.key, _ = root.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff, Privileged: true, Scopes: scopes})
		a := r.do(t, "POST", "/v1/admin/webhooks", fmt.Sprintf(`{"organization_id":%q,"url":"https://crm.example/hook"}`, o.id))
		if got := a.status == 201; got != (len(scopes) == 2) {
			t.Errorf("a webhook of a key %v: %v", scopes, a)
		}
	}
	full := o.key
	placed := o.do(t, "POST", "/v1/calls/phone", `{"agent_id":"sales","to_number":"`+s.busyNumber()+`","metadata":{"canary":"m"},"variables":{"canary":"v"}}`)
	id, _ := placed.want(t, 202).object(t)["call_id"].(string)
	o.await(t, id, "failed")
	for scope, told := range map[apikeys.Scope]bool{apikeys.ScopeCalls: false, "": true} {
		o.key = full
		if scope != "" {
			o.key, _ = o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff, Scopes: []apikeys.Scope{scope}})
		}
		a := o.do(t, "POST", "/v1/calls/"+id+"/end", "").want(t, 200)
		if strings.Contains(string(a.body), "canary") != told || a.object(t)["status"] != "failed" {
			t.Errorf("a key %q ends a call: %v", scope, a)
		}
	}
}

// keysElsewhere sends keys to all other paths of the listeners. The responses are those to a request without a key.
func keysElsewhere(t *testing.T, s *service) {
	o := s.organization(t)
	call := o.await(t, o.place(t, s.busyNumber()), "failed")["call_id"].(string)
	requests := 0
	for _, scopes := range [][]apikeys.Scope{nil, {apikeys.ScopeRead}, {apikeys.ScopeCalls}, {apikeys.ScopeAdmin}} {
		key, _ := o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff, Scopes: scopes})
		for _, op := range []string{
			"GET /dashboard/" + o.id + "/calls", "POST /dashboard/" + o.id + "/keys/new", "GET /dashboard/" + o.id + "/audit",
			"GET /recordings/" + call + ".wav", "GET /recordings/" + call + ".wav?exp=99999999999&sig=x",
			"POST /rtc/whip", "DELETE /rtc/whip/" + call, "PATCH /rtc/whip/" + call, "GET /rtc", "POST /talk/token", "GET /metrics", "GET /debug/pprof/",
		} {
			method, path, _ := strings.Cut(op, " ")
			without := o.do(t, method, path, "", "Authorization", "")
			with := o.do(t, method, path, "", "Authorization", "Bearer "+key)
			if with.status != without.status || string(with.body) != string(without.body) || with.status < 400 && !strings.Contains(string(with.body), "Sign in") {
				t.Errorf("%s with a key %v: %v, without: %v", op, scopes, with, without)
			}
			requests++
		}
	}
	t.Logf("%d requests", requests)
}

func narrowKeys(t *testing.T, s *service) {
	o := s.organization(t)
	refused, passed := 0, 0
	defer func() { t.Logf("%d requests were refused, %d passed", refused, passed) }()
	for _, scopes := range [][]apikeys.Scope{
		{apikeys.ScopeRead},
		{apikeys.ScopeCalls},
		{apikeys.ScopeCampaigns},
		{apikeys.ScopeAdmin},
		{apikeys.ScopeRead, apikeys.ScopeCalls},
		{apikeys.ScopeCalls, apikeys.ScopeCampaigns},
	} {
		key := apikeys.Key{RateLimit: apikeys.RateOff, Scopes: scopes}
		o.key, _ = o.newKey(t, key)
		for _, op := range s.operations(t) {
			if !strings.HasPrefix(op.path, "/v1/") {
				continue
			}
			a := o.do(t, op.method, strings.ReplaceAll(op.path, "{id}", "x"), "{}")
			if key.Allows(allowed(op)...) {
				passed++
				if strings.Contains(string(a.body), "key_scope_insufficient") {
					t.Errorf("%s %s with the scopes %v: %v", op.method, op.path, scopes, a)
				}
				continue
			}
			refused++
			wantError(t, a, 403, "key_scope_insufficient")
			if op.method == "GET" {
				if a = o.do(t, "HEAD", strings.ReplaceAll(op.path, "{id}", "x"), ""); a.status != 403 {
					t.Errorf("HEAD %s with the scopes %v: %v", op.path, scopes, a)
				}
			}
		}
	}
	if refused < 80 || passed < 30 {
		t.Errorf("%d requests were refused and %d passed", refused, passed)
	}
}

// useLimitedKey gives the organization a new key with a limit and returns its id.
func (o *organization) useLimitedKey(t *testing.T, limit int) (id string) {
	t.Helper()
	o.key, id = o.newKey(t, apikeys.Key{RateLimit: limit})
	return id
}

func (o *organization) admitted(t *testing.T, n int) (count int) {
	t.Helper()
	for range n {
		if o.do(t, "GET", "/v1/calls", "").status != 429 {
			count++
		}
	}
	return count
}

func rateLimit(t *testing.T, s *service) {
	o := s.empty(t)
	o.useLimitedKey(t, 3)
	for i := range 3 {
		a := o.do(t, "GET", "/v1/calls", "").want(t, 200)
		if a.header.Get("X-Ratelimit-Limit") != "3" || a.header.Get("X-Ratelimit-Remaining") != strconv.Itoa(2-i) || a.header.Get("X-Ratelimit-Reset") == "" {
			t.Errorf("request %d: %v", i, a.header)
		}
	}
	a := o.do(t, "GET", "/v1/calls", "")
	wantError(t, a, 429, "api_key_rate_limit_exceeded")
	if got := a.header.Get("Retry-After"); got != "60" {
		t.Errorf("Retry-After %q", got)
	}
}

func everyRequestCounts(t *testing.T, s *service) {
	o := s.empty(t)
	o.useLimitedKey(t, 5)
	o.do(t, "GET", "/v1/nowhere", "").want(t, 404)
	o.do(t, "DELETE", "/v1/calls", "").want(t, 405)
	o.do(t, "POST", "/v1/calls/phone", "{").want(t, 422)
	o.do(t, "GET", "/v1/calls/x", "").want(t, 404)
	o.do(t, "GET", "/v1/calls", "").want(t, 200)
	wantError(t, o.do(t, "GET", "/v1/nowhere", ""), 429, "api_key_rate_limit_exceeded")
}

func rejectedDoNotCount(t *testing.T, s *service) {
	o := s.empty(t)
	id := o.useLimitedKey(t, 2)
	if n := o.admitted(t, 6); n != 2 {
		t.Errorf("%d of 2 requests were admitted", n)
	}
	// Simulate that a minute passed.
	s.exec(t, "UPDATE rate_requests SET at = at - interval '60 seconds' WHERE key_id = $1", id)
	if n := o.admitted(t, 4); n != 2 {
		t.Errorf("a minute later, %d of 2 requests were admitted", n)
	}
}

func sharedLimit(t *testing.T, s *service) {
	here := s.empty(t)
	here.useLimitedKey(t, 40)
	there := *here
	there.url = s.another(t).url
	var let atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		for _, o := range []*organization{here, &there} {
			all.Go(func() {
				for range 5 {
					if a, err := o.request(t.Context(), "GET", "/v1/calls", ""); err != nil {
						t.Error(err)
					} else if a.status == 200 {
						let.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	if n := let.Load(); n != 40 {
		t.Errorf("two processes admitted %d of 80 requests, want 40", n)
	}
}

func changedLimit(t *testing.T, s *service) {
	o := s.empty(t)
	id := o.useLimitedKey(t, 1)
	if n := o.admitted(t, 2); n != 1 {
		t.Errorf("%d of 1 requests were admitted", n)
	}
	for _, tt := range []struct{ limit, more int }{{3, 2}, {2, 0}, {apikeys.RateOff, 5}} {
		if err := apikeys.SetRateLimit(t.Context(), s.db.Pool, id, tt.limit); err != nil {
			t.Fatal(err)
		}
		if n := o.admitted(t, 5); n != tt.more {
			t.Errorf("with a limit of %d, %d more requests were admitted, want %d", tt.limit, n, tt.more)
		}
	}
}

func platformLimit(t *testing.T, s *service) {
	o := s.empty(t)
	o.useLimitedKey(t, apikeys.RateDefault)
	if n := o.admitted(t, 62); n != 60 {
		t.Errorf("%d of 60 requests were admitted", n)
	}
	o.useLimitedKey(t, apikeys.RateDefault)
	o.url = s.another(t, "PARLEY_RATE_LIMIT=2").url
	if n := o.admitted(t, 4); n != 2 {
		t.Errorf("%d of 2 requests were admitted", n)
	}
}

func noLimit(t *testing.T, s *service) {
	o := s.empty(t)
	o.useLimitedKey(t, apikeys.RateOff)
	if n := o.admitted(t, 70); n != 70 {
		t.Errorf("%d of 70 requests were admitted", n)
	}
	if h := o.do(t, "GET", "/v1/calls", "").header; h.Get("X-Ratelimit-Limit") != "" {
		t.Errorf("headers of a key without limit: %v", h)
	}
}

func noLimits(t *testing.T, s *service) {
	o := s.empty(t)
	o.useLimitedKey(t, 1)
	o.url = s.another(t, "PARLEY_RATE_LIMIT=off").url
	if n := o.admitted(t, 3); n != 3 {
		t.Errorf("%d of 3 requests were admitted", n)
	}
}

func separateKeys(t *testing.T, s *service) {
	o := s.empty(t)
	for range 2 {
		o.useLimitedKey(t, 1)
		if n := o.admitted(t, 2); n != 1 {
			t.Errorf("%d of 1 requests were admitted", n)
		}
	}
}
