// Package llm holds models, one provider a file.
package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// OpenAI's defaults.
const (
	OpenAIURL   = "https://api.openai.com/v1"
	OpenAIModel = "gpt-4o-mini"
)

const longestEvent = 1 << 20 // bytes

// OpenAI asks a model over the chat completions API, which OpenAI, vLLM,
// llama.cpp, Ollama, SGLang and many others speak
// (platform.openai.com/docs/api-reference/chat-streaming).
type OpenAI struct {
	URL    string // up to and without /chat/completions; empty: OpenAIURL
	Key    media.Secret
	Client *http.Client // nil: http.DefaultClient; must not have a Timeout
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatRequest struct {
	Model         string         `json:"model"`
	Messages      []chatMessage  `json:"messages"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
}

type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Reply implements pipeline.Model.
func (o OpenAI) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		body, err := o.ask(ctx, p)
		if err != nil {
			yield(pipeline.Delta{}, fmt.Errorf("openai: %w", err))
			return
		}
		defer body.Close() // cancels the request where it is not over
		if err := stream(body, yield); err != nil {
			yield(pipeline.Delta{}, fmt.Errorf("openai: %w", err))
		}
	}
}

func (o OpenAI) ask(ctx context.Context, p pipeline.Prompt) (io.ReadCloser, error) {
	url := strings.TrimSuffix(cmp.Or(o.URL, OpenAIURL), "/") + "/chat/completions"
	post := pipeline.Post{URL: url, Key: o.Key, Client: o.Client, Accept: "text/event-stream"}
	return post.Send(ctx, chatRequest{
		Model: cmp.Or(p.Model, OpenAIModel), Messages: messages(p), Stream: true,
		StreamOptions: map[string]any{"include_usage": true}, MaxTokens: p.MaxTokens,
	})
}

func messages(p pipeline.Prompt) []chatMessage {
	m := []chatMessage{{"system", p.Instructions}}
	for _, l := range p.Messages {
		role := "user"
		if l.Role == pipeline.RoleAgent {
			role = "assistant"
		}
		m = append(m, chatMessage{role, l.Text})
	}
	return m
}

// stream yields the deltas of a stream of server-sent events. Lines that are
// comments, or fields other than data, are passed over.
func stream(body io.Reader, yield func(pipeline.Delta, error) bool) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), longestEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			return nil
		}
		d, err := parseChunk(data)
		if err != nil {
			return err
		}
		if (d.Text != "" || d.Usage != nil) && !yield(d, nil) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the answer broke off before [DONE]")
}

func parseChunk(data []byte) (pipeline.Delta, error) {
	var c chatChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return pipeline.Delta{}, fmt.Errorf("not JSON: %w", err)
	}
	if c.Error != nil {
		return pipeline.Delta{}, errors.New(c.Error.Message)
	}
	var d pipeline.Delta
	if len(c.Choices) > 0 {
		d.Text = c.Choices[0].Delta.Content
	}
	if c.Usage != nil {
		d.Usage = &pipeline.Usage{PromptTokens: c.Usage.PromptTokens, CompletionTokens: c.Usage.CompletionTokens}
	}
	return d, nil
}
