package endpoints

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tts"
)

// TestKindsServe checks that an endpoint of each kind creates the clients that the kind
// lists, under the endpoint's name.
func TestKindsServe(t *testing.T) {
	for kind, k := range Kinds() {
		e := Endpoint{Kind: kind, Key: "k"}
		if k.needsRegion {
			e.Region = "here"
		}
		if !k.hasDefault && !k.needsRegion {
			e.URL = k.schemes[len(k.schemes)-1] + "://there"
		}
		s := Set{Named: map[string]Endpoint{"mine": e}}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		p := s.Open(safedial.Rules{})
		_, asr := p.Current().Recognizers["mine"]
		_, llm := p.Current().Models["mine"]
		_, tts := p.Current().Voices["mine"]
		for seam, have := range map[string]bool{"asr": asr, "llm": llm, "tts": tts} {
			if have != slices.Contains(k.Serves, seam) {
				t.Errorf("%s: %s: %v", kind, seam, have)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	p := Set{Fake: "127.0.0.1:1"}.Open(safedial.Rules{})
	if all := slices.Sorted(maps.Keys(p.Current().Voices)); !slices.Equal(all, []string{"espeak", "fake"}) || p.Current().Recognizers["fake"] == nil || p.Current().Models["fake"] == nil {
		t.Errorf("without endpoints: %q", all)
	}
	_ = p.Close()
}

func TestCheck(t *testing.T) {
	for want, e := range map[string]Endpoint{
		"":                                     {Kind: "deepgram", Key: "k"},
		`kind "deepgrm": accepted: anthropic,`: {Kind: "deepgrm"},
		"key is missing":                       {Kind: "deepgram"},
		"url is missing":                       {Kind: "chat"},
		"accepted: a URL with ws or wss":       {Kind: "deepgram", URL: "https://here/v1/listen"},
		"accepted: a URL with http or https":   {Kind: "chat", URL: "localhost:11434/v1"},
		`path "/v1/speak": accepted`:           {Kind: "deepgram", URL: "wss://here/v1/speak"},
		"a password in a URL is not accepted":  {Kind: "chat", URL: "https://canary:canary@here/v1"},
		"headers: only these kinds have the setting: anthropic, azure-openai, chat, gemini, openai, resp":    {Kind: "deepgram", Key: "k", Header: http.Header{"X": {"canary"}}},
		"model: only these kinds have the setting: anthropic, azure-openai, chat, gemini, openai, responses": {Kind: "deepgram", Key: "k", Model: "m"},
		"api_version: only these kinds have the setting: azure-openai":                                       {Kind: "chat", URL: "http://here", APIVersion: "v"},
		"region: only these kinds have the setting: azure, soniox":                                           {Kind: "openai", Key: "k", Region: "eu"},
		"folder: only these kinds have the setting: yandex":                                                  {Kind: "azure", Key: "k", Region: "eu", Folder: "f"},
		"headers: only these":             {Kind: "yandex", Key: "k", Header: http.Header{"X": {"canary"}}},
		"headers: Sec-Websocket-Key is":   {Kind: "chat", URL: "http://a", Header: http.Header{"Sec-WebSocket-Key": {"canary"}}},
		"headers: Host is reserved":       {Kind: "chat", URL: "http://a", Header: http.Header{"Host": {"canary"}}},
		"region: not used with a url":     {Kind: "azure", URL: "wss://here", Region: "eu"},
		`region: "eu.example/": accepted`: {Kind: "soniox", Key: "k", Region: "eu.example/"},
	} {
		err := Set{Named: map[string]Endpoint{"mine": e}}.Check()
		if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), "provider mine: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: a secret is printed: %v", want, err)
		}
	}
	e := Endpoint{Kind: "deepgram", Key: "canary", Header: http.Header{"X": {"canary"}}, Concurrency: 3}
	if text := fmt.Sprintf("%v %+v", e, Set{Named: map[string]Endpoint{"a": e}}); strings.Contains(text, "canary") {
		t.Errorf("a secret is printed: %s", text)
	}
	if got := (Set{Organizations: map[string]map[string]Endpoint{"org": {"dg": e}}}).Limits(); got["org/dg"] != 3 || got["org/dg-flux"] != 3 || len(got) != 2 {
		t.Errorf("limits: %v", got)
	}
	for _, name := range []string{"", "Groq", "a-flux", "fake", "espeak", "a b", strings.Repeat("a", 40)} {
		if CheckName(name) == nil {
			t.Errorf("name %q is accepted", name)
		}
	}
}

// TestDefaultModel checks that each kind passes the model of an endpoint to its client.
func TestDefaultModel(t *testing.T) {
	for kind, k := range Kinds() {
		if !slices.Contains(k.Serves, "llm") {
			continue
		}
		p := Set{Named: map[string]Endpoint{"mine": {Kind: kind, URL: "http://there", Model: "m"}}}.Open(safedial.Rules{})
		if text := fmt.Sprintf("%+v", p.Current().Models["mine"]); !strings.Contains(text, "Model:m ") {
			t.Errorf("%s: %s", kind, text)
		}
		_ = p.Close()
	}
}

// TestAddresses checks that a host alone and the full address give the same URLs.
func TestAddresses(t *testing.T) {
	for _, url := range []string{"ws://here:1", "ws://here:1/", "ws://here:1/v1/listen"} {
		p := Set{Named: map[string]Endpoint{
			"deepgram": {Kind: "deepgram", URL: url}, "openai": {Kind: "openai", URL: "https://there/v1/"},
			"assemblyai": {Kind: "assemblyai", URL: "wss://eu.there"},
		}}.Open(safedial.Rules{})
		got := []string{
			p.Current().Recognizers["deepgram"].(asr.Deepgram).URL, p.Current().Recognizers["deepgram-flux"].(asr.Flux).URL,
			p.Current().Voices["deepgram"].(tts.Deepgram).URL, p.Current().Recognizers["openai"].(asr.OpenAI).URL, p.Current().Recognizers["assemblyai"].(asr.AssemblyAI).URL,
		}
		want := []string{
			"ws://here:1/v1/listen", "ws://here:1/v2/listen", "ws://here:1/v1/speak", "wss://there/v1/realtime", "wss://eu.there/v3/ws",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
