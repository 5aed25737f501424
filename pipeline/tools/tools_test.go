package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/safedial"
)

const parameters = `{"type":"object","required":["day"],"properties":{"day":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`

// set returns the tools of definitions, which may call servers at 127.0.0.1.
func set(t *testing.T, all ...Definition) *Set {
	t.Helper()
	rules := safedial.Rules{Hosts: []string{"127.0.0.1"}}
	client := rules.Client()
	t.Cleanup(client.CloseIdleConnections)
	functions, err := Build(all, rules, client)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSet(functions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(name, arguments string) pipeline.ToolCall {
	return pipeline.ToolCall{ID: "c", Name: name, Arguments: json.RawMessage(arguments)}
}

func TestBuiltins(t *testing.T) {
	s := set(
		t, Definition{Type: EndCall}, Definition{Type: SendDTMF}, Definition{Type: LeaveVoicemail},
		Definition{Type: TransferCall, Destinations: []Destination{{Label: "sales", Number: "+12025550111"}, {Number: "+12025550112"}}},
	)
	for _, tt := range []struct {
		name, arguments string
		want            pipeline.FollowUp
		fault           string
	}{
		{EndCall, ``, pipeline.FollowUp{Step: pipeline.Hangup, Reason: pipeline.AgentHungUp}, ""},
		{EndCall, `{"say":"Goodbye."}`, pipeline.FollowUp{Step: pipeline.Hangup, Reason: pipeline.AgentHungUp, Say: "Goodbye."}, ""},
		{EndCall, `{"x":1}`, pipeline.FollowUp{}, "x: unknown property; accepted: say"},
		{LeaveVoicemail, `{"say":"Call us."}`, pipeline.FollowUp{Step: pipeline.Hangup, Reason: pipeline.VoicemailLeft, Say: "Call us."}, ""},
		{LeaveVoicemail, `{}`, pipeline.FollowUp{}, "say: missing"},
		{SendDTMF, `{"keys":"1,2#"}`, pipeline.FollowUp{Step: pipeline.Press, Keys: "1,2#"}, ""},
		{SendDTMF, `{"keys":"one"}`, pipeline.FollowUp{}, "keys: does not match"},
		{TransferCall, `{"to":"sales"}`, pipeline.FollowUp{Step: pipeline.Transfer, Number: "+12025550111"}, ""},
		{TransferCall, `{"to":"+12025550112","say":"Bye."}`, pipeline.FollowUp{Step: pipeline.Transfer, Number: "+12025550112", Say: "Bye."}, ""},
		{TransferCall, `{"to":"+19005550000"}`, pipeline.FollowUp{}, `to: want one of ["sales","+12025550112"]`},
		{"fly", `{}`, pipeline.FollowUp{}, `unknown tool "fly"; available: end_call`},
	} {
		r := s.Run(t.Context(), []pipeline.ToolCall{call(tt.name, tt.arguments)})[0]
		if r.FollowUp != tt.want || r.Failed != (tt.fault != "") || !strings.Contains(r.Text, tt.fault) || r.Text == "" {
			t.Errorf("%s %s: %+v, want %+v %s", tt.name, tt.arguments, r, tt.want, tt.fault)
		}
	}
	if n := len(s.Specs()); n != 4 {
		t.Errorf("got %d tools", n)
	}
}

func TestHTTP(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/big":
			_, _ = io.WriteString(w, strings.Repeat("é", maxResult))
		case "/away":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case "/no":
			http.Error(w, "no table\x00\nis free", http.StatusConflict)
		case "/empty":
		default:
			_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RawQuery, body, r.Header.Get("X-Key"))
		}
	}))
	defer srv.Close()
	f := func(name, method, path string) Definition {
		return Definition{
			Type: HTTP, Name: name, Description: "x", Method: method, URL: srv.URL + path, Parameters: json.RawMessage(parameters),
			Headers: map[string]media.Secret{"X-Key": "k3y"}, Filler: "Let me look.",
		}
	}
	open := f("open", "GET", "/?a=1")
	open.Parameters = json.RawMessage(`{"type":"object","additionalProperties":true}`)
	s := set(t, f("post", "", "/?a=1"), f("get", "GET", "/?a=1"), open, f("big", "", "/big"), f("away", "", "/away"), f("no", "", "/no"), f("empty", "", "/empty"))
	for name, want := range map[string]string{
		"post": `POST a=1 {"day":"mon","n":2} k3y`, "get": `GET a=1&day=mon&n=2  k3y`, "empty": "done",
		"away": "error: the server answered 302: redirects are not followed", "no": "error: the server answered 409: no table  is free",
	} {
		if r := s.Run(t.Context(), []pipeline.ToolCall{call(name, `{"day":"mon","n":2}`)})[0]; r.Text != want || r.Failed != strings.HasPrefix(want, "error") {
			t.Errorf("%s: %q, want %q", name, r.Text, want)
		}
	}
	// The model must not override parameters of the address.
	for _, arguments := range []string{`{"day":"mon","a":"2"}`, `{"day":"mon","A":"2"}`} {
		r := s.Run(t.Context(), []pipeline.ToolCall{call("open", arguments)})[0]
		if !r.Failed || !strings.Contains(r.Text, "already set in the function's address") {
			t.Errorf("%s: %q", arguments, r.Text)
		}
	}
	if r := s.Run(t.Context(), []pipeline.ToolCall{call("big", `{"day":"mon"}`)})[0]; len(r.Text) > maxResult || !strings.HasSuffix(r.Text, "é"+cutMark) {
		t.Errorf("a long result has %d bytes", len(r.Text))
	}
	if got := s.Filler([]pipeline.ToolCall{call("fly", ""), call("post", "")}); got != "Let me look." {
		t.Errorf("filler %q", got)
	}
}

