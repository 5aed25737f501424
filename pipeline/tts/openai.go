package tts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	b, err := json.Marshal(map[string]string{
		"model": cmp.Or(s.Model, OpenAIModel), "voice": cmp.Or(s.Voice, OpenAIVoice),
		"input": clause, "response_format": "pcm",
	})
	if err != nil {
		return nil, 0, fmt.Errorf("openai speech: %w", err)
	}
	url := strings.TrimSuffix(cmp.Or(o.URL, OpenAIURL), "/") + "/audio/speech"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return nil, 0, fmt.Errorf("openai speech: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+string(o.Key))
	}
	resp, err := cmp.Or(o.Client, http.DefaultClient).Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("openai speech: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("openai speech: %w", pipeline.StatusError(resp))
	}
	return resp.Body, openAIRate, nil
}
