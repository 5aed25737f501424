package agents

import (
	"context"

	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/pipeline/conversation"
)

// A Choice is a provider that an agent may use.
type Choice struct {
	Serves      string // "asr", "llm" or "tts"
	Name, Title string
	// Configured means that a server has the provider. If not, the form shows it, but it cannot be chosen.
	Configured bool
	// Voices are some names of its voices.
	Voices []string
}

// A Playground tries drafts of agents outside of calls.
type Playground struct{ Agent *conversation.Agent }

// Sample synthesizes a text with the voice of a definition and returns at most 15 s of it as a WAV file.
func (p Playground) Sample(ctx context.Context, orgID string, d Definition, text string) (wav []byte, err error) {
	pcm, err := p.Agent.Sample(ctx, d.Speech.For(orgID).TTS, d.Language, text)
	if err != nil {
		return nil, err
	}
	return recorder.Mono(pcm, conversation.SampleRate), nil
}
