package conformance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestErrors covers the format of errors, and rules that hold for all requests and responses.
func TestErrors(t *testing.T) {
	checkAll(t, "E", []statement{
		{1, "an unknown path returns 404 in the error envelope, with the type as code", unknownPath},
		{2, "a wrong method returns 405 in the envelope, with Allow", wrongMethod},
		{3, "paths match exactly: trailing slashes and unclean paths return 404 without a redirect", exactPaths},
		{4, "a body of more than 4 MiB returns 413 request_too_large", largeBody},
		{5, "a body nested deeper than 64 levels returns 422 with an issue json_invalid", deepBody},
		{6, "a body that is not JSON returns 422 with an issue json_invalid and its offset", malformedJSON},
		{7, "422 invalid_request has a list of issues, each with type, loc, msg and input", issues},
		{8, "unknown top-level keys of a body are ignored", unknownKeys},
		{9, "malformed HTTP is answered in the envelope", malformedHTTP},
		{10, "every response under /v1 has a unique X-Request-Id and Cache-Control: no-store", headers},
		{11, "a JSON body is accepted with any content type", contentTypes},
		{12, "times are epoch seconds", epochs},
		{13, "HEAD returns the response of GET without the body", headRequest},
		{14, "slow request bodies do not delay other requests", slowBody},
	})
}

func unknownPath(t *testing.T, s *service) {
	o := s.empty(t)
	for _, path := range []string{"/v1", "/v1/", "/v1/nowhere", "/v1/calls/x/y", "/nowhere", "/"} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PURGE"} {
			wantError(t, o.do(t, method, path, ""), 404, "not_found_error")
		}
	}
	wantError(t, o.do(t, "GET", "/v1/nowhere", "", "Authorization", ""), 401, "api_key_required")
}

func wrongMethod(t *testing.T, s *service) {
	o := s.empty(t)
	for path, allow := range map[string]string{
		"/v1/calls/phone": "POST", "/v1/calls": "GET, HEAD", "/v1/calls/x": "GET, HEAD", "/v1/calls/x/turns": "GET, HEAD", "/v1/calls/x/end": "POST",
		"/v1/dialing-routes": "GET, HEAD", "/openapi.json": "GET, HEAD",
	} {
		a := o.do(t, "DELETE", path, "")
		wantError(t, a, 405, "invalid_request_error")
		if got := a.header.Get("Allow"); got != allow {
			t.Errorf("DELETE %s: Allow %q, want %q", path, got, allow)
		}
	}
}

func exactPaths(t *testing.T, s *service) {
	o := s.empty(t)
	for _, path := range []string{"/v1/calls/", "//v1/calls", "/v1//calls", "/v1/./calls", "/v1/x/../calls", "/v1/calls/phone/", "/V1/calls", "/openapi.json/"} {
		wantError(t, o.do(t, "GET", path, ""), 404, "not_found_error")
	}
}

func largeBody(t *testing.T, s *service) {
	o := s.empty(t)
	wantError(t, o.do(t, "POST", "/v1/calls/phone", `{"agent_id":"`+strings.Repeat("x", 4<<20)+`"}`), 413, "request_too_large")
}

func issuesOf(t *testing.T, a response) []map[string]any {
	t.Helper()
	wantError(t, a, 422, "invalid_request")
	var all []map[string]any
	list, _ := a.envelope(t)["message"].([]any)
	for _, i := range list {
		issue, _ := i.(map[string]any)
		_, loc := issue["loc"].([]any)
		_, msg := issue["msg"].(string)
		_, input := issue["input"]
		if len(issue) != 4 || !loc || !msg || !input {
			t.Errorf("issue %v, want type, loc, msg and input", issue)
		}
		all = append(all, issue)
	}
	return all
}

func deepBody(t *testing.T, s *service) {
	o := s.organization(t)
	nested := func(n int) string {
		return fmt.Sprintf(`{"agent_id":"sales","to_number":"","x":%s%s}`, strings.Repeat("[", n), strings.Repeat("]", n))
	}
	for _, body := range []string{nested(64), nested(100_000), strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 70)} {
		if all := issuesOf(t, o.do(t, "POST", "/v1/calls/phone", body)); len(all) != 1 || all[0]["type"] != "json_invalid" {
			t.Errorf("%.60s: %v", body, all)
		}
	}
	wantError(t, o.do(t, "POST", "/v1/calls/phone", nested(63)), 400, "destination_number_invalid")
}

func malformedJSON(t *testing.T, s *service) {
	o := s.empty(t)
	for body, at := range map[string]float64{`{`: 1, `{"a":1,}`: 8, `nonsense`: 2, "{\"a\":\x00}": 6} {
		all := issuesOf(t, o.do(t, "POST", "/v1/calls/phone", body))
		if len(all) != 1 || all[0]["type"] != "json_invalid" || fmt.Sprint(all[0]["loc"]) != fmt.Sprint([]any{"body", at}) {
			t.Errorf("%q: %v", body, all)
		}
	}
}

