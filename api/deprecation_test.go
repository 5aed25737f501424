package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
)

// TestDeprecatedRoute checks the headers of a deprecated route, also of its errors, and that other routes have none.
func TestDeprecatedRoute(t *testing.T) {
	since, sunset := time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(2028, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	served := read(func(w http.ResponseWriter, _ *http.Request, _ apikeys.Key) error {
		w.WriteHeader(http.StatusOK)
		return nil
	})
	for name, c := range map[string]struct {
		route scoped
		key   apikeys.Key
		want  [2]string
	}{
		"deprecated":           {served.deprecated(since, sunset), apikeys.Key{}, [2]string{"@1798848000", "Sun, 02 Jan 2028 02:04:05 GMT"}},
		"deprecated, no scope": {served.deprecated(since, sunset), apikeys.Key{Scopes: []apikeys.Scope{apikeys.ScopeCalls}}, [2]string{"@1798848000", "Sun, 02 Jan 2028 02:04:05 GMT"}},
		"not deprecated":       {served, apikeys.Key{}, [2]string{}},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/old", http.NoBody)
		err := c.route.serve(w, r.WithContext(context.WithValue(r.Context(), keyOf{}, c.key)))
		if got := [2]string{w.Header().Get("Deprecation"), w.Header().Get("Sunset")}; got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		if (w.Header().Get("Link") != "") != (c.want[0] != "") {
			t.Errorf("%s: Link %q", name, w.Header().Get("Link"))
		}
	}
}
