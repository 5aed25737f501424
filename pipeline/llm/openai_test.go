package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

func read(body string) (string, *pipeline.Usage, error) {
	var text strings.Builder
	var usage *pipeline.Usage
	err := stream(strings.NewReader(body), func(d pipeline.Delta, _ error) bool {
		text.WriteString(d.Text)
		if d.Usage != nil {
			usage = d.Usage
		}
		return true
	})
	return text.String(), usage, err
}

func TestStream(t *testing.T) {
	const hello = `data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"lo"}}]}` + "\n\n"
	for name, c := range map[string]struct{ body, text, err string }{
		"plain":             {hello + "data: [DONE]\n\n", "Hello", ""},
		"carriage returns":  {strings.ReplaceAll(hello, "\n", "\r\n") + "data: [DONE]\r\n\r\n", "Hello", ""},
		"comments":          {": ping\n\nevent: x\nid: 1\n" + hello + "data:[DONE]\n\n", "Hello", ""},
		"usage at the end":  {hello + `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n", "Hello", ""},
		"role first":        {`data: {"choices":[{"delta":{"role":"assistant","content":null}}]}` + "\n\n" + hello + "data: [DONE]\n\n", "Hello", ""},
		"broken off":        {hello, "Hello", "stream ended before"},
		"no [DONE]":         {hello + `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n", "Hello", ""},
		"reasoning":         {`data: {"choices":[{"delta":{"reasoning_content":"hm","content":""}}]}` + "\n\n" + hello + "data: [DONE]\n\n", "Hello", ""},
		"not JSON":          {"data: {garbled\n\n", "", "not JSON"},
		"error in mid-flow": {hello + `data: {"error":{"message":"overloaded"}}` + "\n\n", "Hello", "overloaded"},
		"endless line":      {"data: " + strings.Repeat("x", maxEvent+1), "", "too long"},
	} {
		text, usage, err := read(c.body)
		if text != c.text || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if name == "usage at the end" && (usage == nil || usage.PromptTokens != 3 || usage.CompletionTokens != 2) {
			t.Errorf("usage %+v", usage)
		}
	}
}

// TestUsage checks that the usage is reported once at the end, for servers that send
// running totals, and for broken streams.
func TestUsage(t *testing.T) {
	var body strings.Builder
	for i := range 40 {
		fmt.Fprintf(&body, `data: {"choices":[{"delta":{"content":"x "}}],"usage":{"prompt_tokens":3000,"completion_tokens":%d}}`+"\n\n", i+1)
	}
	call := `data: {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"
	for name, tt := range map[string]struct {
		end   string
		calls int
		broke bool
	}{"whole": {"data: [DONE]\n\n", 0, false}, "with a call": {call + "data: [DONE]\n\n", 1, false}, "broken off": {"", 0, true}} {
		var all []pipeline.Delta
		err := stream(strings.NewReader(body.String()+tt.end), func(d pipeline.Delta, _ error) bool {
			if d.Usage != nil {
				all = append(all, d)
			}
			return true
		})
		if len(all) != 1 || *all[0].Usage != (pipeline.Usage{PromptTokens: 3000, CompletionTokens: 40}) || len(all[0].Calls) != tt.calls || (err != nil) != tt.broke {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

// TestMaxTokens checks that OpenAI, and gateways that require it, receive
// max_completion_tokens.
func TestMaxTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		url    string
		strict bool // rejects max_tokens
		want   []string
	}{
		"OpenAI":             {"", true, []string{"max_completion_tokens"}},
		"OpenAI's by name":   {OpenAIURL + "/", true, []string{"max_completion_tokens"}},
		"another":            {"http://there/v1", false, []string{"max_tokens"}},
		"another, to OpenAI": {"http://there/v1", true, []string{"max_tokens", "max_completion_tokens"}},
	} {
		var got []string
		o := OpenAI{URL: tt.url, Client: &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			for _, key := range []string{"max_tokens", "max_completion_tokens"} {
				if strings.Contains(string(b), `"`+key+`":7`) {
					got = append(got, key)
				}
			}
			status, body := http.StatusOK, "data: [DONE]\n\n"
			if tt.strict && got[len(got)-1] == "max_tokens" {
				status = http.StatusBadRequest
				body = `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})}}
		for _, err := range o.Reply(t.Context(), pipeline.Prompt{MaxTokens: 7}) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: asked with %v, want %v", name, got, tt.want)
		}
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRequestFaults checks that invalid requests and unusable answers are distinguished
// from provider failures.
func TestRequestFaults(t *testing.T) {
	for body, want := range map[string]string{
		`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{x"}}]}}]}`: "useless",
		`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}}]}`:            "useless",
		`{"error":{"message":"too long","type":"invalid_request_error","code":null}}`:                  "400",
		`{"error":{"message":"too long","code":"context_length_exceeded"}}`:                            "400",
		`{"error":{"message":"no such model","type":"NotFoundError","code":404}}`:                      "404",
		`{"error":{"message":"overloaded","type":"server_error","code":503}}`:                          "503",
		`{"error":{"message":"overloaded","type":"server_error"}}`:                                     "",
		`{garbled`: "",
	} {
		_, _, err := read("data: " + body + "\n\ndata: [DONE]\n\n")
		var refused *pipeline.RefusedError
		got := ""
		switch {
		case errors.Is(err, pipeline.ErrUnusable):
			got = "useless"
		case errors.As(err, &refused):
			got = strconv.Itoa(refused.Status)
		}
		if err == nil || got != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

func ask(ctx context.Context, script fakeprovider.Script) (string, error) {
	n := fakeprovider.NewNet()
	fakes := fakeprovider.Serve(n, script)
	defer func() { _ = fakes.Close() }()
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	defer client.CloseIdleConnections()
	model := OpenAI{URL: "http://fake/v1/", Key: "canary", Client: client}
	var text strings.Builder
	for d, err := range model.Reply(ctx, pipeline.Prompt{Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: "hi"}}}) {
		if err != nil {
			return text.String(), err
		}
		text.WriteString(d.Text)
	}
	return text.String(), nil
}

func TestReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if text, err := ask(t.Context(), fakeprovider.Typical()); text != "you said hi" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestFaults(t *testing.T) {
	for fault, want := range map[fakeprovider.Fault]string{
		fakeprovider.Refuse: "503", fakeprovider.Absent: "404", fakeprovider.Busy: "429", fakeprovider.Drop: "EOF", fakeprovider.Reset: "EOF", fakeprovider.Garble: "not JSON",
		fakeprovider.Hang: context.DeadlineExceeded.Error(), fakeprovider.Stall: context.DeadlineExceeded.Error(), fakeprovider.Freeze: context.DeadlineExceeded.Error(),
		fakeprovider.HalfOpen: context.DeadlineExceeded.Error(),
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			text, err := ask(ctx, fakeprovider.Script{Fault: func(fakeprovider.Provider, int) fakeprovider.Fault { return fault }})
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v, want %q", fault, err, want)
			}
			if slices.Contains([]fakeprovider.Fault{fakeprovider.Drop, fakeprovider.Reset, fakeprovider.Freeze, fakeprovider.HalfOpen}, fault) != (text != "") {
				t.Errorf("%s: %q", fault, text)
			}
			var refused *pipeline.RefusedError
			if errors.As(err, &refused) && refused.IsRequestFault() != (fault == fakeprovider.Absent) {
				t.Errorf("%s: %v, the asker's fault: %v", fault, err, refused.IsRequestFault())
			}
			if fault == fakeprovider.Busy && (!errors.As(err, &refused) || refused.RetryAfter != 2*time.Second) {
				t.Errorf("busy: %v", err)
			}
		})
	}
}

// TestSlow checks that a late first token is not an error.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		text, err := ask(t.Context(), fakeprovider.Script{LateBy: 2 * time.Second, Fault: func(fakeprovider.Provider, int) fakeprovider.Fault { return fakeprovider.Slow }})
		took := time.Since(began)
		if text != "you said hi" || err != nil || took < 2*time.Second || took > 2100*time.Millisecond { // the client may wait briefly
			t.Errorf("%q, %v, after %v", text, err, took)
		}
	})
}

func TestCallFromTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := fakeprovider.NewNet()
		fakes := fakeprovider.Serve(n, fakeprovider.Script{Call: func([]fakeprovider.Message) (string, string) { return "end_call", `{"why":"done"}` }})
		defer func() { _ = fakes.Close() }()
		client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
		defer client.CloseIdleConnections()
		var calls []pipeline.ToolCall
		for d, err := range (OpenAI{URL: "http://fake/v1", Client: client}).Reply(t.Context(), pipeline.Prompt{}) {
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, d.Calls...)
		}
		if len(calls) != 1 || calls[0].Name != "end_call" || string(calls[0].Arguments) != `{"why":"done"}` || calls[0].ID == "" {
			t.Errorf("%+v", calls)
		}
	})
}

func TestToolCalls(t *testing.T) {
	chunk := func(calls string) string { return `data: {"choices":[{"delta":{"tool_calls":[` + calls + "]}}]}\n\n" }
	const done = "data: [DONE]\n\n"
	for name, c := range map[string]struct{ body, want, err string }{
		"whole": {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`) + done, `a f {"x":1}`, ""},
		"split": {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`) + chunk(`{"index":0,"function":{"arguments":"{\"x\""}}`) + chunk(`{"index":0,"function":{"arguments":":1}"}}`) + done, `a f {"x":1}`, ""},
		"two": {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`) + chunk(`{"index":1,"id":"b","function":{"name":"g"}}`) +
			chunk(`{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"{}"}}`) + done, "a f {} b g {}", ""},
		"without an index":     {chunk(`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`) + chunk(`{"function":{"arguments":":1}"}}`) + chunk(`{"id":"b","function":{"name":"g","arguments":"{}"}}`) + done, `a f {"x":1} b g {}`, ""},
		"without an id":        {chunk(`{"index":0,"function":{"name":"f","arguments":"{}"}}`) + done, "call_0 f {}", ""},
		"the same index twice": {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + chunk(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`) + done, "a f {} b g {}", ""},
		"an object":            {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`) + done, `a f {"x":1}`, ""},
		"no arguments":         {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`) + done, `a f {}`, ""},
		"no [DONE]":            {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + `data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n", "a f {}", ""},
		"no JSON":              {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`) + done, "", "must be a JSON object"},
		"no name":              {chunk(`{"index":0,"id":"a"}`) + done, "", "without a name"},
		"broken off":           {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), "", "stream ended before"},
	} {
		var got []string
		err := stream(strings.NewReader(c.body), func(d pipeline.Delta, _ error) bool {
			for _, call := range d.Calls {
				got = append(got, call.ID, call.Name, string(call.Arguments))
			}
			return true
		})
		if strings.Join(got, " ") != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestRequest(t *testing.T) {
	b, err := json.Marshal(request(pipeline.Prompt{
		Model: "m", Instructions: "be kind", ToolChoice: "f",
		Tools: []pipeline.Tool{{Name: "f", Description: "does it", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Messages: []pipeline.Message{
			{Role: pipeline.RoleCaller, Text: "hi"},
			{Role: pipeline.RoleAgent, Calls: []pipeline.ToolCall{{ID: "a", Name: "f", Arguments: json.RawMessage(`{"x":1}`)}}},
			{Role: pipeline.RoleTool, CallID: "a", Text: "done"},
			{Role: pipeline.RoleNote, Text: "the caller pressed 5"},
		},
	}))
	const want = `{"model":"m","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},` +
		`{"role":"tool","content":"done","tool_call_id":"a"},{"role":"user","content":"[the caller pressed 5]"}],` +
		`"stream":true,"stream_options":{"include_usage":true},` +
		`"tools":[{"type":"function","function":{"name":"f","description":"does it","parameters":{"type":"object"}}}],` +
		`"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":true}`
	if err != nil || string(b) != want {
		t.Errorf("%s\n%s\n%v", b, want, err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n")
	f.Fuzz(func(_ *testing.T, body string) { _, _, _ = read(body) })
}
