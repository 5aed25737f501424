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
	base := strings.TrimSuffix(cmp.Or(o.URL, OpenAIURL), "/")
	post := pipeline.Post{URL: base + "/chat/completions", Key: o.Key, Client: o.Client, Accept: "text/event-stream"}
	r := request(p)
	if base == OpenAIURL {
		r.bound()
	}
	body, err := post.Send(ctx, r)
	var refused *pipeline.RefusedError
	if r.MaxTokens > 0 && errors.As(err, &refused) && refused.Status == http.StatusBadRequest && strings.Contains(refused.Text, "max_completion_tokens") {
		r.bound() // somebody passes it on to OpenAI
		return post.Send(ctx, r)
	}
	return body, err
}

// stream yields the deltas of a stream of server-sent events; the last of them
// has the tool calls, and what all of it cost.
func stream(body io.Reader, yield func(pipeline.Delta, error) bool) error {
	var a answer
	more, err := a.read(body, yield)
	if !more {
		return nil
	}
	last := pipeline.Delta{Usage: a.usage}
	if err == nil {
		last.Calls, err = a.tools.whole()
	}
	if (len(last.Calls) > 0 || last.Usage != nil) && !yield(last, nil) {
		return nil
	}
	return err
}

// An answer is what is gathered of one until its end.
type answer struct {
	tools    calls
	usage    *pipeline.Usage // the newest: servers that tell it with each chunk count from the beginning
	finished bool
}

// read yields the text. Lines that are comments, or fields other than data, are
// passed over. Servers that close the stream after the last choice, without
// [DONE], are understood. more is false where nobody wants more.
func (a *answer) read(body io.Reader, yield func(pipeline.Delta, error) bool) (more bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), longestEvent)
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
	return true, errors.New("the answer broke off before its end")
}
