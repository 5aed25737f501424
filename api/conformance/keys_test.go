package conformance_test

import (
	"testing"

	"github.com/parley-voice/parley/control/access"
)

// TestKeys is about who may ask.
func TestKeys(t *testing.T) {
	hold(t, "A", []statement{
		{1, "a request without an Authorization header is 401 api_key_required", noKey},
		{2, "a malformed Authorization header is 401 api_key_required", malformedKey},
		{3, "a key that nobody issued is 401 api_key_unknown", unknownKey},
		{4, "a revoked key is 401 api_key_revoked from the next request on", revokedKey},
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
	secret, id := o.newKey(t, access.Key{RateLimit: access.RateOff})
	o.key = secret
	o.do(t, "GET", "/v1/calls", "").is(t, 200)
	if err := access.Revoke(t.Context(), s.db.Pool, id); err != nil {
		t.Fatal(err)
	}
	refused(t, o.do(t, "GET", "/v1/calls", ""), 401, "api_key_revoked")
}
