package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

type chatMessage struct {
	Role    string     `json:"role"`
	Content *string    `json:"content"` // null if the message has only tool calls
	Calls   []chatCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function chatFunc `json:"function"`
}

type chatFunc struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Arguments   string          `json:"arguments,omitempty"`
}

type chatTool struct {
	Type     string   `json:"type"`
	Function chatFunc `json:"function"`
}

type chatRequest struct {
	Model         string         `json:"model"`
	Messages      []chatMessage  `json:"messages"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options"`
	MaxTokens     int            `json:"max_tokens,omitempty"`            // most servers
	MaxCompletion int            `json:"max_completion_tokens,omitempty"` // OpenAI; its newer models reject max_tokens
	Tools         []chatTool     `json:"tools,omitempty"`
	ToolChoice    *chatTool      `json:"tool_choice,omitempty"`
	Parallel      bool           `json:"parallel_tool_calls,omitempty"`
}

func request(p pipeline.Prompt) chatRequest {
	r := chatRequest{
		Model: cmp.Or(p.Model, OpenAIModel), Messages: messages(p), Stream: true,
		StreamOptions: map[string]any{"include_usage": true}, MaxTokens: p.MaxTokens, Parallel: len(p.Tools) > 0,
	}
	for _, t := range p.Tools {
		r.Tools = append(r.Tools, chatTool{"function", chatFunc{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
	}
	if p.ToolChoice != "" {
		r.ToolChoice = &chatTool{"function", chatFunc{Name: p.ToolChoice}}
	}
	return r
}

// useMaxCompletion sends the token limit in OpenAI's field.
func (r *chatRequest) useMaxCompletion() { r.MaxTokens, r.MaxCompletion = 0, r.MaxTokens }

func messages(p pipeline.Prompt) []chatMessage {
	m := []chatMessage{{Role: "system", Content: &p.Instructions}}
	for _, l := range p.Messages {
		c := chatMessage{Role: "user", Content: &l.Text}
		switch l.Role {
		case pipeline.RoleAgent:
			c.Role = "assistant"
			for _, call := range l.Calls {
				c.Calls = append(c.Calls, chatCall{call.ID, "function", chatFunc{Name: call.Name, Arguments: string(call.Arguments)}})
			}
			if len(c.Calls) > 0 && l.Text == "" {
				c.Content = nil
			}
		case pipeline.RoleTool:
			c.Role, c.CallID = "tool", l.CallID
		case pipeline.RoleNote: // many chat templates allow only one system message, the first
			note := "[" + strings.Trim(l.Text, "[]") + "]"
			c.Content = &note
		case pipeline.RoleCaller:
		}
		m = append(m, c)
	}
	return m
}

// chatChunk holds the used fields of a chunk. reasoning_content is ignored: it is not for
// the caller.
type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content string      `json:"content"`
			Calls   []callPiece `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
	Error *chatError `json:"error"`
}

// chatError is the error of a started stream. Servers send an HTTP status or a word as the
// code.
type chatError struct {
	Message string          `json:"message"`
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
}

func (e chatError) err() error {
	var status int
	if json.Unmarshal(e.Code, &status) == nil && status >= 400 && status < 600 {
		return &pipeline.RefusedError{Status: status, Text: pipeline.Clean(e.Message)}
	}
	if string(e.Type) == `"invalid_request_error"` || string(e.Code) == `"context_length_exceeded"` {
		return &pipeline.RefusedError{Status: http.StatusBadRequest, Text: pipeline.Clean(e.Message)}
	}
	return errors.New(pipeline.Clean(e.Message))
}

// callPiece is a part of a tool call. Some servers omit the index or the id, or send the
// arguments as an object instead of a string.
type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func parseChunk(data []byte) (chatChunk, error) {
	var c chatChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("not JSON: %w", err)
	}
	if c.Error != nil {
		return c, c.Error.err()
	}
	return c, nil
}

func (c chatChunk) finished() bool { return len(c.Choices) > 0 && c.Choices[0].FinishReason != "" }

func (c chatChunk) toolCalls() []callPiece {
	if len(c.Choices) == 0 {
		return nil
	}
	return c.Choices[0].Delta.Calls
}

func (c chatChunk) text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.Content
}

// Limits of one answer.
const (
	maxCalls     = 64
	maxArguments = 256 << 10 // bytes
)

// calls assembles tool calls.
type calls []*call

type call struct {
	index     int // -1 if missing
	id, name  string
	arguments []byte
}

func (cs *calls) add(pieces []callPiece) error {
	for _, p := range pieces {
		c := cs.find(p)
		if c == nil {
			if len(*cs) == maxCalls {
				return fmt.Errorf("%w: more than %d tool calls", pipeline.ErrUnusable, maxCalls)
			}
			c = &call{index: -1}
			if p.Index != nil {
				c.index = *p.Index
			}
			*cs = append(*cs, c)
		}
		c.id, c.name = cmp.Or(c.id, p.ID), cmp.Or(c.name, p.Function.Name)
		c.arguments = append(c.arguments, argument(p.Function.Arguments)...)
		if len(c.arguments) > maxArguments {
			return fmt.Errorf("%w: tool call %q: arguments of more than %d bytes", pipeline.ErrUnusable, pipeline.Clean(c.name), maxArguments)
		}
	}
	return nil
}

// argument returns a part of the arguments, from a string or as raw JSON.
func argument(raw json.RawMessage) []byte {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []byte(s) // null becomes the empty string
	}
	return raw
}

// find returns the call that a piece continues, or nil if it starts a new one.
func (cs *calls) find(p callPiece) *call {
	for _, c := range *cs {
		sameIndex := p.Index != nil && c.index == *p.Index
		if p.ID != "" && c.id == p.ID || sameIndex && (p.ID == "" || c.id == "") {
			return c
		}
	}
	if n := len(*cs); n > 0 && p.Index == nil && p.ID == "" && p.Function.Name == "" {
		return (*cs)[n-1]
	}
	return nil
}

// complete returns the assembled calls.
func (cs *calls) complete() ([]pipeline.ToolCall, error) {
	var all []pipeline.ToolCall
	for i, c := range *cs {
		args := cmp.Or(string(bytes.TrimSpace(c.arguments)), "{}")
		if c.name == "" {
			return nil, fmt.Errorf("%w: tool call without a name", pipeline.ErrUnusable)
		}
		if args[0] != '{' || !json.Valid([]byte(args)) {
			return nil, fmt.Errorf("%w: tool call %q: arguments must be a JSON object", pipeline.ErrUnusable, pipeline.Clean(c.name))
		}
		all = append(all, pipeline.ToolCall{
			ID: cmp.Or(c.id, fmt.Sprintf("call_%d", i)), Name: c.name, Arguments: json.RawMessage(args),
		})
	}
	return all, nil
}
