package selftest

import (
	"testing"

	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// TestKinds checks each kind of endpoint over the wire: every model answers, every voice
// speaks, and every recognizer hears the sentence.
func TestKinds(t *testing.T) {
	fakes, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", fakeprovider.Script{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fakes.Close() }()
	sockets := map[string]bool{"deepgram": true, "elevenlabs": true, "cartesia": true, "assemblyai": true, "azure": true, "soniox": true}
	paths := map[string]string{
		"openai": "/v1", "responses": "/v1", "chat": "/v1", "speech": "/v1", "transcriptions": "/v1", "gemini": "/v1beta",
	}
	set, want := endpoints.Set{Named: map[string]endpoints.Endpoint{}}, map[[2]string]bool{}
	for kind, k := range endpoints.Kinds() {
		e := endpoints.Endpoint{Kind: kind, Key: "canary", URL: "http://" + fakes.Addr() + paths[kind]}
		if sockets[kind] {
			e.URL = "ws://" + fakes.Addr()
		}
		if kind == "azure-openai" {
			e.APIVersion = "2024-10-21"
		}
		set.Named[kind] = e
		for _, serves := range k.Serves {
			want[[2]string{kind, serves}] = true
		}
	}
	if err = set.Check(); err != nil {
		t.Fatal(err)
	}
	registry := set.Open(safedial.Rules{})
	defer func() { _ = registry.Close() }()
	p := registry.Current()
	delete(p.Voices, "espeak")
	test := Test{Recognizers: p.Recognizers, Models: p.Models, Voices: p.Voices, Listen: true}
	test.Run(t.Context(), func(r Result) {
		delete(want, [2]string{r.Name, r.Serves})
		if r.Err != nil || r.Serves == "asr" && r.Detail != "hello, this is a test of the voice." {
			t.Errorf("%s %s: %q, %v", r.Name, r.Serves, r.Detail, r.Err)
		}
	})
	if len(want) > 0 {
		t.Errorf("not tested: %v", want)
	}
}
