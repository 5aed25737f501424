package llm

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

func TestResponsesStream(t *testing.T) {
	const (
		text  = `{"type":"response.output_text.delta","output_index":0,"delta":"Hello"}`
		done  = `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":2,"input_tokens_details":{"cached_tokens":1}}}}`
		item  = `{"type":"response.output_item.added","output_index":1,"item":{"type":"message"}}`
		added = `{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":""}}`
		half  = `{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"x\""}`
		rest  = `{"type":"response.function_call_arguments.delta","output_index":2,"delta":":1}"}`
		whole = `{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"x\":1}"}}`
	)
	for name, c := range map[string]struct {
		body, text, call, err string
	}{
		"plain":           {sse(`{"type":"response.created","response":{"error":null,"usage":null}}`, text, done), "Hello", "", ""},
		"two messages":    {sse(text, item, text, done), "Hello Hello", "", ""},
		"call":            {sse(added, half, rest, whole, done), "", `c f {"x":1}`, ""},
		"call in pieces":  {sse(added, half, rest, done), "", `c f {"x":1}`, ""},
		"call at once":    {sse(whole, done), "", `c f {"x":1}`, ""},
		"broken off":      {sse(text), "Hello", "", "stream ended before"},
		"limit":           {sse(text, added, half, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`), "Hello", "", "token limit"},
		"filter":          {sse(text, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`), "Hello", "", "content filter"},
		"refusal":         {sse(`{"type":"response.refusal.delta","delta":"I must not"}`, done), "", "", "declined"},
		"failed":          {sse(text, `{"type":"response.failed","response":{"error":{"code":"server_error","message":"oops"}}}`), "Hello", "", "500 Internal Server Error: oops"},
		"failed, no word": {sse(`{"type":"response.failed","response":{}}`), "", "", "500 Internal Server Error"},
		"rate limit":      {sse(`{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}`), "", "", "429"},
		"error":           {sse(`{"type":"error","code":"invalid_prompt","message":"no","param":null}`), "", "", "400 Bad Request: no"},
		"nested error":    {sse(`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}}`), "", "", "400 Bad Request: long"},
		"not JSON":        {sse(`{garbled`), "", "", "not JSON"},
		"much reasoning":  {sse(`{"type":"response.output_item.done","item":{"type":"reasoning","x":"` + strings.Repeat("x", maxArguments) + `"}}`), "", "", "reasoning of more"},
	} {
		got := read(new(responsesDecoder), c.body)
		call := ""
		for _, one := range got.calls {
			call += one.ID + " " + one.Name + " " + string(one.Arguments)
		}
		if got.text != c.text || call != c.call || !errorMatches(got.err, c.err) {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "plain" && !slices.Equal(got.usage, []pipeline.Usage{{PromptTokens: 3, CompletionTokens: 2, CachedTokens: 1}}) {
			t.Errorf("usage %+v", got.usage)
		}
	}
}

// TestResponsesLearning checks that the client omits a refused parameter, and that later requests omit
// it from the start.
func TestResponsesLearning(t *testing.T) {
	for name, tt := range map[string]struct {
		model   string
		refuse  map[string]string // message of the refusal for each refused parameter
		options pipeline.Options
		want    []string
	}{
		"a reasoning model": {"gpt-6-luna", nil, pipeline.Options{}, []string{"reasoning", "reasoning"}},
		"no reasoning": {
			"gpt-4.1",
			map[string]string{"include": "Encrypted content is not supported with this model."},
			pipeline.Options{Temperature: new(float64)},
			[]string{"include temperature", "temperature", "temperature"},
		},
		"no temperature": {
			"o5",
			map[string]string{"temperature": "Unsupported parameter: 'temperature' is not supported with this model."},
			pipeline.Options{Temperature: new(float64)},
			[]string{"include temperature", "include", "include"},
		},
		"no default effort": {
			"gpt-7-mini",
			map[string]string{"reasoning": "Unsupported value: 'reasoning.effort' does not support 'none' with this model."},
			pipeline.Options{},
			[]string{"reasoning", "include", "include"},
		},
		"the agent's effort": {
			"gpt-7-mini",
			map[string]string{"reasoning": "Unsupported value: 'reasoning.effort'"},
			pipeline.Options{ReasoningEffort: "none"},
			[]string{"reasoning", "reasoning"},
		},
	} {
		var got []string
		m := Responses{Parameters: new(ParameterCache), Client: &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			var names []string
			status, body := http.StatusOK, sse(`{"type":"response.completed","response":{}}`)
			for _, key := range []string{"include", "reasoning", "temperature"} {
				if strings.Contains(string(b), `"`+key+`":`) {
					names = append(names, key)
					if text := tt.refuse[key]; text != "" {
						status, body = http.StatusBadRequest, `{"error":{"message":`+strconv.Quote(text)+`}}`
					}
				}
			}
			got = append(got, strings.Join(names, " "))
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})}}
		for range 2 {
			_ = ask(t.Context(), m, pipeline.Prompt{Model: tt.model, MaxTokens: 5, Options: tt.options})
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: sent %q", name, got)
		}
	}
}

func FuzzResponses(f *testing.F) {
	f.Add(sse(`{"type":"response.output_text.delta","delta":"x"}`, `{"type":"response.completed","response":{}}`))
	f.Add(sse(`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}`))
	f.Fuzz(func(t *testing.T, body string) { checkStream(t, new(responsesDecoder), body) })
}
