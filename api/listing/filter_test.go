package listing

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control"
)

// TestMalformedQuery checks that an unreadable part of a query is refused. Dropping it would
// widen the list.
func TestMalformedQuery(t *testing.T) {
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

func TestErrorsListAcceptedValues(t *testing.T) {
	closed := map[string][]string{"status": {"queued", "ended"}}
	for query, want := range map[string]string{
		"limit=200":       "invalid value of limit; accepted: a whole number from 1 to 100",
		"order=up":        "invalid value of order; accepted: asc, desc",
		"status=over":     "invalid value of status; accepted: queued, ended",
		"created_after=x": "invalid value of created_after; accepted: a number from 0 to 100000000000",
		"to_number=x":     "invalid value of to_number; accepted: a telephone number in E.164 format",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/calls?"+query, http.NoBody)
		q, err := Query(r)
		if err != nil {
			t.Fatal(err)
		}
		rd := &Reader{Query: q, Closed: closed}
		rd.List("status")
		rd.Limit(50)
		rd.Ascending()
		rd.Time("created_after")
		rd.Number("to_number")
		if err = rd.Err(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}
