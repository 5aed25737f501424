package conformance_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-voice/parley/control/apikeys"
)

// TestKeys covers authentication and rate limits.
func TestKeys(t *testing.T) {
	hold(t, "A", []statement{
		{1, "a request without an Authorization header is 401 api_key_required", noKey},
		{2, "a malformed Authorization header is 401 api_key_required", malformedKey},
		{3, "a key that nobody issued is 401 api_key_unknown", unknownKey},
		{4, "a revoked key is 401 api_key_revoked from the next request on", revokedKey},
		{5, "more requests than the key's limit in 60 seconds are 429 api_key_rate_limit_exceeded, with Retry-After: 60", rateLimit},
		{6, "requests of every kind count, once each, whatever they are answered", everyRequestCounts},
		{7, "refused requests do not count: the limit is free again 60 seconds after it was used up", refusedDoNotCount},
		{8, "the limit is exact over all processes of one database", limitOfAllProcesses},
		{9, "a limit that is changed counts from the next request on", changedLimit},
		{10, "a limit of 0 is the platform's, 60 a minute unless the operator changed it", platformLimit},
		{11, "a limit may be off", noLimit},
		{12, "the operator may switch all limits off", noLimits},
		{13, "keys are limited one by one", keysByThemselves},
	})
}

func noKey(t *testing.T, s *service) {
	refused(t, s.empty(t).do(t, "GET", "/v1/calls", "", "Authorization", ""), 401, "api_key_required")
}

func malformedKey(t *testing.T, s *service) {
	o := s.empty(t)
	for _, h := range []string{"Bearer", "Bearer a b", "Basic " + o.key, o.key, "Bearer" + o.key} {
		refused(t, o.do(t, "GET", "/v1/calls", "", "Authorization", h), 401, "api_key_required")
	}
}

func unknownKey(t *testing.T, s *service) {
	o := s.empty(t)
	for _, secret := range []string{"x", "parley_00", o.key[:len(o.key)-1], o.key + "0"} {
		refused(t, o.do(t, "GET", "/v1/calls", "", "Authorization", "Bearer "+secret), 401, "api_key_unknown")
	}
}

func revokedKey(t *testing.T, s *service) {
	o := s.empty(t)
	secret, id := o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff})
	o.key = secret
	o.do(t, "GET", "/v1/calls", "").is(t, 200)
	if err := apikeys.Revoke(t.Context(), s.db.Pool, id); err != nil {
		t.Fatal(err)
	}
	refused(t, o.do(t, "GET", "/v1/calls", ""), 401, "api_key_revoked")
}

// limited gives the organization a key with a limit, and returns its id.
func (o *organization) limited(t *testing.T, limit int) (id string) {
	t.Helper()
	o.key, id = o.newKey(t, apikeys.Key{RateLimit: limit})
	return id
}

// admitted counts how many of n requests are accepted.
func (o *organization) admitted(t *testing.T, n int) (let int) {
	t.Helper()
	for range n {
		if o.do(t, "GET", "/v1/calls", "").status != 429 {
			let++
		}
	}
	return let
}

func rateLimit(t *testing.T, s *service) {
	o := s.empty(t)
	o.limited(t, 3)
	for i := range 3 {
		a := o.do(t, "GET", "/v1/calls", "").is(t, 200)
		if a.header.Get("X-Ratelimit-Limit") != "3" || a.header.Get("X-Ratelimit-Remaining") != strconv.Itoa(2-i) || a.header.Get("X-Ratelimit-Reset") == "" {
			t.Errorf("request %d: %v", i, a.header)
		}
	}
	a := o.do(t, "GET", "/v1/calls", "")
	refused(t, a, 429, "api_key_rate_limit_exceeded")
	if got := a.header.Get("Retry-After"); got != "60" {
		t.Errorf("Retry-After %q", got)
	}
}

func everyRequestCounts(t *testing.T, s *service) {
	o := s.empty(t)
	o.limited(t, 5)
	o.do(t, "GET", "/v1/nowhere", "").is(t, 404)
	o.do(t, "DELETE", "/v1/calls", "").is(t, 405)
	o.do(t, "POST", "/v1/calls/phone", "{").is(t, 422)
	o.do(t, "GET", "/v1/calls/x", "").is(t, 404)
	o.do(t, "GET", "/v1/calls", "").is(t, 200)
	refused(t, o.do(t, "GET", "/v1/nowhere", ""), 429, "api_key_rate_limit_exceeded")
}

func refusedDoNotCount(t *testing.T, s *service) {
	o := s.empty(t)
	id := o.limited(t, 2)
	if n := o.admitted(t, 6); n != 2 {
		t.Errorf("%d of 2 were let through", n)
	}
	// Simulate that a minute passed.
	if _, err := s.db.Pool.Exec(t.Context(), "UPDATE rate_requests SET at = at - interval '60 seconds' WHERE key_id = $1", id); err != nil {
		t.Fatal(err)
	}
	if n := o.admitted(t, 4); n != 2 {
		t.Errorf("a minute later %d of 2 were let through", n)
	}
}

func limitOfAllProcesses(t *testing.T, s *service) {
	here := s.empty(t)
	here.limited(t, 40)
	there := *here
	there.url = s.another(t).url
	var let atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		for _, o := range []*organization{here, &there} {
			all.Go(func() {
				for range 5 {
					if a, err := o.ask(t.Context(), "GET", "/v1/calls", ""); err != nil {
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
		t.Errorf("of 80 requests to two processes %d were let through, the limit is 40", n)
	}
}

func changedLimit(t *testing.T, s *service) {
	o := s.empty(t)
	id := o.limited(t, 1)
	if n := o.admitted(t, 2); n != 1 {
		t.Errorf("%d of 1 were let through", n)
	}
	for _, tt := range []struct{ limit, more int }{{3, 2}, {2, 0}, {apikeys.RateOff, 5}} {
		if err := apikeys.SetRateLimit(t.Context(), s.db.Pool, id, tt.limit); err != nil {
			t.Fatal(err)
		}
		if n := o.admitted(t, 5); n != tt.more {
			t.Errorf("with a limit of %d, %d more were let through, want %d", tt.limit, n, tt.more)
		}
	}
}

func platformLimit(t *testing.T, s *service) {
	o := s.empty(t)
	o.limited(t, apikeys.RateDefault)
	if n := o.admitted(t, 62); n != 60 {
		t.Errorf("%d of 60 were let through", n)
	}
	o.limited(t, apikeys.RateDefault)
	o.url = s.another(t, "PARLEY_RATE_LIMIT=2").url
	if n := o.admitted(t, 4); n != 2 {
		t.Errorf("%d of 2 were let through", n)
	}
}

func noLimit(t *testing.T, s *service) {
	o := s.empty(t)
	o.limited(t, apikeys.RateOff)
	if n := o.admitted(t, 70); n != 70 {
		t.Errorf("%d of 70 were let through", n)
	}
	if h := o.do(t, "GET", "/v1/calls", "").header; h.Get("X-Ratelimit-Limit") != "" {
		t.Errorf("no limit, and %v", h)
	}
}

func noLimits(t *testing.T, s *service) {
	o := s.empty(t)
	o.limited(t, 1)
	o.url = s.another(t, "PARLEY_RATE_LIMIT=off").url
	if n := o.admitted(t, 3); n != 3 {
		t.Errorf("%d of 3 were let through", n)
	}
}

func keysByThemselves(t *testing.T, s *service) {
	o := s.empty(t)
	for range 2 {
		o.limited(t, 1)
		if n := o.admitted(t, 2); n != 1 {
			t.Errorf("%d of 1 were let through", n)
		}
	}
}
