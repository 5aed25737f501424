package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

func read(d decoder, body string) (got talk) {
	a := &answer{endpoint: endpoint{name: "test", url: new(url.URL)}}
	a.calls.origin = a.origin()
	a.yield = func(d pipeline.Delta, err error) bool {
		got.text += d.Text
		got.calls = append(got.calls, d.Calls...)
		if d.Usage != nil {
			got.usage = append(got.usage, *d.Usage)
		}
		got.err = err
		return true
	}
	a.stream(strings.NewReader(body), d)
	return got
}

// errorMatches reports whether the error contains want. An empty want stands for no error.
func errorMatches(err error, want string) bool {
	return (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want))
}

func TestChatStream(t *testing.T) {
	const hello = `data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"lo"}}]}` + "\n\n"
	for name, c := range map[string]struct{ body, text, err string }{
		"plain":             {hello + "data: [DONE]\n\n", "Hello", ""},
		"carriage returns":  {strings.ReplaceAll(hello, "\n", "\r\n") + "data: [DONE]\r\n\r\n", "Hello", ""},
		"comments":          {": ping\n\nevent: x\nid: 1\n" + hello + "data:[DONE]\n\n", "Hello", ""},
		"role first":        {`data: {"choices":[{"delta":{"role":"assistant","content":null}}]}` + "\n\n" + hello + "data: [DONE]\n\n", "Hello", ""},
		"broken off":        {hello, "Hello", "stream ended before"},
		"no [DONE]":         {hello + `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n", "Hello", ""},
		"reasoning":         {`data: {"choices":[{"delta":{"reasoning_content":"hm","content":""}}]}` + "\n\n" + hello + "data: [DONE]\n\n", "Hello", ""},
		"not JSON":          {"data: {garbled\n\n", "", "not JSON"},
		"error in mid-flow": {hello + `data: {"error":{"message":"overloaded"}}` + "\n\n", "Hello", "500 Internal Server Error: overloaded"},
		"endless line":      {"data: " + strings.Repeat("x", maxEvent+1), "", "too long"},
		"length, no [DONE]": {hello + `data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n", "Hello", "token limit"},
		"Gemini's filter":   {hello + `data: {"choices":[{"delta":{},"finish_reason":"CONTENT_FILTER"}]}` + "\n\n", "Hello", "content filter"},
		"refusal": {
			`data: {"choices":[{"delta":{"refusal":"I "}}]}` + "\n\n" + `data: {"choices":[{"delta":{"refusal":"must not"},"finish_reason":"stop"}]}` + "\n\n", "", "declined",
		},
	} {
		if got := read(chatDecoder{}, c.body); got.text != c.text || !errorMatches(got.err, c.err) {
			t.Errorf("%s: %q, %v", name, got.text, got.err)
		}
	}
}

// TestLongRefusal checks that the text of a refusal is cut at whole characters.
func TestLongRefusal(t *testing.T) {
	words := "x" + strings.Repeat("é", 333) // 667 bytes; three times is 2001 bytes, so the last é does not fit
	part := `data: {"choices":[{"delta":{"refusal":"` + words + `"}}]}` + "\n\n"
	got := read(chatDecoder{}, strings.Repeat(part, 5)+"data: [DONE]\n\n")
	var refusal *pipeline.RefusalError
	if !errors.As(got.err, &refusal) || refusal.Text != strings.TrimSuffix(strings.Repeat(words, 3), "é") {
		t.Errorf("%+v", got)
	}
}

// TestChatUsage checks that the usage is reported once at the end, both for servers that report it with
// each event and for broken streams.
func TestChatUsage(t *testing.T) {
	var body strings.Builder
	for i := range 40 {
		fmt.Fprintf(&body, `data: {"choices":[{"delta":{"content":"x "}}],"usage":{"prompt_tokens":3000,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":2900}}}`+"\n\n", i+1)
	}
	call := `data: {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"
	for name, tt := range map[string]struct {
		end   string
		calls int
		err   string
	}{"whole": {"data: [DONE]\n\n", 0, ""}, "with a call": {call + "data: [DONE]\n\n", 1, ""}, "broken off": {"", 0, "stream ended"}} {
		got := read(chatDecoder{}, body.String()+tt.end)
		want := []pipeline.Usage{{PromptTokens: 3000, CompletionTokens: 40, CachedTokens: 2900}}
		if !slices.Equal(got.usage, want) || len(got.calls) != tt.calls || !errorMatches(got.err, tt.err) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLearning checks the parameters in requests. The client omits a refused parameter, and all copies
// of the client remember it.
func TestLearning(t *testing.T) {
	for name, tt := range map[string]struct {
		url, model string
		options    pipeline.Options
		refuse     func(body string) string // returns the message of the refusal; empty if the server accepts the request
		want       []string                 // parameters of all requests in order
	}{
		"OpenAI": {
			"", "gpt-6-luna",
			pipeline.Options{},
			nil,
			[]string{"max_completion_tokens reasoning_effort", "max_completion_tokens reasoning_effort"},
		},
		"OpenAI, an older model": {"", "gpt-4o", pipeline.Options{}, nil, []string{"max_completion_tokens", "max_completion_tokens"}},
		"OpenAI, a fine-tuned model": {
			"https://eu.api.openai.com/v1", "ft:gpt-6.1-sol:acme::x",
			pipeline.Options{},
			nil,
			[]string{"max_completion_tokens reasoning_effort", "max_completion_tokens reasoning_effort"},
		},
		"a reasoning model with another name": {
			"http://there/v1", "mine",
			pipeline.Options{},
			func(body string) string {
				switch {
				case strings.Contains(body, `"max_tokens"`):
					return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
				case !strings.Contains(body, `"reasoning_effort":"none"`):
					return "Function tools with reasoning_effort are not supported for mine in /v1/chat/completions. To use function tools, " +
						"use /v1/responses or set reasoning_effort to 'none'."
				}
				return ""
			},
			[]string{
				"max_tokens parallel_tool_calls", "max_completion_tokens parallel_tool_calls",
				"max_completion_tokens parallel_tool_calls reasoning_effort", "max_completion_tokens parallel_tool_calls reasoning_effort",
			},
		},
		"a gateway without the effort": {
			"http://there/v1", "openai/gpt-6-luna",
			pipeline.Options{},
			func(body string) string {
				if strings.Contains(body, "reasoning_effort") {
					return "Unrecognized request argument supplied: reasoning_effort"
				}
				return ""
			},
			[]string{
				"max_completion_tokens parallel_tool_calls reasoning_effort", "max_completion_tokens parallel_tool_calls",
				"max_completion_tokens parallel_tool_calls",
			},
		},
		"an old server": {
			"http://there/v1", "old",
			pipeline.Options{Temperature: new(float64)},
			func(body string) string {
				for _, p := range []string{"parallel_tool_calls", "stream_options", "temperature"} {
					if strings.Contains(body, p) {
						return "422 " + p
					}
				}
				return ""
			},
			[]string{
				"max_tokens parallel_tool_calls temperature", "max_tokens temperature", "max_tokens temperature", "max_tokens", "max_tokens",
			},
		},
		"the agent's effort": {
			"http://there/v1", "gpt-6-luna",
			pipeline.Options{ReasoningEffort: "high"},
			func(string) string { return "Function tools with reasoning_effort are not supported" },
			[]string{"max_completion_tokens parallel_tool_calls reasoning_effort", "max_completion_tokens parallel_tool_calls reasoning_effort"},
		},
		"a wrong value": {
			"http://there/v1", "m",
			pipeline.Options{Temperature: new(float64)},
			func(string) string { return "temperature must be at most 1" },
			[]string{"max_tokens parallel_tool_calls temperature", "max_tokens parallel_tool_calls temperature"},
		},
		"always refused": {
			"http://there/v1", "m",
			pipeline.Options{},
			func(string) string { return "set reasoning_effort; max_completion_tokens is unknown" },
			[]string{
				"max_tokens parallel_tool_calls", "max_completion_tokens parallel_tool_calls",
				"max_tokens parallel_tool_calls", "max_completion_tokens parallel_tool_calls",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			o := OpenAI{URL: tt.url, Parameters: new(ParameterCache), Client: &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				var names []string
				for _, key := range []string{"max_tokens", "max_completion_tokens", "parallel_tool_calls", "reasoning_effort", "temperature"} {
					if strings.Contains(string(b), `"`+key+`":`) {
						names = append(names, key)
					}
				}
				got = append(got, strings.Join(names, " "))
				status, body := http.StatusOK, "data: [DONE]\n\n"
				if tt.refuse != nil {
					if text := tt.refuse(string(b)); text != "" {
						status, body = http.StatusBadRequest, `{"error":{"message":`+strconv.Quote(text)+`}}`
						if parameter, ok := strings.CutPrefix(text, "422 "); ok { // respond like Mistral
							status = http.StatusUnprocessableEntity
							body = `{"message":{"detail":[{"loc":["body","` + parameter + `"],"msg":"Extra inputs are not permitted"}]}}`
						}
					}
				}
				return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
			})}}
			for range 2 {
				one := o // another copy of the client
				_ = ask(t.Context(), one, pipeline.Prompt{Model: tt.model, MaxTokens: 7, Tools: []pipeline.Tool{weather()}, Options: tt.options})
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("sent %q", got)
			}
		})
	}
}

// TestAlternation checks that a server that requires alternating roles receives them.
func TestAlternation(t *testing.T) {
	var got []string
	o := OpenAI{URL: "http://h/v1", Parameters: new(ParameterCache), Client: &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
		var sent struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			return nil, err
		}
		status, body, before, all := http.StatusOK, "data: [DONE]\n\n", "assistant", ""
		for _, m := range sent.Messages[1:] {
			if m.Role == before {
				status, body = http.StatusBadRequest, `{"message":"Conversation roles must alternate user/assistant/user/assistant/..."}`
			}
			before = m.Role
			all += m.Role + ": " + m.Content + "|"
		}
		got = append(got, all)
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})}}
	prompt := pipeline.Prompt{Model: "gemma", Messages: []pipeline.Message{
		{Role: pipeline.RoleAgent, Text: "good day"},
		{Role: pipeline.RoleCaller, Text: "hi"},
		{Role: pipeline.RoleNote, Text: "a key"},
		{Role: pipeline.RoleAgent, Text: "well"},
		{Role: pipeline.RoleAgent, Text: "now"},
	}}
	for range 2 {
		if err := ask(t.Context(), o, prompt).err; err != nil {
			t.Error(err)
		}
	}
	const want = "user: [the call was answered]|assistant: good day|user: hi\n[a key]|assistant: well\nnow|user: [the caller is silent]|"
	if len(got) != 3 || got[1] != want || got[2] != want {
		t.Errorf("sent %q", got)
	}
}

func TestNeedsNoReasoning(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-6-luna": true, "gpt-5.6-sol": true, "gpt-6.1-terra": true, "gpt-6": true, "openai/gpt-6-luna": true, "openai/gpt-6-luna:free": true,
		"ft:gpt-6-luna:acme::x": true, "gpt-6-luna-2026-09-01": true,
		"gpt-5.4-mini": false, "gpt-5": false, "gpt-4o": false, "gpt-4.1": false, "gpt-oss-120b": false, "gpt-realtime-2": false, "llama-6": false, "": false,
	} {
		if got := needsNoReasoning(model); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
}

func TestParameterCacheIsBounded(t *testing.T) {
	var c ParameterCache
	for i := range 3 * maxModels {
		c.set(strconv.Itoa(i), noEffort)
	}
	if len(c.models) > maxModels || c.get("5", 0) != 0 || c.get(strconv.Itoa(3*maxModels-1), 0) != noEffort {
		t.Errorf("%d models", len(c.models))
	}
}

// TestURLs checks the addresses and headers of requests.
func TestURLs(t *testing.T) {
	for name, tt := range map[string]struct {
		client           OpenAI
		url, auth, extra string
	}{
		"OpenAI":      {OpenAI{Key: "k"}, "https://api.openai.com/v1/chat/completions", "Bearer k", ""},
		"query":       {OpenAI{URL: "https://h/v1/?a=b", Key: "k"}, "https://h/v1/chat/completions?a=b", "Bearer k", ""},
		"Azure v1":    {OpenAI{URL: "https://h/openai/v1", Key: "k", KeyHeader: "api-key"}, "https://h/openai/v1/chat/completions", "", "k"},
		"Azure":       {OpenAI{URL: "https://h?a=b", APIVersion: "1", Header: http.Header{"Api-Key": {"k"}}}, "https://h/openai/deployments/a%2Fb/chat/completions?a=b&api-version=1", "", "k"},
		"no key":      {OpenAI{URL: "http://h:1"}, "http://h:1/chat/completions", "", ""},
		"with a path": {OpenAI{URL: "http://h/a/b/"}, "http://h/a/b/chat/completions", "", ""},
	} {
		e, err := tt.client.endpoint("a/b")
		if err != nil || e.url.String() != tt.url || e.header.Get("Authorization") != tt.auth || e.header.Get("Api-Key") != tt.extra {
			t.Errorf("%s: %v %v, %v", name, e.url, e.header, err)
		}
	}
	for name, o := range map[string]OpenAI{"no host": {URL: "canary:x"}, "malformed": {URL: "http://h\x01/canary"}, "dots": {URL: "http://h", APIVersion: "1"}} {
		if err := ask(t.Context(), o, pipeline.Prompt{Model: ".."}).err; err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChatFaults checks that errors distinguish invalid requests and unusable answers from failures of the provider.
func TestChatFaults(t *testing.T) {
	for body, want := range map[string]string{
		`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{x"}}]}}]}`: "unusable",
		`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}}]}`:            "unusable",
		`{"error":{"message":"too long","type":"invalid_request_error","code":null}}`:                  "400",
		`{"error":{"message":"too long","code":"context_length_exceeded"}}`:                            "400",
		`{"error":{"message":"no such model","type":"NotFoundError","code":404}}`:                      "404",
		`{"error":{"message":"slow down","type":"tokens","code":"rate_limit_exceeded"}}`:               "429",
		`{"error":{"message":"overloaded","type":"server_error","code":503}}`:                          "503",
		`{"error":{"message":"overloaded","type":"server_error"}}`:                                     "500",
		`{garbled`: "",
	} {
		err := read(chatDecoder{}, "data: "+body+"\n\ndata: [DONE]\n\n").err
		if got := faultOf(err); err == nil || got != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// faultOf returns the status of a refusal, "unusable" for pipeline.ErrUnusable, or "".
func faultOf(err error) string {
	var refused *pipeline.RefusedError
	switch {
	case errors.Is(err, pipeline.ErrUnusable):
		return "unusable"
	case errors.As(err, &refused):
		return strconv.Itoa(refused.Status)
	}
	return ""
}

func TestChatToolCalls(t *testing.T) {
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
		"too many":             {chunk(strings.Repeat(`{"function":{"name":"f"}},`, maxCalls)+`{"function":{"name":"f"}}`) + done, "", "more than 64 tool calls"},
		"too long":             {chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"`+strings.Repeat("x", maxArguments+1)+`"}}`) + done, "", "more than"},
	} {
		got := read(chatDecoder{}, c.body)
		var all []string
		for _, call := range got.calls {
			all = append(all, call.ID, call.Name, string(call.Arguments))
		}
		if strings.Join(all, " ") != c.want || !errorMatches(got.err, c.err) {
			t.Errorf("%s: %q, %v", name, all, got.err)
		}
	}
}

func FuzzChat(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n")
	f.Add(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"x":1}}]}}]}` + "\n\n")
	f.Fuzz(func(t *testing.T, body string) { checkStream(t, chatDecoder{}, body) })
}

// checkStream checks the invariants of any stream: at most one usage, valid calls, and errors that are safe to show.
func checkStream(t *testing.T, d decoder, body string) {
	t.Helper()
	got := read(d, body)
	if len(got.usage) > 1 || len(got.calls) > maxCalls || got.err != nil && got.calls != nil {
		t.Errorf("%+v", got)
	}
	for _, c := range got.calls {
		if c.Name == "" || c.ID == "" || len(c.Arguments) == 0 || c.Arguments[0] != '{' {
			t.Errorf("%+v", c)
		}
	}
	var refused *pipeline.RefusedError
	if errors.As(got.err, &refused) && (refused.Status < 400 || refused.Status > 599 || len([]rune(refused.Text)) > 200) {
		t.Errorf("%+v", refused)
	}
}

// TestEndlessText checks that an endless answer ends with ErrLength after maxText.
func TestEndlessText(t *testing.T) {
	part := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("again ", 1000) + `"}}]}` + "\n\n"
	got := read(chatDecoder{}, strings.Repeat(part, 1000))
	if !errors.Is(got.err, pipeline.ErrLength) || len(got.text) == 0 || len(got.text) > maxText+len(part) {
		t.Errorf("%d bytes, %v", len(got.text), got.err)
	}
}
