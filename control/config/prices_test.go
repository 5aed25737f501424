package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// TestPrices checks that an endpoint at a provider's own address has the provider's prices. Other endpoints have the
// prices of their host or name.
func TestPrices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("prices: [{provider: mine, serves: llm, model: \"*\", per_million_prompt_tokens: 0, per_million_completion_tokens: 0}]")
	c, err := Load("", []string{
		"PARLEY_OPENAI_API_KEY=k", "PARLEY_OPENAI_URL=https://api.openai.com/v1", "PARLEY_DEEPGRAM_API_KEY=k",
		"PARLEY_ELEVENLABS_API_KEY=k", "PARLEY_ELEVENLABS_URL=ws://10.0.0.1", "PARLEY_PRICES_FILE=" + file,
		"PARLEY_PROVIDER_GROQ_KIND=chat", "PARLEY_PROVIDER_GROQ_URL=https://api.groq.com/openai/v1",
		"PARLEY_PROVIDER_MINE_KIND=openai", "PARLEY_PROVIDER_MINE_URL=http://10.0.0.1/v1",
		"PARLEY_PROVIDER_OTHER_KIND=openai", "PARLEY_PROVIDER_OTHER_URL=http://10.0.0.2/v1",
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Prices(func() endpoints.Set { return c.Endpoints })
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []pipeline.EngineUsage{
		{Serves: "llm", Provider: "openai", Model: "gpt-6-luna"},
		{Serves: "asr", Provider: "openai"},
		{Serves: "asr", Provider: "deepgram"},
		{Serves: "asr", Provider: "deepgram-flux", Model: "flux-general-en"},
		{Serves: "tts", Provider: "deepgram"},
		{Serves: "llm", Provider: "groq", Model: "openai/gpt-oss-120b"},
		{Serves: "llm", Provider: "mine", Model: "qwen"},
		{Serves: "tts", Provider: "espeak"},
		{Serves: "llm", Provider: "fake"},
	} {
		if got := l.Cost([]pipeline.EngineUsage{u}, nil); len(got.Items) != 1 {
			t.Errorf("%+v has no price", u)
		}
	}
	for _, u := range []pipeline.EngineUsage{
		{Serves: "llm", Provider: "other", Model: "gpt-6-luna"}, {Serves: "tts", Provider: "elevenlabs"}, {Serves: "llm", Provider: "removed"},
	} {
		if got := l.Cost([]pipeline.EngineUsage{u}, nil); len(got.Unpriced) != 1 {
			t.Errorf("%+v has a price", u)
		}
	}
	for text, want := range map[string]string{
		"prices:\n- {kind: a}":            "PARLEY_PRICES_FILE: " + file + ": line 2: ",
		strings.Repeat("#", 1<<20) + "\n": "at most 1048576 bytes are accepted",
	} {
		write(text)
		if _, err := c.Prices(func() endpoints.Set { return c.Endpoints }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	c.PricesFile += ".missing"
	if _, err := c.Prices(func() endpoints.Set { return c.Endpoints }); err == nil || !strings.Contains(err.Error(), "PARLEY_PRICES_FILE") {
		t.Errorf("a missing file: %v", err)
	}
}
