package fakeprovider

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// anthropicRequest holds the fields of a Messages API request that the fake provider uses.
type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens int                `json:"max_tokens"`
	System    json.RawMessage    `json:"system"`
	Messages  []anthropicMessage `json:"messages"`
	Stream    bool               `json:"stream"`
	Heat      *float64           `json:"temperature"`
	Thinking  struct {
		Type string `json:"type"`
	} `json:"thinking"`
	Tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	Choice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a string, or a list of blocks
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	Signature string          `json:"signature"`
}

func (m anthropicMessage) blocks() []anthropicBlock {
	var all []anthropicBlock
	if json.Unmarshal(m.Content, &all) != nil {
		return []anthropicBlock{{Type: "text", Text: parts(m.Content)}}
	}
	return all
}

// anthropic is the Messages API. It answers with or without server-sent events.
type anthropic struct{}

func (anthropic) read(_ *http.Request, body []byte) (question, error) {
	var ask anthropicRequest
	if err := json.Unmarshal(body, &ask); err != nil || ask.MaxTokens <= 0 {
		return question{}, invalid("the body must be JSON with max_tokens")
	}
	q := question{
		model: ask.Model, messages: []Message{{Role: "system", Content: parts(ask.System)}}, whole: !ask.Stream,
		reasons: ask.Thinking.Type == "adaptive" || ask.Thinking.Type == "enabled",
	}
	for _, m := range ask.Messages {
		for _, b := range m.blocks() {
			switch b.Type {
			case "text":
				q.messages = append(q.messages, Message{Role: m.Role, Content: b.Text})
			case "tool_use":
				q.messages = append(q.messages, Message{Role: m.Role})
			case "tool_result":
				q.messages = append(q.messages, Message{Role: "tool", Content: parts(b.Content)})
			}
		}
	}
	for _, t := range ask.Tools {
		q.tools = append(q.tools, tool{t.Name, t.Schema})
	}
	if ask.Choice.Type == "tool" {
		q.forced = ask.Choice.Name
	}
	if err := ask.checkModel(); err != nil {
		return q, err
	}
	return q, ask.checkMessages(q.reasons)
}

// checkModel returns the error of a newer model for parameters that it does not support.
func (ask anthropicRequest) checkModel() error {
	is := func(names ...string) bool {
		for _, n := range names {
			if strings.HasPrefix(ask.Model, "claude-"+n) {
				return true
			}
		}
		return false
	}
	switch {
	case ask.Heat != nil && is("haiku-5", "sonnet-5", "opus-5", "fable"):
		return invalid("`temperature` is deprecated for this model.")
	case ask.Thinking.Type == "disabled" && is("opus-5-5", "fable"):
		return invalid(`"thinking.type.disabled" is not supported for this model.`)
	case ask.Thinking.Type == "disabled" && is("sonnet-5-5"):
		return invalid(`"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools" instead.`)
	case ask.Choice.Type == "tool" && is("sonnet-5-5"):
		return invalid("tool_choice: forced tool use is not supported for this model.")
	}
	return nil
}

