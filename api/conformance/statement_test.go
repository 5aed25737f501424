package conformance_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // statements run in parallel, because they mostly wait
	dbtest.Main(m, shared.stop)
}

// A statement is a documented property of the API with its check.
type statement struct {
	number int
	text   string
	check  func(t *testing.T, s *service)
}

// checkAll runs the statements of a section.
func checkAll(t *testing.T, section string, all []statement) {
	t.Helper()
	t.Parallel()
	s := shared.get(t)
	s.claim(t, section)
	for i, st := range all {
		if st.number != i+1 || st.text == "" {
			t.Errorf("statement %s%d, %q, at index %d: numbers must be consecutive and texts not empty", section, st.number, st.text, i+1)
		}
		t.Run(fmt.Sprintf("%s%d %s", section, st.number, st.text), func(t *testing.T) {
			t.Parallel()
			st.check(t, s)
		})
	}
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func (a response) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

func (a response) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	return v
}

func (a response) list(t *testing.T) []any {
	t.Helper()
	var v []any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	return v
}

// want checks the status of a response and returns the response.
func (a response) want(t *testing.T, status int) response {
	t.Helper()
	if a.status != status {
		t.Fatalf("%v, want %d", a, status)
	}
	return a
}

func (a response) envelope(t *testing.T) map[string]any {
	t.Helper()
	e, ok := a.object(t)["error"].(map[string]any)
	if !ok {
		t.Fatalf("%v has no error", a)
	}
	return e
}

// wantError checks the status, the code, and the four fields of an error.
func wantError(t *testing.T, a response, status int, code string) {
	t.Helper()
	types := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
		405: "invalid_request_error", 409: "conflict_error", 413: "invalid_request_error", 422: "invalid_request_error",
		429: "rate_limit_error", 500: "api_error", 502: "api_error", 503: "service_unavailable_error",
	}
	if a.status != status {
		t.Errorf("%v, want %d %s", a, status, code)
		return
	}
	e := a.envelope(t)
	if got := slices.Sorted(maps.Keys(e)); !slices.Equal(got, []string{"code", "message", "status", "type"}) {
		t.Errorf("%v has the fields %v", a, got)
	}
	_, issues := e["message"].([]any)
	_, text := e["message"].(string)
	if e["code"] != code || e["type"] != types[status] || e["status"] != float64(status) || issues != (code == "invalid_request") || !issues && !text {
		t.Errorf("%v, want %d %s %s", a, status, types[status], code)
	}
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Request-Id") == "" {
		t.Errorf("%d %s has the headers %v", status, code, a.header)
	}
}
