package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Defaults of Anthropic. The model is the fastest one
// (platform.claude.com/docs/en/models/haiku-5-5/overview).
const (
	AnthropicURL   = "https://api.anthropic.com"
	AnthropicModel = "claude-haiku-5-5"
)

const (
	anthropicVersion = "2023-06-01"
	// The API requires a token limit. Reasoning tokens count toward it.
	anthropicTokens, anthropicReasoningTokens = 4096, 16384
)

// Anthropic uses the Messages API (platform.claude.com/docs/en/api/messages-streaming). Requests ask for caching of
// the instructions. If the agent sets no reasoning effort, requests disable reasoning, because the caller waits;
// models that always reason get the lowest effort. A refusal by the safety classifiers is pipeline.ErrContentFilter.
type Anthropic struct {
	URL    string // base URL without /v1/messages, perhaps with a query; empty means AnthropicURL
	Key    media.Secret
	Header http.Header  // further headers of each request; may hold keys
	Model  string       // model of agents that name none; empty means AnthropicModel
	Client *http.Client // nil means http.DefaultClient; must not have a Timeout
	// Parameters remembers refused parameters. All copies of a client should share it. If it is nil,
	// each request tries all parameters again.
	Parameters *ParameterCache
}

// OptionRules implements pipeline.RuledProvider.
func (o Anthropic) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"temperature", "max_tokens", "reasoning_effort", "options"},
		Reserved: []string{
			"model", "messages", "system", "max_tokens", "stream", "tools", "tool_choice", "temperature", "thinking", "output_config",
		},
		Known: []string{"top_p", "top_k", "stop_sequences", "service_tier", "metadata", "inference_geo", "speed"},
	}
}

// Reply implements pipeline.Model.
func (o Anthropic) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	e, err := newEndpoint("anthropic", cmp.Or(p.Model, o.Model, AnthropicModel), cmp.Or(o.URL, AnthropicURL), "v1", "messages")
	if err == nil {
		e.client = o.Client
		e.authorize(o.Header, "X-Api-Key", o.Key)
		e.header.Set("Anthropic-Version", anthropicVersion)
	}
	return reply(ctx, e, err, request{
		cache: o.Parameters, key: p.Options.ReasoningEffort, sequence: len(p.Messages),
		body:  func(q quirks) object { return o.body(p, e, q) },
		learn: learnAnthropic,
	}, new(anthropicDecoder))
}

func (o Anthropic) body(p pipeline.Prompt, e endpoint, q quirks) object {
	effort := anthropicEffort(p)
	b := object{"model": e.model, "messages": anthropicMessages(p.Messages, e.origin()), "stream": true}
	if b["max_tokens"] = cmp.Or(p.MaxTokens, anthropicTokens); p.MaxTokens == 0 && effort != "" {
		b["max_tokens"] = anthropicReasoningTokens
	}
	if strings.TrimSpace(p.Instructions) != "" {
		b["system"] = []object{{"type": "text", "text": p.Instructions, "cache_control": object{"type": "ephemeral"}}}
	}
	addThinking(b, effort, q)
	if t := p.Options.Temperature; t != nil && q&noTemperature == 0 {
		b["temperature"] = min(*t, 1) // the API accepts no larger value
	}
	if len(p.Tools) > 0 {
		b["tools"] = anthropicTools(p.Tools)
	}
	if p.ToolChoice != "" && q&noForcedTool == 0 {
		b["tool_choice"] = object{"type": "tool", "name": p.ToolChoice}
	}
	addExtra(b, p.Options.Extra, o.OptionRules())
	return b
}

// addThinking sets the reasoning effort of a request. An empty effort means as little as possible.
func addThinking(b object, effort string, q quirks) {
	switch {
	case effort != "":
		b["thinking"], b["output_config"] = object{"type": "adaptive"}, object{"effort": effort}
	case q&alwaysThinking == 0 && q&thinksBetweenTools != 0:
		b["thinking"] = object{"type": "between_tools"}
	case q&alwaysThinking == 0:
		b["thinking"] = object{"type": "disabled"}
	case q&noEffort == 0:
		b["output_config"] = object{"effort": "low"}
	}
}

func anthropicTools(tools []pipeline.Tool) []object {
	var all []object
	for _, t := range tools {
		f := functionTool(t, "input_schema")
		if f["input_schema"] == nil {
			f["input_schema"] = object{"type": "object"}
		}
		all = append(all, f)
	}
	return all
}

// anthropicEffort returns the reasoning effort, or "" for none. It returns "" for a prompt with a
// ToolChoice, because a model that reasons cannot be forced to call a certain tool.
func anthropicEffort(p pipeline.Prompt) string {
	switch effort := p.Options.ReasoningEffort; {
	case p.ToolChoice != "", effort == "none":
		return ""
	case effort == "minimal":
		return "low"
	default:
		return effort
	}
}

