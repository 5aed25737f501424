package filter

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-voice/parley/control"
)

// TestAQueryThatCannotBeRead is refused: what is left out of it would make the
// list longer than it was asked for.
func TestAQueryThatCannotBeRead(t *testing.T) {
	for query, ok := range map[string]bool{
		"": true, "status=ended&limit=2": true, "to_number=%2B1": true, "=": true,
		"status=%zz": false, "to_number=%2": false, "status=ended;limit=2": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/calls", http.NoBody)
		r.URL.RawQuery = query
		q, err := Query(r)
		if ok && (err != nil || q == nil) || !ok && control.CodeOf(err) != control.CodeInvalidFilter {
			t.Errorf("%q: %v, %v", query, q, err)
		}
	}
}
