// Package llm holds models, one provider a file.
package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
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
	return post.Send(ctx, request(p))
}

// stream yields the deltas of a stream of server-sent events. Lines that are
// comments, or fields other than data, are passed over. Servers that close the
// stream after the last choice, without [DONE], are understood.
func stream(body io.Reader, yield func(pipeline.Delta, error) bool) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), longestEvent)
	var tools calls
	finished := false
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			return tools.yield(yield)
		}
		c, err := parseChunk(data)
		if err != nil {
			return err
		}
		finished = finished || c.finished()
		if err := tools.add(c.toolCalls()); err != nil {
			return err
		}
		if d := c.delta(); (d.Text != "" || d.Usage != nil) && !yield(d, nil) {
			return nil
		}
	}
	switch err := lines.Err(); {
	case err != nil && !finished:
		return err
	case !finished:
		return errors.New("the answer broke off before its end")
	default:
		return tools.yield(yield)
	}
}