// learnAnthropic implements request.learn.
func learnAnthropic(q quirks, refusal string, sent object) quirks {
	thinking, _ := sent["thinking"].(object)
	switch {
	case sent["tool_choice"] != nil && (strings.Contains(refusal, "tool_choice") || strings.Contains(refusal, "forced tool")):
		return q | noForcedTool
	case has(refusal, sent, "temperature") && isUnsupported(refusal):
		return q | noTemperature
	case thinking["type"] == "disabled" && strings.Contains(refusal, "between_tools"):
		return q | thinksBetweenTools
	case has(refusal, sent, "thinking") && thinking["type"] != "adaptive":
		return q | alwaysThinking
	case thinking == nil && sent["output_config"] != nil && strings.Contains(refusal, "effort"):
		return q | noEffort
	}
	return q
}

// anthropicExtra is the content of pipeline.ToolCall.Extra for this provider.
type anthropicExtra struct {
	Thinking []anthropicBlock `json:"thinking"` // reasoning blocks that came before the call
}

// anthropicBlock holds the fields of a content block that this client uses.
type anthropicBlock struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Text      string          `json:"text,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"` // only of blocks of type redacted_thinking
}

// anthropicMessages returns the messages in the order that the API requires. Roles alternate, and the first and the
// last message are the user's. All results of a message's calls stand in the next message, before any text.
func anthropicMessages(all []pipeline.Message, origin string) []object {
	var out []object
	add := func(role string, blocks ...object) {
		if n := len(out); n > 0 && out[n-1]["role"] == role {
			before, _ := out[n-1]["content"].([]object)
			out[n-1]["content"] = append(before, blocks...)
			return
		}
		out = append(out, object{"role": role, "content": blocks})
	}
	all = withUser(all)
	turn := lastUser(all)
	for i, l := range all {
		switch l.Role {
		case pipeline.RoleAgent:
			add("assistant", agentBlocks(l, origin, i > turn)...)
		case pipeline.RoleTool:
			add("user", object{"type": "tool_result", "tool_use_id": callID(l.CallID), "content": l.Text})
		case pipeline.RoleNote:
			add("user", object{"type": "text", "text": note(l.Text)})
		default:
			add("user", object{"type": "text", "text": l.Text})
		}
	}
	return out
}

// agentBlocks returns the content blocks of an agent's message. It includes reasoning only if inTurn
// is set: the API requires reasoning only for calls of the turn in progress.
func agentBlocks(l pipeline.Message, origin string, inTurn bool) []object {
	var calls, first []object
	for i, c := range l.Calls {
		var extra anthropicExtra
		var thoughts []object
		if inTurn && unseal(origin, c.Extra, &extra) {
			for _, b := range extra.Thinking {
				thoughts = append(thoughts, b.object())
			}
		}
		if i == 0 {
			first, thoughts = thoughts, nil
		}
		calls = append(append(calls, thoughts...), object{"type": "tool_use", "id": callID(c.ID), "name": c.Name, "input": c.Arguments})
	}
	if strings.TrimSpace(l.Text) != "" {
		first = append(first, object{"type": "text", "text": l.Text})
	}
	return append(first, calls...)
}

// object returns a reasoning block exactly as it was received.
func (b anthropicBlock) object() object {
	if b.Type == "redacted_thinking" {
		return object{"type": b.Type, "data": b.Data}
	}
	thinking := ""
	if b.Thinking != nil {
		thinking = *b.Thinking
	}
	return object{"type": b.Type, "thinking": thinking, "signature": b.Signature}
}

// callID replaces characters of a call ID that the API does not accept. The ID may come from another provider.
func callID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, cmp.Or(id, "_"))
}

// withUser drops empty messages. If the agent's message is then the first or the last one, it adds a note before or
// after it. If no message is left, it returns one note.
func withUser(all []pipeline.Message) []pipeline.Message {
	all = slices.DeleteFunc(slices.Clone(all), func(m pipeline.Message) bool {
		return m.Role != pipeline.RoleTool && len(m.Calls) == 0 && strings.TrimSpace(m.Text) == ""
	})
	if len(all) == 0 || all[0].Role == pipeline.RoleAgent {
		all = slices.Insert(all, 0, pipeline.Message{Role: pipeline.RoleNote, Text: callAnswered})
	}
	if all[len(all)-1].Role == pipeline.RoleAgent {
		all = append(all, pipeline.Message{Role: pipeline.RoleNote, Text: callerSilent})
	}
	return all
}

// lastUser returns the index of the last caller message or note, or -1.
func lastUser(all []pipeline.Message) int {
	for i, m := range slices.Backward(all) {
		if m.Role == pipeline.RoleCaller || m.Role == pipeline.RoleNote {
			return i
		}
	}
	return -1
}

