package fakeprovider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// chatRequest holds the fields of a chat completions request that the fake provider uses.
type chatRequest struct {
	Model         string          `json:"model"`
	Messages      []chatMessage   `json:"messages"`
	Stream        bool            `json:"stream"`
	MaxTokens     json.RawMessage `json:"max_tokens"`
	Effort        string          `json:"reasoning_effort"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Choice json.RawMessage `json:"tool_choice"` // an object, or a word
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		Extra struct {
			Google struct {
				Signature string `json:"thought_signature"`
			} `json:"google"`
		} `json:"extra_content"`
	} `json:"tool_calls"`
}

// chat is the chat completions API. It answers with or without server-sent events.
type chat struct{ request chatRequest }

func (c *chat) read(_ *http.Request, body []byte) (question, error) {
	ask := &c.request
	if err := json.Unmarshal(body, ask); err != nil || len(ask.Messages) == 0 {
		return question{}, invalid("the body must be JSON with messages")
	}
	q := question{model: ask.Model}
	for _, m := range ask.Messages {
		q.messages = append(q.messages, Message{Role: m.Role, Content: parts(m.Content)})
	}
	for _, t := range ask.Tools {
		q.tools = append(q.tools, tool{t.Function.Name, t.Function.Parameters})
	}
	var choice struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case json.Unmarshal(ask.Choice, &choice) == nil:
		q.forced = choice.Function.Name
	case string(ask.Choice) == `"required"` && len(q.tools) > 0:
		q.forced = q.tools[0].name
	}
	return q, c.check()
}

// check returns the errors of OpenAI's models and of Gemini's OpenAI-compatible API for invalid requests.
func (c *chat) check() error {
	ask := c.request
	switch {
	case isReasoningModel(ask.Model) && len(ask.Tools) > 0 && ask.Effort != "none":
		return invalid("Function tools with reasoning_effort are not supported for " + ask.Model + " in /v1/chat/completions. " +
			"To use function tools, use /v1/responses or set reasoning_effort to 'none'.")
	case isReasoningModel(ask.Model) && len(ask.MaxTokens) > 0:
		return invalid("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case strings.HasPrefix(ask.Model, "gpt-4") && ask.Effort != "":
		return invalid("Unrecognized request argument supplied: reasoning_effort")
	case !strings.HasPrefix(ask.Model, "gemini"):
		return nil
	}
	for i := len(ask.Messages) - 1; i >= 0 && ask.Messages[i].Role != "user"; i-- {
		calls := ask.Messages[i].Calls
		if len(calls) > 0 && calls[0].Extra.Google.Signature != signature(calls[0].Function.Name) {
			return errUnsigned
		}
	}
	return nil
}

const errUnsigned = invalid("Function call is missing a thought_signature in functionCall parts.")

func (c *chat) writer(w http.ResponseWriter, q question) answerWriter {
	out := &chatWriter{w: w, model: q.model, signs: strings.HasPrefix(q.model, "gemini")}
	out.includeUsage = c.request.StreamOptions.IncludeUsage
	if !c.request.Stream {
		return &chatWhole{chatWriter: out}
	}
	return out
}

// chatWriter writes an answer in chunks.
type chatWriter struct {
	w            http.ResponseWriter
	model        string
	signs        bool // tool calls carry a signature
	includeUsage bool
	called       bool
}

func (c *chatWriter) chunk(fields object) {
	all := object{"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 0, "model": c.model, "choices": []any{}}
	maps.Copy(all, fields)
	event(c.w, all)
}

func (c *chatWriter) delta(delta object, finish any) {
	c.chunk(object{"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
}

func (c *chatWriter) begin() {
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.delta(object{"role": "assistant", "content": ""}, nil)
}

func (c *chatWriter) text(word string)   { c.delta(object{"content": word}, nil) }
func (c *chatWriter) refuse(word string) { c.delta(object{"refusal": word}, nil) }

// call writes a tool call in two parts, so that the client must join them.
func (c *chatWriter) call(id, name, arguments string) {
	c.called = true
	half := len(arguments) / 2
	one := chatCall(id, name, arguments[:half], c.signs)
	one["index"] = 0
	c.delta(object{"tool_calls": []any{one}}, nil)
	c.delta(object{"tool_calls": []any{object{"index": 0, "function": object{"arguments": arguments[half:]}}}}, nil)
}

func chatCall(id, name, arguments string, signs bool) object {
	one := object{"id": id, "type": "function", "function": object{"name": name, "arguments": arguments}}
	if signs {
		one["extra_content"] = object{"google": object{"thought_signature": signature(name)}}
	}
	return one
}

func (c *chatWriter) end(f Finish, u usage) {
	c.delta(object{}, chatFinish(f, c.called))
	if c.includeUsage {
		c.chunk(object{"usage": chatUsage(u)})
	}
	_, _ = fmt.Fprint(c.w, "data: [DONE]\n\n")
}

func chatFinish(f Finish, called bool) string {
	switch {
	case f == FinishLength || f == FinishFilter:
		return string(f)
	case called:
		return "tool_calls"
	}
	return "stop"
}

func chatUsage(u usage) object {
	return object{
		"prompt_tokens": u.prompt, "completion_tokens": u.completion, "total_tokens": u.prompt + u.completion,
		"prompt_tokens_details": object{"cached_tokens": u.cached},
	}
}

// chatWhole writes an answer as one JSON document.
type chatWhole struct {
	*chatWriter
	said, refused strings.Builder
	calls         []any
}

func (c *chatWhole) begin()             { c.w.Header().Set("Content-Type", "application/json") }
func (c *chatWhole) text(word string)   { c.said.WriteString(word) }
func (c *chatWhole) refuse(word string) { c.refused.WriteString(word) }

func (c *chatWhole) call(id, name, arguments string) {
	c.calls = append(c.calls, chatCall(id, name, arguments, c.signs))
}

func (c *chatWhole) end(f Finish, u usage) {
	message := object{"role": "assistant", "content": c.said.String(), "refusal": nil}
	if c.refused.Len() > 0 {
		message["content"], message["refusal"] = nil, c.refused.String()
	}
	if len(c.calls) > 0 {
		message["tool_calls"] = c.calls
	}
	writeJSON(c.w, object{
		"id": "chatcmpl-fake", "object": "chat.completion", "created": 0, "model": c.model, "usage": chatUsage(u),
		"choices": []any{object{"index": 0, "message": message, "finish_reason": chatFinish(f, len(c.calls) > 0)}},
	})
}
