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
	_ = flag.Set("test.parallel", "4") // statements mostly wait
	dbtest.Main(m, one.stop)
}

// A statement is a promise of the API, and its check.
type statement struct {
	number int
	says   string
	check  func(t *testing.T, s *service)
}

// hold checks the statements of a section.
func hold(t *testing.T, section string, all []statement) {
	t.Helper()
	t.Parallel()
	s := one.get(t)
	s.claim(t, section)
	for i, st := range all {
		if st.number != i+1 || st.says == "" {
			t.Errorf("statement %s%d, %q, stands in place %d: numbers go up by one, and each says what it is", section, st.number, st.says, i+1)
		}
		t.Run(fmt.Sprintf("%s%d %s", section, st.number, st.says), func(t *testing.T) {
			t.Parallel()
			st.check(t, s)
		})
	}
}

// An answer is an HTTP response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// object decodes a JSON object.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	return v
}

// list decodes a JSON array.
func (a answer) list(t *testing.T) []any {
	t.Helper()
	var v []any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	return v
}

// is checks the status of a response, and returns it.
func (a answer) is(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("%v, want %d", a, status)
	}
	return a
}

// envelope returns the error object.
func (a answer) envelope(t *testing.T) map[string]any {
	t.Helper()
	e, ok := a.object(t)["error"].(map[string]any)
	if !ok {
		t.Fatalf("%v has no error", a)
	}
	return e
}

// refused checks the status, the code, and the four fields of an error.
func refused(t *testing.T, a answer, status int, code string) {
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
