package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api"
)

// TestHosts checks that a rebound host name gets no response.
func TestHosts(t *testing.T) {
	h := api.Hosts(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		"https://Parley.example:8443", "metrics.internal", "")
	for host, want := range map[string]int{
		"127.0.0.1:8080": 204, "[::1]:8080": 204, "10.1.2.3": 204, "localhost:8080": 204, "LOCALHOST.": 204, "": 204,
		"parley.example": 204, "parley.example:80": 204, "metrics.internal:9464": 204,
		"rebind.evil.example": 421, "rebind.evil.example:8080": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "parley.example.evil.example": 421, "0x7f.1:80": 421, "2130706433": 421,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want || want == 421 && !strings.Contains(w.Body.String(), `"code":"invalid_request_error"`) {
			t.Errorf("Host %q: %d %s", host, w.Code, w.Body)
		}
	}
	for path, want := range map[string]int{"/healthz": 204, "/readyz": 204, "/healthz/": 421, "/v1/calls": 421} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Host = "parley-7c9f.default.svc.cluster.local"
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s by the name of a pod: %d, want %d", path, w.Code, want)
		}
	}
}
