package tts

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// OpenAI's defaults.
const (
	OpenAIURL   = "https://api.openai.com/v1"
	OpenAIModel = "gpt-4o-mini-tts"
	OpenAIVoice = "alloy"
)

const openAIRate = 24000 // Hz of response_format pcm

// OpenAI speaks by the audio speech API, which OpenAI, speaches, Kokoro-FastAPI
// and others serve (platform.openai.com/docs/api-reference/audio/createSpeech).
type OpenAI struct {
	URL    string // up to and without /audio/speech; empty: OpenAIURL
	Key    media.Secret
	Client *http.Client // nil: http.DefaultClient; must not have a Timeout
}

// Open implements pipeline.Voice.
func (o OpenAI) Open(ctx context.Context, s pipeline.Style) (pipeline.Speaking, error) {
	return newClausal(ctx, s.Rate, func(ctx context.Context, clause string) (io.ReadCloser, int, error) {
		return o.speak(ctx, s, clause)
	}), nil
}

func (o OpenAI) speak(ctx context.Context, s pipeline.Style, clause string) (io.ReadCloser, int, error) {
	url := strings.TrimSuffix(cmp.Or(o.URL, OpenAIURL), "/") + "/audio/speech"
	post := pipeline.Post{URL: url, Key: o.Key, Client: o.Client}
	pcm, err := post.Send(ctx, map[string]string{
		"model": cmp.Or(s.Model, OpenAIModel), "voice": cmp.Or(s.Voice, OpenAIVoice),
		"input": clause, "response_format": "pcm",
	})
	if err != nil {
		return nil, 0, fmt.Errorf("openai speech: %w", err)
	}
	return pcm, openAIRate, nil
}
