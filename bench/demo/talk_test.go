package demo

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

func TestChooseSpeech(t *testing.T) {
	for _, tt := range []struct {
		kinds     []string
		hasEspeak bool
		want      Speech
		notice    string
	}{
		{nil, false, Speech{"fake", "fake", "fake"}, "install espeak-ng"},
		{nil, true, Speech{"fake", "fake", "espeak"}, "Voice: espeak-ng. For real providers, set PARLEY_DEEPGRAM_API_KEY, PARLEY_OPENAI_API_KEY, PARLEY_ELEVENLABS_API_KEY"},
		{[]string{"anthropic"}, true, Speech{"fake", "anthropic", "espeak"}, "Model: anthropic."},
		{[]string{"deepgram", "anthropic"}, true, Speech{"deepgram", "anthropic", "deepgram"}, "Speech-to-text: deepgram. Model: anthropic. Voice: deepgram."},
	} {
		configured := map[string]endpoints.Endpoint{}
		for _, kind := range tt.kinds {
			configured[kind] = endpoints.Endpoint{Kind: kind}
		}
		got := ChooseSpeech(configured, tt.hasEspeak)
		if got != tt.want || !strings.Contains(strings.Join(got.Notice(), " "), tt.notice) {
			t.Errorf("%v: %+v, %q; want %+v, %q", tt.kinds, got, got.Notice(), tt.want, tt.notice)
		}
		if _, err := apply.Parse(strings.NewReader(got.File())); err != nil {
			t.Errorf("%+v: %v", got, err)
		}
	}
}

func TestVisitors(t *testing.T) {
	spec, err := apply.Parse(strings.NewReader(Speech{"fake", "fake", "fake"}.File()))
	if err != nil {
		t.Fatal(err)
	}
	reply := Script().Reply
	for i, cases := range []map[string]string{
		{"When do you OPEN?": "from 9 to 6", "Have you Moby-Dick": "hold a copy", "hmm": "I am a script", "yes please": "three days", "thanks, bye": "Goodbye"},
		{"I know": "I am a script", "no, not now": "Friday at 2, or", "Friday is fine": "moved", "Yes.": "confirmed", "cancel it": "canceled"},
	} {
		agent := spec.Organizations[0].Agents[i]
		if agent.Name != TalkAgents()[i] {
			t.Fatalf("agent %d is %q", i, agent.Name)
		}
		for said, want := range cases {
			got := reply([]fakeprovider.Message{{Role: "system", Content: "Rules. " + *agent.Prompt}, {Role: "user", Content: said}})
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q gets %q, want %q", agent.Name, said, got, want)
			}
		}
	}
}
