// Package llm contains the language model clients, one provider per file.
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

// Defaults of OpenAI.
const (
	OpenAIURL   = "https://api.openai.com/v1"
	OpenAIModel = "gpt-4o-mini"
)

const maxEvent = 1 << 20 // bytes

// OpenAI uses the chat completions API, which OpenAI, vLLM, llama.cpp, Ollama, SGLang and
// others serve (platform.openai.com/docs/api-reference/chat-streaming).
type OpenAI struct {
	URL    string // without /chat/completions; empty means OpenAIURL
	Key    media.Secret
	Client *http.Client // nil means http.DefaultClient; must not have a Timeout
}

// Reply implements pipeline.Model.
func (o OpenAI) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		body, err := o.ask(ctx, p)
		if err != nil {
			yield(pipeline.Delta{}, fmt.Errorf("openai: %w", err))
			return
		}
		defer body.Close() // cancels an unfinished request
		if err := stream(body, yield); err != nil {
			yield(pipeline.Delta{}, fmt.Errorf("openai: %w", err))
		}
	}
}

func (o OpenAI) ask(ctx context.Context, p pipeline.Prompt) (io.ReadCloser, error) {
	base := strings.TrimSuffix(cmp.Or(o.URL, OpenAIURL), "/")
	post := pipeline.JSONClient{URL: base + "/chat/completions", Key: o.Key, Client: o.Client, Accept: "text/event-stream"}
	r := request(p)
	if base == OpenAIURL {
		r.useMaxCompletion()
	}
	body, err := post.Body(ctx, r)
	var refused *pipeline.RefusedError
	if r.MaxTokens > 0 && errors.As(err, &refused) && refused.Status == http.StatusBadRequest &&
		strings.Contains(refused.Text, "max_completion_tokens") {
		r.useMaxCompletion() // a gateway to OpenAI
		return post.Body(ctx, r)
	}
	return body, err
}

// stream yields the deltas of a server-sent event stream. The last one carries the tool
// calls and the usage.
func stream(body io.Reader, yield func(pipeline.Delta, error) bool) error {
	var a answerReader
	more, err := a.read(body, yield)
	if !more {
		return nil
	}
	last := pipeline.Delta{Usage: a.usage}
	if err == nil {
		last.Calls, err = a.tools.complete()
	}
	if (len(last.Calls) > 0 || last.Usage != nil) && !yield(last, nil) {
		return nil
	}
	return err
}

// An answerReader collects the parts of an answer.
type answerReader struct {
	tools    calls
	usage    *pipeline.Usage // the latest: servers that report it per chunk send running totals
	finished bool
}

// read yields the text. Comments and fields other than data are skipped. A stream may end
// without [DONE] after the last choice. more is false if the consumer stopped.
func (a *answerReader) read(body io.Reader, yield func(pipeline.Delta, error) bool) (more bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			return true, nil
		}
		c, err := parseChunk(data)
		if err != nil {
			return true, err
		}
		a.finished = a.finished || c.finished()
		if u := c.Usage; u != nil {
			a.usage = &pipeline.Usage{PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens}
		}
		if err := a.tools.add(c.toolCalls()); err != nil {
			return true, err
		}
		if text := c.text(); text != "" && !yield(pipeline.Delta{Text: text}, nil) {
			return false, nil
		}
	}
	switch err := lines.Err(); {
	case a.finished:
		return true, nil
	case err != nil:
		return true, err
	}
	return true, errors.New("stream ended before the answer was complete")
}
