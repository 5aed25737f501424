package llm

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

func TestGeminiStream(t *testing.T) {
	const (
		text  = `{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"}}]}`
		done  = `{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"s"}]},"finishReason":"STOP"}]}`
		call  = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"s"},{"functionCall":{"id":"i","name":"g"}}]}}]}`
		usage = `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2,"toolUsePromptTokenCount":1}}`
	)
	finish := func(reason string) string { return strings.Replace(done, "STOP", reason, 1) }
	for name, c := range map[string]struct{ body, text, call, err string }{
		"plain":          {sse(text, done), "Hello", "", ""},
		"thoughts":       {sse(`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`, text, done), "Hello", "", ""},
		"calls":          {sse(call, done), "", `call_0 f {"x":1} i g {} `, ""},
		"null arguments": {sse(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":null}}]},"finishReason":"STOP"}]}`), "", `call_0 f {} `, ""},
		"broken off":     {sse(text), "Hello", "", "stream ended before"},
		"limit":          {sse(text, call, finish("MAX_TOKENS")), "Hello", "", "token limit"},
		"safety":         {sse(text, finish("SAFETY")), "Hello", "", "content filter"},
		"recitation":     {sse(text, finish("RECITATION")), "Hello", "", "content filter"},
		"malformed call": {sse(finish("MALFORMED_FUNCTION_CALL")), "", "", `unusable answer: finish reason "MALFORMED_FUNCTION_CALL"`},
		"blocked prompt": {sse(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}`), "", "", "content filter"},
		"error":          {sse(text, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), "Hello", "", "503 Service Unavailable: The model"},
		"usage":          {sse(text, usage), "Hello", "", ""},
		"not JSON":       {sse(`{garbled`), "", "", "not JSON"},
	} {
		got := read(geminiDecoder{}, c.body)
		calls := ""
		for _, one := range got.calls {
			calls += one.ID + " " + one.Name + " " + string(one.Arguments) + " "
		}
		if got.text != c.text || calls != c.call || !errorMatches(got.err, c.err) {
			t.Errorf("%s: %+v, calls %q", name, got, calls)
		}
		if name == "usage" && !slices.Equal(got.usage, []pipeline.Usage{{PromptTokens: 10, CompletionTokens: 5, CachedTokens: 4}}) {
			t.Errorf("usage %+v", got.usage)
		}
	}
}

// TestGeminiModels checks the reasoning level in requests, and that the client remembers refusals.
func TestGeminiModels(t *testing.T) {
	for name, tt := range map[string]struct {
		model, effort string
		requests      int
		path          string
		want          any
	}{
		"default":             {"gemini-3.8-flash", "", 1, "generationConfig.thinkingConfig.thinkingLevel", "minimal"},
		"with prefix":         {"models/gemini-3.8-flash", "none", 1, "generationConfig.thinkingConfig.thinkingLevel", "minimal"},
		"high":                {"gemini-3.8-flash", "high", 1, "generationConfig.thinkingConfig.thinkingLevel", "high"},
		"always thinks":       {"gemini-3.1-pro", "", 2, "generationConfig.thinkingConfig.thinkingLevel", "low"},
		"budget":              {"gemini-2.5-flash", "", 1, "generationConfig.thinkingConfig.thinkingBudget", 0.0},
		"medium budget":       {"gemini-2.5-pro", "medium", 1, "generationConfig.thinkingConfig.thinkingBudget", 8192.0},
		"budget not accepted": {"gemini-2.5-pro", "", 2, "generationConfig.thinkingConfig", nil},
	} {
		t.Run(name, func(t *testing.T) {
			eachOf(t, fakeprovider.Typical(), []string{"gemini"}, func(t *testing.T, l *lab) {
				t.Helper()
				p := hello()
				p.Model, p.Options.ReasoningEffort = tt.model, tt.effort
				for range 2 {
					if got := ask(t.Context(), l, p); got.err != nil {
						t.Errorf("%+v", got)
					}
				}
				all := l.requests()
				if last := all[len(all)-1]; len(all) != tt.requests+1 || at(last.body, tt.path) != tt.want {
					t.Errorf("%d requests, the last %s", len(all), last.text())
				}
			})
		})
	}
}

func TestGeminiRequest(t *testing.T) {
	eachOf(t, fakeprovider.Typical(), []string{"gemini"}, func(t *testing.T, l *lab) {
		t.Helper()
		p := hello()
		p.Options.Extra = map[string]any{"safetySettings": []any{}, "seed": 5}
		if got := ask(t.Context(), l, p); got.err != nil {
			t.Fatal(got.err)
		}
		r := l.requests()[0]
		if r.URL.String() != "http://fake/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse&x=1" || r.Header.Get("X-Goog-Api-Key") != "canary-key" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		if r.body["safetySettings"] == nil || at(r.body, "generationConfig.seed") != 5.0 {
			t.Errorf("%s", r.text())
		}
	})
	for _, model := range []string{"..", ".", "models/."} {
		if got := ask(t.Context(), Gemini{}, pipeline.Prompt{Model: model}); faultOf(got.err) != "404" {
			t.Errorf("%q: %v", model, got.err)
		}
	}
}

func FuzzGemini(f *testing.F) {
	f.Add(sse(`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}`))
	f.Add(sse(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]},"finishReason":"STOP"}]}`))
	f.Fuzz(func(t *testing.T, body string) { checkStream(t, geminiDecoder{}, body) })
}
