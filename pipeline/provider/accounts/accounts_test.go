package accounts

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/tts"
)

func TestAccounts(t *testing.T) {
	list := func(p *Providers) string {
		return strings.Join([]string{
			strings.Join(slices.Sorted(maps.Keys(p.Recognizers)), " "),
			strings.Join(slices.Sorted(maps.Keys(p.Models)), " "),
			strings.Join(slices.Sorted(maps.Keys(p.Voices)), " "),
		}, " | ")
	}
	key := Account{Key: "k"}
	for want, a := range map[string]Accounts{
		" |  | espeak":                                                   {},
		"fake | fake | espeak fake":                                      {Fake: "127.0.0.1:1"},
		"deepgram deepgram-flux |  | deepgram espeak":                    {Deepgram: key},
		"assemblyai openai | openai | cartesia elevenlabs espeak openai": {OpenAI: key, ElevenLabs: key, Cartesia: key, AssemblyAI: key},
	} {
		p := a.Open()
		if got := list(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, url := range []string{"ws://here:1", "ws://here:1/v1/listen"} {
		p := Accounts{Deepgram: Account{URL: url}, OpenAI: Account{URL: "https://there/v1/"}}.Open()
		got := []string{
			p.Recognizers["deepgram"].(asr.Deepgram).URL, p.Recognizers["deepgram-flux"].(asr.Flux).URL,
			p.Voices["deepgram"].(tts.Deepgram).URL, p.Recognizers["openai"].(asr.OpenAI).URL,
		}
		want := []string{"ws://here:1/v1/listen", "ws://here:1/v2/listen", "ws://here:1/v1/speak", "wss://there/v1/realtime"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
