package main

import (
	"slices"
	"testing"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// TestChoices checks which providers the form of an agent offers: those of the operator, of the organization and of other
// servers, then the fake, then those without a key.
func TestChoices(t *testing.T) {
	set := endpoints.Set{
		Fake:  "127.0.0.1:1",
		Named: map[string]endpoints.Endpoint{"deepgram": {Kind: "deepgram", Key: "k"}, "ours": {Kind: "azure", Region: "x", Key: "k"}},
		Organizations: map[string]map[string]endpoints.Endpoint{
			"org_1": {"theirs": {Kind: "elevenlabs", Key: "k"}}, "org_2": {"hidden": {Kind: "elevenlabs", Key: "k"}},
		},
	}
	registry := set.Open(safedial.Rules{})
	defer func() { _ = registry.Close() }() // no connection is open
	all := choices(set, registry.Current(), providers.Names{"tts": {"elsewhere"}}, "org_1")
	var names []string
	for _, c := range all {
		switch {
		case c.Serves == "tts" && c.Configured:
			names = append(names, c.Name)
		case c.Serves == "tts":
			names = append(names, "-"+c.Name)
		}
	}
	if !slices.Equal(names, []string{"deepgram", "elsewhere", "espeak", "ours", "theirs", "fake", "-azure", "-cartesia", "-elevenlabs", "-openai", "-soniox", "-yandex"}) {
		t.Errorf("voices: %v", names)
	}
	if !slices.ContainsFunc(all, func(c agents.Choice) bool {
		return c.Name == "ours" && c.Title == "Azure Speech" && slices.Contains(c.Voices, "en-US-JennyNeural")
	}) {
		t.Error("an endpoint has no voices of its kind")
	}
	if !slices.ContainsFunc(all, func(c agents.Choice) bool { return c.Serves == "asr" && c.Name == "deepgram-flux" }) {
		t.Error("the second recognizer of Deepgram is missing")
	}
}
