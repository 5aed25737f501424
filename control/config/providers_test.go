package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamedEndpoints checks that any number of endpoints can be named, in addition to the endpoints of the older
// settings, and that no error repeats a key.
func TestNamedEndpoints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load("", []string{
		"PARLEY_OPENAI_API_KEY=canary",
		"PARLEY_PROVIDER_GROQ_EU_KIND=chat", "PARLEY_PROVIDER_GROQ_EU_URL=https://api.groq.com/openai/v1", "PARLEY_PROVIDER_GROQ_EU_KEY_FILE=" + file,
		"PARLEY_PROVIDER_GROQ_EU_HEADERS=X-Title=parley, X-Key=canary", "PARLEY_PROVIDER_GROQ_EU_CONCURRENCY=7",
		"PARLEY_PROVIDER_DG2_KIND=deepgram", "PARLEY_PROVIDER_DG2_KEY=canary", "PARLEY_PROVIDER_DG2_CONCURRENCY=5", "PARLEY_PROVIDER_LIMITS=dg2=3,openai=9",
	})
	if err != nil {
		t.Fatal(err)
	}
	groq := c.Endpoints.Named["groq-eu"]
	if groq.Kind != "chat" || groq.Key != "canary" || groq.Header.Get("X-Key") != "canary" || groq.Header.Get("X-Title") != "parley" {
		t.Errorf("%s", groq.Kind)
	}
	if len(c.Endpoints.Named) != 3 || c.ProviderLimits["groq-eu"] != 7 || c.ProviderLimits["dg2"] != 3 || c.ProviderLimits["openai"] != 9 {
		t.Errorf("%d endpoints, limits %v", len(c.Endpoints.Named), c.ProviderLimits)
	}
	for want, environ := range map[string][]string{
		"provider a: kind \"\": accepted":          {"PARLEY_PROVIDER_A_KEY=canary"},
		"provider a: url is missing":               {"PARLEY_PROVIDER_A_KIND=chat"},
		"provider a: key is missing":               {"PARLEY_PROVIDER_A_KIND=deepgram"},
		"provider a: url: accepted: a URL with ws": {"PARLEY_PROVIDER_A_KIND=deepgram", "PARLEY_PROVIDER_A_URL=https://canary"},
		"only one of them":                         {"PARLEY_PROVIDER_A_KEY=canary", "PARLEY_PROVIDER_A_KEY_FILE=" + file},
		"invalid header; accepted: NAME=VALUE":     {"PARLEY_PROVIDER_A_HEADERS=canary"},
		"out of range; accepted: 1 to 100000":      {"PARLEY_PROVIDER_A_CONCURRENCY=0"},
		"name \"fake\": the name is taken":         {"PARLEY_PROVIDER_FAKE_KIND=chat"},
		"unknown key PARLEY_PROVIDER_A_KINDS":      {"PARLEY_PROVIDER_A_KINDS=chat"},
		"PARLEY_DEEPGRAM_URL: url: accepted":       {"PARLEY_DEEPGRAM_URL=https://api.deepgram.com"},
		"PARLEY_CARTESIA_URL: url: path \"/v2\"":   {"PARLEY_CARTESIA_URL=wss://here/v2"},
		"url: a password in a URL is not accepted": {"PARLEY_OPENAI_URL=https://me:canary@here/v1"},
	} {
		if _, err := Load("", environ); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
