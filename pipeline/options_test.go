package pipeline

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestOptionsCheck(t *testing.T) {
	hot := 2.1
	for want, o := range map[string]Options{
		"":                 {KeyTerms: []string{"Kaspi"}, Languages: []string{"kk", "ru"}, Speed: 0.5, MaxTokens: 1, ReasoningEffort: "none"},
		"keyterms":         {KeyTerms: []string{""}},
		"languages":        {Languages: make([]string, 9)},
		"temperature":      {Temperature: &hot},
		"max_tokens":       {MaxTokens: -1},
		"reasoning_effort": {ReasoningEffort: "most"},
		"speed":            {Speed: 0.1},
		"instructions":     {Instructions: strings.Repeat("x", 1001)},
	} {
		if err := o.Check(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want+": accepted: ") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestOptionRules(t *testing.T) {
	r := OptionRules{Takes: []string{"options"}, Reserved: []string{"model"}, Known: []string{"smart_format", "url_style"}}
	for name, want := range map[string]string{
		"smart_format": "", "url_style": "", "token_style": "addresses or keys",
		"model": "sets this parameter", "callback": "addresses or keys", "callback_method": "addresses or keys", "api_key": "addresses or keys", "xi-api-key": "addresses or keys", "callbackUrl": "addresses or keys", "webhookURL": "addresses or keys",
	} {
		_, err := r.Check(Options{Extra: map[string]any{name: 1}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	nested := map[string]any{"servers": []any{map[string]any{"name": "x", "url": "https://x"}}, "smart_format": map[string]any{"url": "x"}}
	if _, err := r.Check(Options{Extra: nested}); err == nil || !strings.Contains(err.Error(), "options.servers: ") || strings.Contains(err.Error(), "smart_format") {
		t.Errorf("nested: %v", err)
	}
	warnings, err := r.Check(Options{Speed: 1.5, Extra: map[string]any{"new_thing": true}})
	if err != nil || len(warnings) != 2 || !strings.Contains(warnings[0], "options.new_thing") || !strings.Contains(warnings[1], "speed") {
		t.Errorf("%q, %v", warnings, err)
	}
}

// TestErrorMessage covers the error shapes of the providers.
func TestErrorMessage(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"no such model","type":"x"}}`:       "no such model",
		`{"error":"Unauthorized"}`:                               "Unauthorized",
		`{"err_code":"Bad Request","err_msg":"no such model"}`:   "no such model",
		`{"detail":{"status":"x","message":"voice not found"}}`:  "voice not found",
		`{"detail":"Not Found"}`:                                 "Not Found",
		`{"error_code":401,"error_message":"bad key"}`:           "bad key",
		`{"title":"Model sunsetted","error_code":"x"}`:           "Model sunsetted",
		`[{"error":{"code":400,"message":"thought_signature"}}]`: "thought_signature",
		`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","n",0],"msg":"Extra inputs"}]}}`: "body.n.0: Extra inputs",
		`{"detail":[{"loc":["body","a"],"msg":"no"},{"loc":["body","b"],"msg":"not"}],"message":[{"msg":"x"}]}`:          "body.a: no; body.b: not",
		`<html>`: "", `{}`: "", `null`: "", `[]`: "",
	} {
		if got := ErrorMessage([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	address, err := url.Parse("wss://x/v1?token=canary1&language=ru&subscriptionKey=canary2&client_secret=canary3&X-Amz-Signature=canary4")
	if err != nil {
		t.Fatal(err)
	}
	got := Redact("key canary/2+3=, canary2, canary3, canary4 and canary1 are\nwrong for ru"+strings.Repeat("x", 300), http.Header{"Authorization": {"Bearer canary/2+3="}}, address)
	if want := "key [redacted], [redacted], [redacted], [redacted] and [redacted] are wrong for ru"; !strings.HasPrefix(got, want) || len(got) != 200 {
		t.Errorf("%q", got)
	}
}