// TestNotPublic checks that a function does not reach a private address that the operator does not
// allow, and that its error does not contain the address.
func TestNotPublic(t *testing.T) {
	var asked atomic.Bool
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer srv.Close()
	client := safedial.Rules{}.Client()
	functions, err := Build([]Definition{{Type: HTTP, Name: "f", Description: "x", URL: srv.URL + "/token"}}, safedial.Rules{}, client)
	if err != nil {
		t.Fatal(err)
	}
	_, err = functions[0].Run(t.Context(), json.RawMessage(`{}`))
	if err == nil || !strings.Contains(err.Error(), "not public") || strings.Contains(err.Error(), "127.0.0.1") || asked.Load() {
		t.Errorf("%v, asked: %v", err, asked.Load())
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTimeout checks the time limit for a server that does not respond, and that eight calls run four at a time.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		functions, err := Build([]Definition{{Type: HTTP, Name: "f", Description: "x", URL: "https://example.com", TimeoutS: 1.5}}, safedial.Rules{}, client)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSet(functions)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		calls := make([]pipeline.ToolCall, 8)
		for i := range calls {
			calls[i] = call("f", `{}`)
		}
		for _, r := range s.Run(t.Context(), calls) {
			if r.Text != "error: no answer within 1.5s" || r.Took != 1500*time.Millisecond && r.Took != 3*time.Second {
				t.Errorf("%+v", r)
			}
		}
		if d := time.Since(began); d != 3*time.Second || most.Load() != 4 {
			t.Errorf("took %v, %d at a time", d, most.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if r := s.Run(ctx, calls[:1])[0]; r.Took != time.Second || !r.Failed {
			t.Errorf("cancelled: %+v", r)
		}
	})
}

type broken struct {
	builtin
	notes map[string]int
}

func (b broken) Run(context.Context, json.RawMessage) (pipeline.ToolResult, error) {
	b.notes["secret"] = 1
	return pipeline.ToolResult{}, nil
}

func TestPanic(t *testing.T) {
	s, err := NewSet([]pipeline.Function{broken{builtin: endCall(Definition{})}})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Run(t.Context(), []pipeline.ToolCall{call(EndCall, `{}`)})[0]; r.Text != "error: tool end_call failed" {
		t.Errorf("%+v", r)
	}
}

func TestCheck(t *testing.T) {
	good := Definition{Type: HTTP, Name: "f", Description: "x", URL: "https://example.com/x", Parameters: json.RawMessage(parameters)}
	if err := Check([]Definition{good, {Type: EndCall}}, safedial.Rules{}); err != nil {
		t.Error(err)
	}
	one := func(change func(*Definition)) []Definition {
		d := good
		change(&d)
		return []Definition{d}
	}
	for want, all := range map[string][]Definition{
		`type "": use one of end_call`:                       {{}},
		"is defined twice":                                   {good, good},
		"at most 32":                                         make([]Definition, 33),
		`name "": use 1 to 64`:                               one(func(d *Definition) { d.Name = "" }),
		"description is missing":                             one(func(d *Definition) { d.Description = "" }),
		"description has 2001 characters":                    one(func(d *Definition) { d.Description = strings.Repeat("x", 2001) }),
		"filler: at most":                                    one(func(d *Definition) { d.Filler = strings.Repeat("x", 2001) }),
		`method "TRACE"`:                                     one(func(d *Definition) { d.Method = "TRACE" }),
		"timeout_s is 21":                                    one(func(d *Definition) { d.TimeoutS = 21 }),
		"timeout_s is 0.5":                                   one(func(d *Definition) { d.TimeoutS = 0.5 }),
		"http:// only for hosts in PARLEY_TOOL_HOSTS":        one(func(d *Definition) { d.URL = "http://example.com" }),
		"use an address like":                                one(func(d *Definition) { d.URL = "x" }),
		"use headers":                                        one(func(d *Definition) { d.URL = "https://u:canary@example.com" }),
		`unknown field "$ref"`:                               one(func(d *Definition) { d.Parameters = json.RawMessage(`{"type":"object","$ref":"x"}`) }),
		"top-level type must be object":                      one(func(d *Definition) { d.Parameters = json.RawMessage(`{"type":"string"}`) }),
		"not a valid header name":                            one(func(d *Definition) { d.Headers = map[string]media.Secret{"a b": "x"} }),
		"X contains a control character":                     one(func(d *Definition) { d.Headers = map[string]media.Secret{"X": "canary\r\nY: z"} }),
		"host cannot be set":                                 one(func(d *Definition) { d.Headers = map[string]media.Secret{"host": "x"} }),
		"end_call: only type http has name, url, parameters": {{Type: EndCall, URL: "https://example.com"}},
		"only type transfer_call has destinations":           {{Type: EndCall, Destinations: []Destination{{Number: "+12025550111"}}}},
		"destinations: got 0; 1 to 64":                       {{Type: TransferCall}},
		`number: "sip:x"`:                                    {{Type: TransferCall, Destinations: []Destination{{Number: "sip:x"}}}},
		`parameters: "Day" is already set in the url`: one(func(d *Definition) {
			d.URL, d.Method, d.Parameters = "https://example.com/x?day=mon", "GET", json.RawMessage(`{"type":"object","properties":{"Day":{}}}`)
		}),
		"duplicate name": {{Type: TransferCall, Destinations: []Destination{{Number: "+12025550111"}, {Number: "+12025550111"}}}},
	} {
		err := Check(all, safedial.Rules{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