func issues(t *testing.T, s *service) {
	o := s.empty(t)
	all := issuesOf(t, o.do(t, "POST", "/v1/calls/phone", `{"to_number":5,"record":"yes","max_duration_s":77.5}`))
	got := map[string]any{}
	for _, i := range all {
		text, err := json.Marshal(i["loc"])
		if err != nil {
			t.Fatal(err)
		}
		got[string(text)] = i["type"]
	}
	for loc, typ := range map[string]string{
		`["body","agent_id"]`: "missing", `["body","to_number"]`: "string_type", `["body","record"]`: "bool_type", `["body","max_duration_s"]`: "int_from_float",
	} {
		if got[loc] != typ {
			t.Errorf("%s is %v, want %s", loc, got[loc], typ)
		}
	}
}

func unknownKeys(t *testing.T, s *service) {
	o := s.organization(t)
	o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q,"frequency_override":{"x":[1]},"":null}`, s.busyNumber())).want(t, 202)
}

// raw sends bytes on a new connection and returns the response.
func (s *service) raw(t *testing.T, text string) response {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err = c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err = io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.40q: %v", text, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%.40q: %v", text, err)
	}
	return response{resp.StatusCode, resp.Header, body}
}

func malformedHTTP(t *testing.T, s *service) {
	const rest = "\r\nAuthorization: Bearer x\r\n\r\n"
	for text, status := range map[string]int{
		"GET /v1/calls HTTP/1.1" + rest:                                                      400, // without a Host header
		"GET /v1/calls/%zz HTTP/1.1\r\nHost: a" + rest:                                       400,
		"nonsense\r\n\r\n":                                                                   400,
		"GET /v1/calls HTTP/1.1\r\nHost: a\r\nbroken header\r\n\r\n":                         400,
		"GET /v1/calls HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n":                                400,
		"POST /v1/calls/phone HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n":             400,
		"POST /v1/calls/phone HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n":           501,
		"GET /v1/calls HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("x", 2<<20) + "\r\n\r\n": 431,
		"GET /v1/calls HTTP/7.1\r\nHost: a" + rest:                                           505,
	} {
		a := s.raw(t, text)
		e := a.envelope(t)
		kind := "invalid_request_error"
		if status > 500 {
			kind = "api_error"
		}
		if a.status != status || len(e) != 4 || e["type"] != kind || e["code"] != kind || e["status"] != float64(status) ||
			a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Request-Id") == "" {
			t.Errorf("%.40q: %v %v", text, a, a.header)
		}
	}
}

func headers(t *testing.T, s *service) {
	o := s.organization(t)
	seen := map[string]bool{}
	for _, a := range []response{
		o.do(t, "GET", "/v1/calls", ""), o.do(t, "GET", "/v1/nowhere", ""), o.do(t, "GET", "/v1/calls", "", "Authorization", ""),
		o.do(t, "POST", "/v1/calls/phone", "{"), o.do(t, "DELETE", "/v1/calls", ""),
	} {
		id := a.header.Get("X-Request-Id")
		if id == "" || seen[id] || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v: %v", a, a.header)
		}
		seen[id] = true
	}
}

func contentTypes(t *testing.T, s *service) {
	o := s.organization(t)
	for _, kind := range []string{"", "text/plain", "application/json; charset=utf-8", "application/x-www-form-urlencoded"} {
		o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q}`, s.busyNumber()), "Content-Type", kind).want(t, 202)
	}
}

func epochs(t *testing.T, s *service) {
	o := s.organization(t)
	from := float64(time.Now().Unix() - 1)
	c := o.await(t, o.place(t, s.busyNumber()), "failed")
	for name, v := range c {
		if !strings.HasSuffix(name, "_at") || v == nil {
			continue
		}
		if at, ok := v.(float64); !ok || at < from || at > from+60 {
			t.Errorf("%s is %v", name, v)
		}
	}
	if c["created_at"] == nil || c["ended_at"] == nil {
		t.Errorf("an ended call: %v", c)
	}
}

func headRequest(t *testing.T, s *service) {
	o := s.empty(t)
	if a := o.do(t, "HEAD", "/v1/calls", "").want(t, 200); len(a.body) != 0 || a.header.Get("Content-Length") == "" {
		t.Errorf("%v %v", a, a.header)
	}
}

func slowBody(t *testing.T, s *service) {
	o := s.organization(t)
	for range 50 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, err = fmt.Fprintf(c, "POST /v1/calls/phone HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", o.key)
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		o.do(t, "GET", "/v1/calls", "").want(t, 200)
	}
}
