// Package conformance holds the service to what its API promises, from outside:
// over HTTP, against the program itself, with a scripted carrier at the far end
// of its trunks.
//
// The tests of this package are a checklist. Each file has one section, a table
// of numbered statements, each a sentence of the documentation in few words and
// the function that looks whether it is so:
//
//	func TestKeys(t *testing.T) {
//		hold(t, "A", []statement{
//			{1, "a request without a key is 401 api_key_required", noKey},
//			{2, "a revoked key is 401 api_key_revoked", revokedKey},
//		})
//	}
//
//	func noKey(t *testing.T, s *service) {
//		o := s.organization(t)
//		refused(t, o.do(t, "GET", "/v1/calls", "", "Authorization", ""), 401, "api_key_required")
//	}
//
// To add a statement, add a row at the end of its section's table. To add a
// section, add a file with a letter or two of its own: nothing else needs to
// know of it. Numbers go up by one, and are never given twice.
//
// All statements share one process, which is built and started once; they run
// side by side. So each makes an organization of its own, with a published agent
// sales, a trunk main to the scripted carrier and a subgroup default, and sees
// that organization alone. A number that nobody else calls, with what happens
// there, comes from service.phone.
//
// The list can be read with go test -v ./api/conformance.
package conformance
