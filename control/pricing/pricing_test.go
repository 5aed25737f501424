package pricing_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/pipeline"
)

func TestParseAmount(t *testing.T) {
	for text, want := range map[string]pricing.Amount{
		"0": 0, "1": 1e9, "0.0043": 4_300_000, "1000000": 1e15, "0.000000001": 1, "12.5": 12_500_000_000,
		"": -1, "-1": -1, ".5": -1, "1.": -1, "1e3": -1, "0.0000000001": -1, "1000000.1": -1, "9999999": -1, "1,5": -1, " 1": -1,
	} {
		got, err := pricing.ParseAmount(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
		if err != nil {
			continue
		}
		var again pricing.Amount
		if shown, err := json.Marshal(got); err != nil || json.Unmarshal(shown, &again) != nil || again != got {
			t.Errorf("%q is shown as %s", text, shown)
		}
	}
}

// file is a price file of an operator.
const file = `
as_of: 2026-11-01
prices:
  - {kind: openai, serves: llm, model: "gpt-*", per_million_prompt_tokens: 1, per_million_completion_tokens: 2}
  - {kind: openai, serves: llm, model: "gpt-4*", per_million_prompt_tokens: 3, per_million_cached_tokens: 1.5, per_million_completion_tokens: 4}
  - {kind: openai, serves: llm, model: gpt-4o, per_million_prompt_tokens: 0.15, per_million_completion_tokens: 0.6}
  - {kind: openai, serves: llm, per_million_prompt_tokens: 5, per_million_completion_tokens: 5}
  - {kind: chat, host: api.example.com, serves: llm, model: "*", per_million_prompt_tokens: 7, per_million_completion_tokens: 7}
  - {provider: local, serves: llm, model: "*", per_million_prompt_tokens: 0, per_million_completion_tokens: 0}
  - {kind: deepgram, serves: asr, per_minute: 0.0077}
  - {kind: deepgram, serves: tts, model: "*", per_million_characters: 30}
`

func list(t *testing.T, text string) *pricing.List {
	t.Helper()
	endpoints := map[string]pricing.Endpoint{
		"openai": {Kind: "openai"}, "local": {Kind: "openai"}, "own": {Kind: "openai", Host: "10.0.0.1"},
		"example": {Kind: "chat", Host: "api.example.com"}, "deepgram": {Kind: "deepgram"}, "fake": {Kind: "fake"}, "set": {Kind: "openai", Model: "gpt-4o"},
	}
	builtIn, err := pricing.BuiltIn(func(id string) pricing.Endpoint { return endpoints[id] })
	if err != nil {
		t.Fatal(err)
	}
	l, err := builtIn.Extend([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCost(t *testing.T) {
	l := list(t, file)
	tokens := pipeline.EngineUsage{Serves: "llm", Provider: "openai", PromptTokens: 1000, CachedTokens: 200, CompletionTokens: 10}
	with := func(provider, model string) pipeline.EngineUsage {
		u := tokens
		u.Provider, u.Model = provider, model
		return u
	}
	for name, tt := range map[string]struct {
		usage pipeline.EngineUsage
		want  pricing.Amount // -1 means that the usage has no price
	}{
		"default model":          {tokens, 5_050_000},
		"endpoint's model":       {with("set", ""), 156_000},
		"exact model":            {with("openai", "gpt-4o"), 156_000},
		"longer prefix":          {with("openai", "gpt-4.1"), 800*3000 + 200*1500 + 10*4000},
		"shorter prefix":         {with("openai", "gpt-3"), 1000*1000 + 10*2000},
		"endpoint":               {with("local", "gpt-4o"), 0},
		"host":                   {with("example", "any"), 7_070_000},
		"another host":           {with("own", "gpt-4o"), -1},
		"unknown model":          {with("openai", "o9"), -1},
		"unknown provider":       {with("else", "gpt-4o"), -1},
		"seconds":                {pipeline.EngineUsage{Serves: "asr", Provider: "deepgram", Seconds: 61.23}, 7_857_850},
		"half a billionth":       {pipeline.EngineUsage{Serves: "asr", Provider: "deepgram", Seconds: 0.03}, 3850},
		"characters":             {pipeline.EngineUsage{Serves: "tts", Provider: "deepgram", Model: "aura", Characters: 333}, 9_990_000},
		"built-in, of the fakes": {pipeline.EngineUsage{Serves: "asr", Provider: "fake", Seconds: 9}, 0},
	} {
		c := l.Cost([]pipeline.EngineUsage{tt.usage}, nil)
		if tt.want < 0 {
			if c.Amount != 0 || len(c.Items) != 0 || len(c.Unpriced) != 1 || c.Unpriced[0].Provider != tt.usage.Provider {
				t.Errorf("%s: %+v, want no price", name, c)
			}
			continue
		}
		if c.Amount != tt.want || len(c.Items) != 1 || c.Items[0].Amount != tt.want || len(c.Unpriced) != 0 {
			t.Errorf("%s: %+v, want %v", name, c, tt.want)
		}
	}
}

func TestCostOfTrunk(t *testing.T) {
	rate := 0.013
	got, err := json.Marshal(list(t, file).Cost(nil, []pricing.TrunkLeg{
		pricing.NewTrunkLeg("callee", 90*time.Second+4*time.Millisecond, &rate),
		pricing.NewTrunkLeg("transfer", 30*time.Second, &rate),
		pricing.NewTrunkLeg("transfer", -time.Second, nil),
	}))
	want := `{"amount":0.026,"currency":"USD","prices_as_of":"2026-11-01","items":[],"trunk":{"seconds":120,"amount":0.026,"legs":[` +
		`{"leg":"callee","seconds":90,"per_minute":0.013,"amount":0.0195},{"leg":"transfer","seconds":30,"per_minute":0.013,"amount":0.0065},` +
		`{"leg":"transfer","seconds":0,"per_minute":null,"amount":0}]},"unpriced":[{"serves":"trunk"}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	var none *pricing.List
	if c := none.Cost([]pipeline.EngineUsage{{Serves: "asr", Provider: "x"}, {Serves: "asr", Provider: "x"}}, nil); len(c.Unpriced) != 1 {
		t.Errorf("without a list: %+v", c)
	}
}

func TestExtendInAnotherCurrency(t *testing.T) {
	l := list(t, "prices: [{kind: openai, serves: llm, model: x, per_million_prompt_tokens: 1, per_million_completion_tokens: 1}]")
	l, err := l.Extend([]byte("{currency: EUR, per_usd: 0.86, as_of: 2026-11-02}"))
	if err != nil || l.Currency != "EUR" || l.AsOf != "2026-11-02" {
		t.Fatalf("%+v, %v", l, err)
	}
	if c := l.Cost([]pipeline.EngineUsage{{Serves: "asr", Provider: "fake", Seconds: 1}}, nil); c.Currency != "EUR" || len(c.Items) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestExtendRefusesBadFiles(t *testing.T) {
	const good = "per_million_prompt_tokens: 1, per_million_completion_tokens: 1}"
	for text, want := range map[string]string{
		"prices:\n- {kind: a, serves: asr}":                                                         "line 2: prices of asr: set per_minute",
		"prices:\n\n- {kind: a, serves: llm, per_million_prompt_tokens: 1}":                         "line 3: prices of llm: set per_million_prompt_tokens",
		"prices:\n- {kind: a, serves: asr, per_minute: 1, per_million_characters: 1}":               "line 2: prices of asr: only per_minute",
		"prices:\n- {kind: a, provider: b, serves: asr, per_minute: 1}":                             "line 2: set kind or provider",
		"prices:\n- {serves: asr, per_minute: 1}":                                                   "line 2: set kind or provider",
		"prices:\n- {provider: b, host: c, serves: asr, per_minute: 1}":                             "line 2: host: accepted with kind only",
		"prices:\n- {kind: a, serves: ears, per_minute: 1}":                                         `line 2: serves "ears": accepted: asr, llm, tts`,
		"prices:\n- {kind: a, serves: llm, model: a*b, " + good:                                     `line 2: model "a*b": * is accepted at the end only`,
		"prices:\n- kind: a\n  serves: asr\n  per_minute: cheap":                                    `line 4: "cheap": use a number`,
		"prices:\n- kind: a\n  serves: asr\n  per_minutes: 1":                                       "line 4: field per_minutes not found",
		"prices:\n- {kind: a, serves: asr, per_minute: 1}\n- {kind: a, serves: asr, per_minute: 2}": "line 3: the same as in line 2",
		"currency: EUR":               "currency EUR: per_usd is missing",
		"currency: Euro":              `currency "Euro": use the three letters`,
		"per_usd: 2":                  "per_usd: accepted only with a currency other than USD",
		"{currency: EUR, per_usd: 0}": "per_usd: use a number above 0",
		"as_of: today":                `as_of "today": use a date`,
		"prices: [":                   "line 1",
	} {
		builtIn, err := pricing.BuiltIn(noEndpoint)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = builtIn.Extend([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestBuiltIn checks that the built-in list has a price for the default model of each provider with public prices.
func TestBuiltIn(t *testing.T) {
	kinds := map[string]pricing.Endpoint{}
	for _, kind := range []string{"openai", "responses", "anthropic", "gemini", "deepgram", "assemblyai", "azure", "elevenlabs"} {
		kinds[kind] = pricing.Endpoint{Kind: kind}
	}
	l, err := pricing.BuiltIn(func(id string) pricing.Endpoint { return kinds[id] })
	if err != nil {
		t.Fatal(err)
	}
	c := l.Cost([]pipeline.EngineUsage{
		{Serves: "llm", Provider: "openai"},
		{Serves: "llm", Provider: "openai", Model: "gpt-4.1-mini-2025-04-14"},
		{Serves: "llm", Provider: "responses"},
		{Serves: "llm", Provider: "anthropic"},
		{Serves: "llm", Provider: "gemini"},
		{Serves: "asr", Provider: "openai"},
		{Serves: "asr", Provider: "deepgram"},
		{Serves: "asr", Provider: "assemblyai"},
		{Serves: "asr", Provider: "azure"},
		{Serves: "tts", Provider: "azure"},
		{Serves: "tts", Provider: "elevenlabs"},
	}, nil)
	if len(c.Unpriced) > 0 || len(c.Items) != 11 {
		t.Errorf("%+v", c)
	}
	for _, p := range l.Prices() {
		if p.Source == "" && p.Kind != "fake" && p.Kind != "espeak" {
			t.Errorf("no source: %+v", p)
		}
	}
}

// TestDocumentedFile checks that the example of docs/providers.md is valid.
func TestDocumentedFile(t *testing.T) {
	doc, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(doc), "## Prices")
	_, after, _ = strings.Cut(after, "```yaml\n")
	example, _, _ := strings.Cut(after, "```")
	if l := list(t, example); l.Currency != "EUR" || l.Prices()[0].Provider != "local-llm" {
		t.Errorf("%+v", l.Prices()[0])
	}
}

func noEndpoint(string) pricing.Endpoint { return pricing.Endpoint{} }
