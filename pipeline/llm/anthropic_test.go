package llm

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

func TestAnthropicStream(t *testing.T) {
	const (
		start = `{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":90,"cache_creation_input_tokens":7,"output_tokens":1}}}`
		block = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
		text  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
		stop  = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}`
		end   = `{"type":"message_stop"}`
		tool  = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`
		half  = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}`
		rest  = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}`
	)
	stopFor := func(reason string) string { return strings.Replace(stop, "end_turn", reason, 1) }
	for name, c := range map[string]struct{ body, text, call, err string }{
		"plain":             {sse(start, `{"type":"ping"}`, block, text, stop, end), "Hello", "", ""},
		"two blocks":        {sse(start, block, text, block, text, stop, end), "Hello Hello", "", ""},
		"call":              {sse(start, tool, half, rest, stopFor("tool_use"), end), "", `t f {"x":1}`, ""},
		"call at once":      {sse(start, strings.Replace(tool, "{}", `{"x":2}`, 1), end), "", `t f {"x":2}`, ""},
		"no arguments":      {sse(start, tool, end), "", "t f {}", ""},
		"no message_stop":   {sse(start, text, stop), "Hello", "", ""},
		"broken off":        {sse(start, text), "Hello", "", "stream ended before"},
		"limit":             {sse(start, text, tool, half, stopFor("max_tokens"), end), "Hello", "", "token limit"},
		"context":           {sse(start, text, stopFor("model_context_window_exceeded"), end), "Hello", "", "token limit"},
		"refusal":           {sse(start, text, stopFor("refusal"), end), "Hello", "", "content filter"},
		"overloaded":        {sse(start, text, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "Hello", "", "529: Overloaded"},
		"rate limit":        {sse(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), "", "", "429"},
		"invalid":           {sse(`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), "", "", "400"},
		"api error":         {sse(`{"type":"error","error":{"type":"api_error","message":"no"}}`), "", "", "500"},
		"error, no details": {sse(`{"type":"error"}`), "", "", "500"},
		"not JSON":          {sse(`{garbled`), "", "", "not JSON"},
		"stray thought":     {sse(start, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, text, stop, end), "Hello", "", ""},
		"much reasoning": {
			sse(`{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"` + strings.Repeat("x", maxArguments+1) + `"}}`),
			"", "", "reasoning of more",
		},
	} {
		got := read(new(anthropicDecoder), c.body)
		call := ""
		for _, one := range got.calls {
			call += one.ID + " " + one.Name + " " + string(one.Arguments)
		}
		if got.text != c.text || call != c.call || !errorMatches(got.err, c.err) {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "plain" && !slices.Equal(got.usage, []pipeline.Usage{{PromptTokens: 102, CompletionTokens: 12, CachedTokens: 90}}) {
			t.Errorf("usage %+v", got.usage)
		}
	}
}

// TestAnthropicThoughts checks that each call keeps the reasoning blocks before it unchanged.
func TestAnthropicThoughts(t *testing.T) {
	got := read(new(anthropicDecoder), sse(
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f"}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"signature_delta","signature":"s2"}}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"dd"}}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"b","name":"f"}}`,
		`{"type":"message_stop"}`,
	))
	if got.err != nil || len(got.calls) != 2 {
		t.Fatalf("%+v", got)
	}
	history := []pipeline.Message{{Role: pipeline.RoleCaller, Text: "hi"}, {Role: pipeline.RoleAgent, Text: "well", Calls: got.calls}}
	for _, one := range got.calls {
		history = append(history, pipeline.Message{Role: pipeline.RoleTool, CallID: one.ID, Text: "done"})
	}
	origin := (&endpoint{name: "test", url: &url.URL{}}).origin()
	types := func(history []pipeline.Message) string {
		b, err := json.Marshal(anthropicMessages(history, origin)[1])
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const want = `{"content":[{"signature":"s1","thinking":"hm","type":"thinking"},{"text":"well","type":"text"},` +
		`{"id":"a","input":{},"name":"f","type":"tool_use"},{"signature":"s2","thinking":"","type":"thinking"},` +
		`{"data":"dd","type":"redacted_thinking"},{"id":"b","input":{},"name":"f","type":"tool_use"}],"role":"assistant"}`
	if s := types(history); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if s := types(append(history, pipeline.Message{Role: pipeline.RoleCaller, Text: "thanks"})); strings.Contains(s, "thinking") {
		t.Errorf("an earlier turn has its reasoning: %s", s)
	}
}

// TestAnthropicModels checks the requests to models with different quirks, and that the client remembers the quirks.
func TestAnthropicModels(t *testing.T) {
	heat := 0.7
	for name, tt := range map[string]struct {
		model     string
		prompt    pipeline.Prompt
		requests  int
		path      string
		want      any
		forgotten string // parameter that the second request omits
	}{
		"fast":           {"claude-haiku-5-5", pipeline.Prompt{}, 1, "thinking.type", "disabled", "output_config"},
		"with heat":      {"claude-haiku-5-5", pipeline.Prompt{Options: pipeline.Options{Temperature: &heat}}, 2, "thinking.type", "disabled", "temperature"},
		"always thinks":  {"claude-opus-5-5", pipeline.Prompt{}, 2, "output_config.effort", "low", "thinking"},
		"between tools":  {"claude-sonnet-5-5", pipeline.Prompt{}, 2, "thinking.type", "between_tools", "output_config"},
		"no forced tool": {"claude-sonnet-5-5", pipeline.Prompt{Tools: []pipeline.Tool{weather()}, ToolChoice: "weather"}, 3, "thinking.type", "between_tools", "tool_choice"},
		"effort":         {"claude-opus-5-5", pipeline.Prompt{Options: pipeline.Options{ReasoningEffort: "minimal"}}, 1, "output_config.effort", "low", "temperature"},
		"forced, effort": {
			"claude-haiku-5-5",
			pipeline.Prompt{Tools: []pipeline.Tool{weather()}, ToolChoice: "weather", Options: pipeline.Options{ReasoningEffort: "high"}},
			1, "thinking.type", "disabled", "output_config",
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachOf(t, fakeprovider.Typical(), []string{"anthropic"}, func(t *testing.T, l *lab) {
				t.Helper()
				tt.prompt.Model = tt.model
				for range 2 {
					if got := ask(t.Context(), l, tt.prompt); got.err != nil {
						t.Errorf("%+v", got)
					}
				}
				all := l.requests()
				if last := all[len(all)-1]; len(all) != tt.requests+1 || at(last.body, tt.path) != tt.want || last.body[tt.forgotten] != nil {
					t.Errorf("%d requests, the last %s", len(all), last.text())
				}
			})
		})
	}
}

func TestAnthropicRequest(t *testing.T) {
	eachOf(t, fakeprovider.Typical(), []string{"anthropic"}, func(t *testing.T, l *lab) {
		t.Helper()
		if got := ask(t.Context(), l, hello()); got.err != nil {
			t.Fatal(got.err)
		}
		r := l.requests()[0]
		if r.URL.String() != "http://fake/v1/messages" || r.Header.Get("X-Api-Key") != "canary-key" || r.Header.Get("Anthropic-Version") != "2023-06-01" ||
			r.Header.Get("Authorization") != "" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		if s := r.text(); !strings.Contains(s, "cache_control:map[type:ephemeral]") || r.body["max_tokens"] != 4096.0 {
			t.Errorf("%s", s)
		}
	})
}

func FuzzAnthropic(f *testing.F) {
	f.Add(sse(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`, `{"type":"message_stop"}`))
	f.Add(sse(`{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`, `{"type":"message_stop"}`))
	f.Fuzz(func(t *testing.T, body string) { checkStream(t, new(anthropicDecoder), body) })
}
