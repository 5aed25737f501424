package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Responses uses OpenAI's Responses API, which Azure and others serve too
// (platform.openai.com/docs/api-reference/responses-streaming). Unlike chat completions, it allows
// reasoning together with tools. The provider stores nothing: the client sends encrypted reasoning
// back with the tool calls that followed it. Models since gpt-5.6 do not reason unless the agent sets
// a reasoning effort, because the caller waits for the answer.
type Responses struct {
	URL       string // base URL without /responses, perhaps with a query; empty means OpenAIURL
	Key       media.Secret
	KeyHeader string       // header that holds the key; empty means Authorization with a bearer token
	Header    http.Header  // further headers of each request; may hold keys
	Model     string       // model of agents that name none; empty means OpenAIModel
	Client    *http.Client // nil means http.DefaultClient; must not have a Timeout
	// Parameters remembers refused parameters. All copies of a client should share it. If it is nil,
	// each request tries all parameters again.
	Parameters *ParameterCache
}

// OptionRules implements pipeline.RuledProvider.
func (o Responses) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"temperature", "max_tokens", "reasoning_effort", "options"},
		Reserved: []string{
			"model", "input", "instructions", "stream", "stream_options", "store", "include", "tools", "tool_choice", "parallel_tool_calls",
			"max_output_tokens", "temperature", "reasoning", "previous_response_id", "conversation", "background", "prompt",
		},
		Known: []string{
			"top_p", "service_tier", "text", "truncation", "metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user",
			"max_tool_calls", "top_logprobs",
		},
	}
}

// minOutputTokens is the smallest token limit that the API accepts.
const minOutputTokens = 16

// Reply implements pipeline.Model.
func (o Responses) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	e, err := newEndpoint("openai responses", cmp.Or(p.Model, o.Model, OpenAIModel), cmp.Or(o.URL, OpenAIURL), "responses")
	if err == nil {
		e.client = o.Client
		e.authorize(o.Header, o.KeyHeader, o.Key)
	}
	r := request{
		cache: o.Parameters, key: p.Options.ReasoningEffort, sequence: len(p.Messages),
		body: func(q quirks) object { return o.body(p, e, q) },
		learn: func(q quirks, refusal string, sent object) quirks {
			return learnResponses(q, refusal, sent, p.Options.ReasoningEffort == "")
		},
	}
	if needsNoReasoning(e.model) {
		r.initial = lowestEffort
	}
	return reply(ctx, e, err, r, new(responsesDecoder))
}

func (o Responses) body(p pipeline.Prompt, e endpoint, q quirks) object {
	b := object{"model": e.model, "instructions": p.Instructions, "input": responsesInput(p, e.origin()), "stream": true, "store": false}
	if p.MaxTokens > 0 {
		b["max_output_tokens"] = max(p.MaxTokens, minOutputTokens)
	}
	if p.Options.Temperature != nil && q&noTemperature == 0 {
		b["temperature"] = *p.Options.Temperature
	}
	effort := p.Options.ReasoningEffort
	if effort == "" && q&lowestEffort != 0 {
		effort = "none"
	}
	if effort != "" {
		b["reasoning"] = object{"effort": effort}
	}
	if effort != "none" && q&noEncryption == 0 {
		b["include"] = []string{"reasoning.encrypted_content"}
	}
	var tools []object
	for _, t := range p.Tools {
		f := functionTool(t, "parameters")
		f["type"], f["strict"] = "function", false
		tools = append(tools, f)
	}
	if tools != nil {
		b["tools"] = tools
	}
	if p.ToolChoice != "" {
		b["tool_choice"] = object{"type": "function", "name": p.ToolChoice}
		if q&noForcedTool != 0 {
			b["tool_choice"] = "required"
		}
	}
	addExtra(b, p.Options.Extra, o.OptionRules())
	return b
}

// learnResponses implements request.learn. defaultEffort means that the agent sets no reasoning effort.
func learnResponses(q quirks, refusal string, sent object, defaultEffort bool) quirks {
	switch {
	case has(refusal, sent, "temperature") && isUnsupported(refusal):
		return q | noTemperature
	case sent["include"] != nil && strings.Contains(refusal, "encrypted"):
		return q | noEncryption
	case has(refusal, sent, "reasoning") && defaultEffort:
		return q &^ lowestEffort
	case has(refusal, sent, "tool_choice"):
		return q | noForcedTool
	}
	return q
}

// A responsesExtra is the content of pipeline.ToolCall.Extra for this provider.
type responsesExtra struct {
	ID        string            `json:"id,omitempty"`        // ID of the call's output item
	Reasoning []json.RawMessage `json:"reasoning,omitempty"` // reasoning items that came before the call
}