// checkMessages checks the order of the roles and blocks. If reasons is set, the calls of the turn in progress must
// come with the reasoning before them.
func (ask anthropicRequest) checkMessages(reasons bool) error {
	role, open := "assistant", map[string]bool{}
	for i, m := range ask.Messages {
		if m.Role == role {
			return invalid("messages: roles must alternate between \"user\" and \"assistant\"")
		}
		role = m.Role
		if err := m.check(open); err != nil {
			return err
		}
		if role == "user" && len(open) > 0 {
			return invalid("`tool_use` ids were found without `tool_result` blocks immediately after")
		}
		inTurn := i == len(ask.Messages)-2 && !ask.Messages[i+1].has("text")
		if reasons && inTurn && m.has("tool_use") && m.blocks()[0].Signature != signature("thoughts") {
			return invalid("Expected `thinking` or `redacted_thinking`, but found `" + m.blocks()[0].Type + "`")
		}
	}
	if role != "user" {
		return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

// isCallID reports whether an ID has only accepted characters.
func isCallID(id string) bool {
	return id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// check checks the blocks of a message. It updates open, which holds the IDs of the calls without a result.
func (m anthropicMessage) check(open map[string]bool) error {
	text := false
	for _, b := range m.blocks() {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
			return invalid("messages: text content blocks must be non-empty")
		case b.Type == "tool_use" && !isCallID(b.ID):
			return invalid("messages.content.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
		case b.Type == "tool_use":
			open[b.ID] = true
		case b.Type == "tool_result" && (text || !open[b.ToolUseID]):
			return invalid("`tool_result` blocks must come first and have a corresponding `tool_use` block in the previous message")
		case b.Type == "tool_result":
			delete(open, b.ToolUseID)
		}
		text = text || b.Type == "text"
	}
	return nil
}

func (m anthropicMessage) has(kind string) bool {
	return slices.ContainsFunc(m.blocks(), func(b anthropicBlock) bool { return b.Type == kind })
}

func (anthropic) writer(w http.ResponseWriter, q question) answerWriter {
	out := &anthropicWriter{w: w, q: q, stop: "end_turn"}
	if q.whole {
		return &anthropicWhole{anthropicWriter: out}
	}
	return out
}

// anthropicWriter writes the events of a message.
type anthropicWriter struct {
	w     http.ResponseWriter
	q     question
	index int    // index of the block in progress
	open  bool   // a block is in progress
	stop  string // stop reason
}

func (a *anthropicWriter) begin() {
	a.w.Header().Set("Content-Type", "text/event-stream")
	u := usage{prompt: countWords(a.q.messages), cached: a.q.cached()}
	typedEvent(a.w, "message_start", object{"message": a.message([]any{}, u)})
	typedEvent(a.w, "ping", object{})
	if a.q.reasons {
		a.start(object{"type": "thinking", "thinking": "", "signature": ""})
		a.delta(object{"type": "thinking_delta", "thinking": "hm"})
		a.delta(object{"type": "signature_delta", "signature": signature("thoughts")})
		a.endBlock()
	}
}

func (a *anthropicWriter) message(content []any, u usage) object {
	return object{
		"id": "msg_fake", "type": "message", "role": "assistant", "model": a.q.model, "content": content, "stop_reason": nil,
		"stop_sequence": nil, "usage": a.usage(u),
	}
}

func (*anthropicWriter) usage(u usage) object {
	return object{
		"input_tokens": u.prompt - u.cached, "output_tokens": u.completion, "cache_read_input_tokens": u.cached, "cache_creation_input_tokens": 0,
	}
}

func (a *anthropicWriter) start(block object) {
	a.open = true
	typedEvent(a.w, "content_block_start", object{"index": a.index, "content_block": block})
}

func (a *anthropicWriter) delta(delta object) {
	typedEvent(a.w, "content_block_delta", object{"index": a.index, "delta": delta})
}

func (a *anthropicWriter) endBlock() {
	if a.open {
		typedEvent(a.w, "content_block_stop", object{"index": a.index})
		a.index++
		a.open = false
	}
}

func (a *anthropicWriter) text(word string) {
	if !a.open {
		a.start(object{"type": "text", "text": ""})
	}
	a.delta(object{"type": "text_delta", "text": word})
}

// refuse writes the word as text: at Anthropic only the stop reason marks a refusal.
func (a *anthropicWriter) refuse(word string) { a.text(word) }

func (a *anthropicWriter) call(id, name, arguments string) {
	a.endBlock()
	a.stop = "tool_use"
	a.start(object{"type": "tool_use", "id": "toolu_" + id, "name": name, "input": object{}})
	half := len(arguments) / 2
	for _, part := range []string{"", arguments[:half], arguments[half:]} {
		a.delta(object{"type": "input_json_delta", "partial_json": part})
	}
}

func (a *anthropicWriter) end(f Finish, u usage) {
	a.endBlock()
	typedEvent(a.w, "message_delta", object{"delta": a.stopped(f), "usage": a.usage(u)})
	typedEvent(a.w, "message_stop", object{})
}

// stopped returns the fields with the reason for the end of the message.
func (a *anthropicWriter) stopped(f Finish) object {
	delta := object{"stop_reason": a.stop, "stop_sequence": nil}
	switch f {
	case FinishLength:
		delta["stop_reason"] = "max_tokens"
	case FinishFilter, FinishRefusal:
		delta["stop_reason"] = "refusal"
		delta["stop_details"] = object{"type": "refusal", "category": nil, "explanation": "scripted"}
	case FinishStop:
	}
	return delta
}

// anthropicWhole writes a message as one JSON document.
type anthropicWhole struct {
	*anthropicWriter
	said  strings.Builder
	calls []any
}

func (a *anthropicWhole) begin()             { a.w.Header().Set("Content-Type", "application/json") }
func (a *anthropicWhole) text(word string)   { a.said.WriteString(word) }
func (a *anthropicWhole) refuse(word string) { a.text(word) }

func (a *anthropicWhole) call(id, name, arguments string) {
	a.stop = "tool_use"
	a.calls = append(a.calls, object{"type": "tool_use", "id": "toolu_" + id, "name": name, "input": json.RawMessage(arguments)})
}

func (a *anthropicWhole) end(f Finish, u usage) {
	var content []any
	if a.q.reasons {
		content = append(content, object{"type": "thinking", "thinking": "hm", "signature": signature("thoughts")})
	}
	m := a.message(append(append(content, object{"type": "text", "text": a.said.String()}), a.calls...), u)
	maps.Copy(m, a.stopped(f))
	writeJSON(a.w, m)
}
