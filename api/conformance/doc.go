// Package conformance tests the documented behavior of the API from outside: over HTTP,
// against the built program, with a scripted carrier behind its trunks.
//
// Each file has one section: a table of numbered statements about the API, each with a
// function that checks it:
//
//	func TestKeys(t *testing.T) {
//		checkAll(t, "A", []statement{
//			{1, "a request without a key returns 401 api_key_required", noKey},
//			{2, "a revoked key returns 401 api_key_revoked", revokedKey},
//		})
//	}
//
//	func noKey(t *testing.T, s *service) {
//		o := s.organization(t)
//		wantError(t, o.do(t, "GET", "/v1/calls", "", "Authorization", ""), 401, "api_key_required")
//	}
//
// New statements go at the end of their table; numbers are never reused. A new section is
// a new file with its own letters.
//
// All statements share one process and run in parallel. So each creates an organization of
// its own (an agent sales, a trunk main to the carrier, a subgroup default) and checks only
// that organization. service.phone returns a number that no other test calls, with a script
// of its calls.
//
// go test -v ./api/conformance prints the statements.
package conformance