func responsesInput(p pipeline.Prompt, origin string) []object {
	var all []object
	for _, l := range p.Messages {
		switch l.Role {
		case pipeline.RoleAgent:
			if l.Text != "" {
				all = append(all, object{"role": "assistant", "content": l.Text})
			}
			for _, c := range l.Calls {
				one := object{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": string(c.Arguments)}
				var extra responsesExtra
				if unseal(origin, c.Extra, &extra) {
					for _, item := range extra.Reasoning {
						var o object
						if json.Unmarshal(item, &o) == nil {
							all = append(all, o)
						}
					}
					one["id"] = extra.ID
				}
				all = append(all, one)
			}
		case pipeline.RoleTool:
			all = append(all, object{"type": "function_call_output", "call_id": l.CallID, "output": l.Text})
		case pipeline.RoleNote:
			all = append(all, object{"role": "user", "content": note(l.Text)})
		case pipeline.RoleCaller:
			all = append(all, object{"role": "user", "content": l.Text})
		}
	}
	if all == nil {
		all = append(all, object{"role": "user", "content": note(callAnswered)})
	}
	return all
}

// responsesEvent holds the fields of an event that this client uses.
type responsesEvent struct {
	Type        string          `json:"type"`
	Delta       json.RawMessage `json:"delta"`
	OutputIndex int             `json:"output_index"`
	Item        json.RawMessage `json:"item"`
	Response    struct {
		Error      *chatError `json:"error"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			InputTokens  int `json:"input_tokens"`
			OutputTokens int `json:"output_tokens"`
			Details      struct {
				CachedTokens int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
	Error   *chatError      `json:"error"`   // error events have either this field
	Message string          `json:"message"` // or the two fields message and code
	Code    json.RawMessage `json:"code"`
}

// responsesItem holds the fields of an output item that this client uses.
type responsesItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// responsesDecoder reads the events of the Responses API.
type responsesDecoder struct {
	reasoning []json.RawMessage // reasoning items since the last tool call
	size      int               // bytes of all reasoning items so far
}

func (d *responsesDecoder) decode(data []byte, a *answer) error {
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return errNotJSON(err)
	}
	if e.Error != nil {
		return a.fault(e.Error.status(), e.Error.Message)
	}
	switch e.Type {
	case "response.output_text.delta":
		a.text(e.delta())
	case "response.refusal.delta":
		a.refuse(e.delta())
	case "response.function_call_arguments.delta":
		return a.calls.add(piece{index: &e.OutputIndex, arguments: []byte(e.delta())})
	case "response.output_item.added", "response.output_item.done":
		return d.item(e, a)
	case "response.completed", "response.incomplete", "response.failed":
		return e.finish(a)
	case "error":
		return a.fault(chatError{Code: e.Code}.status(), e.Message)
	}
	return nil
}

func (e responsesEvent) delta() string {
	var text string
	if json.Unmarshal(e.Delta, &text) != nil {
		return ""
	}
	return text
}

func (d *responsesDecoder) item(e responsesEvent, a *answer) error {
	var i responsesItem
	if err := json.Unmarshal(e.Item, &i); err != nil {
		return errNotJSON(err)
	}
	done := e.Type == "response.output_item.done"
	switch {
	case i.Type == "message" && !done:
		a.separate()
	case i.Type == "reasoning" && done:
		if d.size += len(e.Item); d.size > maxArguments {
			return fmt.Errorf("%w: reasoning of more than %d bytes", pipeline.ErrUnusable, maxArguments)
		}
		d.reasoning = append(d.reasoning, e.Item)
	case i.Type == "function_call":
		p := piece{index: &e.OutputIndex, id: i.CallID, name: i.Name, arguments: []byte(i.Arguments), whole: true}
		if done {
			p.extra, d.reasoning = responsesExtra{i.ID, d.reasoning}, nil
		}
		return a.calls.add(p)
	}
	return nil
}

func (e responsesEvent) finish(a *answer) error {
	if u := e.Response.Usage; u != nil {
		a.usage = &pipeline.Usage{PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, CachedTokens: u.Details.CachedTokens}
	}
	a.complete, a.last = true, true
	switch {
	case e.Type == "response.failed" && e.Response.Error == nil:
		return a.fault(0, "")
	case e.Type == "response.failed":
		return a.fault(e.Response.Error.status(), e.Response.Error.Message)
	case e.Type != "response.incomplete":
		return nil
	case e.Response.Incomplete.Reason == "content_filter":
		a.end = pipeline.ErrContentFilter
	default:
		a.end = pipeline.ErrLength
	}
	return nil
}
