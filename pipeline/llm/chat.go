package llm

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// chatMessages returns the messages of a chat completions request.
func chatMessages(p pipeline.Prompt, origin string, alternate bool) []object {
	m := []object{{"role": "system", "content": p.Instructions}}
	all := p.Messages
	if alternate {
		all = alternating(all)
	}
	for _, l := range all {
		c := object{"role": "user", "content": l.Text}
		switch l.Role {
		case pipeline.RoleAgent:
			c["role"] = "assistant"
			if len(l.Calls) > 0 {
				c["tool_calls"] = chatCalls(l.Calls, origin)
				if l.Text == "" {
					c["content"] = nil
				}
			}
		case pipeline.RoleTool:
			c["role"], c["tool_call_id"] = "tool", l.CallID
		case pipeline.RoleNote:
			c["content"] = note(l.Text)
		case pipeline.RoleCaller:
		}
		m = append(m, c)
	}
	return m
}

// alternating joins successive texts of the same role, so that the roles alternate. The caller's role comes first.
func alternating(all []pipeline.Message) []pipeline.Message {
	var out []pipeline.Message
	for _, m := range withUser(all) {
		if m.Role == pipeline.RoleNote {
			m.Role, m.Text = pipeline.RoleCaller, note(m.Text)
		}
		if n := len(out); n > 0 && m.Role != pipeline.RoleTool && out[n-1].Role == m.Role && len(out[n-1].Calls) == 0 {
			m.Text = strings.TrimSpace(out[n-1].Text + "\n" + m.Text)
			out = out[:n-1]
		}
		out = append(out, m)
	}
	return out
}

func chatCalls(calls []pipeline.ToolCall, origin string) []object {
	var all []object
	for _, call := range calls {
		c := object{
			"id": call.ID, "type": "function",
			"function": object{"name": call.Name, "arguments": string(call.Arguments)},
		}
		var extra json.RawMessage
		if unseal(origin, call.Extra, &extra) {
			c["extra_content"] = extra
		}
		all = append(all, c)
	}
	return all
}

func chatTools(tools []pipeline.Tool) []object {
	var all []object
	for _, t := range tools {
		all = append(all, object{"type": "function", "function": functionTool(t, "parameters")})
	}
	return all
}

// functionTool returns the JSON of a tool. schema is the name of the field for its parameters.
func functionTool(t pipeline.Tool, schema string) object {
	f := object{"name": t.Name}
	if t.Description != "" {
		f["description"] = t.Description
	}
	if len(t.Parameters) > 0 {
		f[schema] = t.Parameters
	}
	return f
}

// chatChunk holds the fields of a chunk that this client uses. It omits reasoning_content, which is
// not for the caller.
type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content string      `json:"content"`
			Refusal string      `json:"refusal"`
			Calls   []chatPiece `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		Details          struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error *chatError `json:"error"`
}

// chatPiece is a part of a tool call. Some servers send the arguments as an object instead of a string. Gemini sends
// its thought_signature in extra_content (ai.google.dev/gemini-api/docs/thought-signatures).
type chatPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
}

// chatError is an error within a stream. The code is an HTTP status or a word, depending on the server.
type chatError struct {
	Message string          `json:"message"`
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
}

// status returns the HTTP status of an error, or 0.
func (e chatError) status() int {
	var status int
	if json.Unmarshal(e.Code, &status) == nil && status >= 400 && status < 600 {
		return status
	}
	for _, raw := range []json.RawMessage{e.Code, e.Type} {
		var word string
		if json.Unmarshal(raw, &word) == nil && statusOf(word) != 0 {
			return statusOf(word)
		}
	}
	return 0
}

// statusOf returns the HTTP status for an error code of OpenAI or Anthropic, or 0 if it knows none
// (platform.openai.com/docs/guides/error-codes, platform.claude.com/docs/en/api/errors).
func statusOf(code string) int {
	switch code {
	case "invalid_request_error", "context_length_exceeded", "invalid_prompt", "string_above_max_length", "unsupported_parameter":
		return http.StatusBadRequest
	case "authentication_error", "invalid_api_key":
		return http.StatusUnauthorized
	case "billing_error", "insufficient_quota":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error", "model_not_found":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error", "rate_limit_exceeded":
		return http.StatusTooManyRequests
	case "timeout_error":
		return http.StatusGatewayTimeout
	case "overloaded_error":
		return statusOverloaded
	}
	return 0
}

// statusOverloaded is Anthropic's status of an overloaded API.
const statusOverloaded = 529

// chatDecoder reads the events of chat completions.
type chatDecoder struct{}

func (chatDecoder) decode(data []byte, a *answer) error {
	c, err := pipeline.DecodeJSON[chatChunk](data)
	if err != nil {
		return errNotJSON(err)
	}
	if c.Error != nil {
		return a.fault(c.Error.status(), c.Error.Message)
	}
	if u := c.Usage; u != nil {
		a.usage = &pipeline.Usage{PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, CachedTokens: u.Details.CachedTokens}
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := c.Choices[0]
	for _, p := range choice.Delta.Calls {
		one := piece{index: p.Index, id: p.ID, name: p.Function.Name, arguments: argument(p.Function.Arguments)}
		if len(p.Extra) > 0 && len(p.Extra) <= maxArguments && string(p.Extra) != "null" {
			one.extra = p.Extra
		}
		if err := a.calls.add(one); err != nil {
			return err
		}
	}
	a.text(choice.Delta.Content)
	a.refuse(choice.Delta.Refusal)
	switch strings.ToLower(choice.FinishReason) {
	case "":
		return nil
	case "length":
		a.end = pipeline.ErrLength
	case "content_filter":
		a.end = pipeline.ErrContentFilter
	}
	a.complete = true
	return nil
}

// argument returns a part of the arguments: the content of a JSON string, or the raw JSON of any other value.
func argument(raw json.RawMessage) []byte {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []byte(s) // JSON null becomes the empty string
	}
	return raw
}