// anthropicEvent holds the fields of an event that this client uses.
type anthropicEvent struct {
	Type    string         `json:"type"`
	Index   int            `json:"index"`
	Block   anthropicBlock `json:"content_block"`
	Message struct {
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	Usage anthropicUsage `json:"usage"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		JSON       string `json:"partial_json"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		StopReason string `json:"stop_reason"`
		Details    struct {
			Explanation string `json:"explanation"`
		} `json:"stop_details"`
	} `json:"delta"`
	Error *chatError `json:"error"`
}

// anthropicUsage holds the totals of the answer so far. InputTokens excludes cached tokens.
type anthropicUsage struct {
	InputTokens         int `json:"input_tokens"`
	OutputTokens        int `json:"output_tokens"`
	CacheReadTokens     int `json:"cache_read_input_tokens"`
	CacheCreationTokens int `json:"cache_creation_input_tokens"`
}

// anthropicDecoder reads the events of the Messages API.
type anthropicDecoder struct {
	usage    anthropicUsage
	thoughts []anthropicBlock // reasoning blocks since the last tool call
	size     int              // bytes of all reasoning blocks so far
}

func (d *anthropicDecoder) decode(data []byte, a *answer) error {
	var e anthropicEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return errNotJSON(err)
	}
	switch e.Type {
	case "message_start":
		d.addUsage(e.Message.Usage, a)
	case "content_block_start":
		return d.start(e, a)
	case "content_block_delta":
		return d.delta(e, a)
	case "message_delta":
		d.addUsage(e.Usage, a)
		d.stop(e, a)
	case "message_stop":
		a.complete, a.last = true, true
	case "error":
		if e.Error == nil {
			return a.fault(0, "")
		}
		return a.fault(e.Error.status(), e.Error.Message)
	}
	return nil
}

func (d *anthropicDecoder) start(e anthropicEvent, a *answer) error {
	switch e.Block.Type {
	case "text":
		a.separate()
		a.text(e.Block.Text)
	case "thinking", "redacted_thinking":
		d.thoughts = append(d.thoughts, e.Block)
		return d.grow(len(e.Block.Data))
	case "tool_use":
		p := piece{index: &e.Index, id: e.Block.ID, name: e.Block.Name}
		if input := bytes.TrimSpace(e.Block.Input); string(input) != "{}" && string(input) != "null" {
			p.arguments = input
		}
		if d.thoughts != nil {
			p.extra, d.thoughts = anthropicExtra{d.thoughts}, nil
		}
		return a.calls.add(p)
	}
	return nil
}

func (d *anthropicDecoder) delta(e anthropicEvent, a *answer) error {
	switch e.Delta.Type {
	case "text_delta":
		a.text(e.Delta.Text)
	case "input_json_delta":
		return a.calls.add(piece{index: &e.Index, arguments: []byte(e.Delta.JSON)})
	case "thinking_delta", "signature_delta":
		n := len(d.thoughts)
		if n == 0 {
			return nil
		}
		last := &d.thoughts[n-1]
		if e.Delta.Thinking != "" {
			text := e.Delta.Thinking
			if last.Thinking != nil {
				text = *last.Thinking + text
			}
			last.Thinking = &text
		}
		last.Signature += e.Delta.Signature
		return d.grow(len(e.Delta.Thinking) + len(e.Delta.Signature))
	}
	return nil
}

// grow adds n bytes to the size of the reasoning. It returns an error above the limits.
func (d *anthropicDecoder) grow(n int) error {
	if d.size += n; d.size > maxArguments || len(d.thoughts) > maxCalls {
		return fmt.Errorf("%w: reasoning of more than %d bytes or %d blocks", pipeline.ErrUnusable, maxArguments, maxCalls)
	}
	return nil
}

func (d *anthropicDecoder) stop(e anthropicEvent, a *answer) {
	switch e.Delta.StopReason {
	case "":
		return
	case "max_tokens", "model_context_window_exceeded":
		a.end = pipeline.ErrLength
	case "refusal":
		a.end = pipeline.ErrContentFilter
		if why := a.redact(e.Delta.Details.Explanation); why != "" {
			a.end = fmt.Errorf("%w: %s", pipeline.ErrContentFilter, why)
		}
	}
	a.complete = true
}

func (d *anthropicDecoder) addUsage(u anthropicUsage, a *answer) {
	d.usage = anthropicUsage{
		max(d.usage.InputTokens, u.InputTokens), max(d.usage.OutputTokens, u.OutputTokens),
		max(d.usage.CacheReadTokens, u.CacheReadTokens), max(d.usage.CacheCreationTokens, u.CacheCreationTokens),
	}
	a.usage = &pipeline.Usage{
		PromptTokens:     d.usage.InputTokens + d.usage.CacheReadTokens + d.usage.CacheCreationTokens,
		CompletionTokens: d.usage.OutputTokens, CachedTokens: d.usage.CacheReadTokens,
	}
}
