package fakeprovider

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
)

// responsesRequest holds the fields of a Responses API request that the fake provider uses.
type responsesRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"` // a string, or a list of items
	Stream       bool            `json:"stream"`
	Reasoning    struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Tools []struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tools"`
	Choice json.RawMessage `json:"tool_choice"` // an object, or a word
}

// responsesInput is an item of the input.
type responsesInput struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	CallID    string          `json:"call_id"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
}

// linked is the suffix of a tool call's ID if the model reasoned before the call. The fake provider accepts such a call
// in the input only after its reasoning item.
const linked = "_reasoned"

// responses is the Responses API. It answers with or without server-sent events.
type responses struct{}

func (responses) read(_ *http.Request, body []byte) (question, error) {
	var ask responsesRequest
	if err := json.Unmarshal(body, &ask); err != nil || len(ask.Input) == 0 {
		return question{}, invalid("the body must be JSON with input")
	}
	q := question{
		model: ask.Model, messages: []Message{{Role: "system", Content: ask.Instructions}}, whole: !ask.Stream,
		reasons: isReasoningModel(ask.Model) && ask.Reasoning.Effort != "none",
	}
	var items []responsesInput
	if json.Unmarshal(ask.Input, &items) != nil {
		items = []responsesInput{{Role: "user", Content: ask.Input}}
	}
	if len(items) == 0 {
		return q, invalid("Missing required parameter: 'input'.")
	}
	for _, t := range ask.Tools {
		q.tools = append(q.tools, tool{t.Name, t.Parameters})
	}
	var choice struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(ask.Choice, &choice) == nil {
		q.forced = choice.Name
	}
	return q, q.addItems(items)
}

// addItems adds the items of the input to the messages. Each result must follow a call with the same ID.
func (q *question) addItems(items []responsesInput) error {
	calls := map[string]bool{}
	for i, item := range items {
		switch item.Type {
		case "function_call":
			if strings.HasSuffix(item.ID, linked) && (i == 0 || items[i-1].Encrypted != signature(item.Name)) {
				return invalid("Item '" + item.ID + "' of type 'function_call' was provided without its required 'reasoning' item.")
			}
			calls[item.CallID] = true
			q.messages = append(q.messages, Message{Role: "assistant"})
		case "function_call_output":
			if !calls[item.CallID] {
				return invalid("No tool call found for function call output with call_id " + item.CallID + ".")
			}
			q.messages = append(q.messages, Message{Role: "tool", Content: parts(item.Output)})
		case "", "message":
			q.messages = append(q.messages, Message{Role: item.Role, Content: parts(item.Content)})
		}
	}
	return nil
}

func (responses) writer(w http.ResponseWriter, q question) answerWriter {
	return &responsesWriter{w: w, model: q.model, reasons: q.reasons, whole: q.whole}
}

// responsesWriter writes the events of a response, or the response as one JSON document.
type responsesWriter struct {
	w        http.ResponseWriter
	model    string
	reasons  bool
	whole    bool
	sequence int
	output   []any           // complete output items
	kind     string          // kind of the part in progress: output_text or refusal; empty if there is none
	said     strings.Builder // text of the part in progress
}

func (r *responsesWriter) event(name string, fields object) {
	if r.whole {
		return
	}
	fields["sequence_number"] = r.sequence
	r.sequence++
	typedEvent(r.w, name, fields)
}

func (r *responsesWriter) response(status string, more object) object {
	all := object{
		"id": "resp_fake", "object": "response", "created_at": 0, "status": status, "model": r.model, "error": nil,
		"incomplete_details": nil, "output": r.output, "usage": nil, "parallel_tool_calls": true, "tools": []any{},
	}
	if r.output == nil {
		all["output"] = []any{}
	}
	maps.Copy(all, more)
	return object{"response": all}
}

func (r *responsesWriter) begin() {
	if r.w.Header().Set("Content-Type", "text/event-stream"); r.whole {
		r.w.Header().Set("Content-Type", "application/json")
	}
	r.event("response.created", r.response("in_progress", nil))
	r.event("response.in_progress", r.response("in_progress", nil))
}

// at returns fields with the IDs of the part in progress added.
func (r *responsesWriter) at(fields object) object {
	all := object{"item_id": "msg_fake", "output_index": len(r.output), "content_index": 0}
	maps.Copy(all, fields)
	return all
}

func (r *responsesWriter) part(kind, word string) {
	if r.kind == "" {
		r.kind = kind
		r.event("response.output_item.added", object{"output_index": len(r.output), "item": r.message("in_progress", []any{})})
		r.event("response.content_part.added", r.at(object{"part": r.content("")}))
	}
	r.said.WriteString(word)
	r.event("response."+kind+".delta", r.at(object{"delta": word, "logprobs": []any{}}))
}

func (r *responsesWriter) text(word string)   { r.part("output_text", word) }
func (r *responsesWriter) refuse(word string) { r.part("refusal", word) }

func (r *responsesWriter) message(status string, content []any) object {
	return object{"id": "msg_fake", "type": "message", "role": "assistant", "status": status, "content": content}
}

func (r *responsesWriter) content(text string) object {
	if r.kind == "refusal" {
		return object{"type": "refusal", "refusal": text}
	}
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// endMessage ends the message in progress, if there is one.
func (r *responsesWriter) endMessage() {
	if r.kind == "" {
		return
	}
	text := r.said.String()
	field := map[string]string{"output_text": "text", "refusal": "refusal"}[r.kind]
	r.event("response."+r.kind+".done", r.at(object{field: text, "logprobs": []any{}}))
	r.event("response.content_part.done", r.at(object{"part": r.content(text)}))
	r.item(r.message("completed", []any{r.content(text)}))
	r.kind = ""
}

// item writes the end of an output item and adds it to output.
func (r *responsesWriter) item(item object) {
	r.event("response.output_item.done", object{"output_index": len(r.output), "item": item})
	r.output = append(r.output, item)
}

func (r *responsesWriter) call(id, name, arguments string) {
	r.endMessage()
	itemID := "fc_" + id
	if r.reasons {
		itemID += linked
		r.event("response.output_item.added", object{
			"output_index": len(r.output), "item": object{"id": "rs_fake", "type": "reasoning", "summary": []any{}, "encrypted_content": "cut"},
		})
		r.item(object{"id": "rs_fake", "type": "reasoning", "summary": []any{}, "encrypted_content": signature(name)})
	}
	call := object{"id": itemID, "type": "function_call", "status": "in_progress", "call_id": id, "name": name, "arguments": ""}
	index := len(r.output)
	r.event("response.output_item.added", object{"output_index": index, "item": maps.Clone(call)})
	half := len(arguments) / 2
	for _, delta := range []string{arguments[:half], arguments[half:]} {
		r.event("response.function_call_arguments.delta", object{"item_id": itemID, "output_index": index, "delta": delta})
	}
	r.event("response.function_call_arguments.done", object{"item_id": itemID, "output_index": index, "name": name, "arguments": arguments})
	call["arguments"], call["status"] = arguments, "completed"
	r.item(call)
}

func (r *responsesWriter) end(f Finish, u usage) {
	r.endMessage()
	more := object{"usage": object{
		"input_tokens": u.prompt, "output_tokens": u.completion, "total_tokens": u.prompt + u.completion,
		"input_tokens_details": object{"cached_tokens": u.cached}, "output_tokens_details": object{"reasoning_tokens": 0},
	}}
	status := "incomplete"
	switch f {
	case FinishLength:
		more["incomplete_details"] = object{"reason": "max_output_tokens"}
	case FinishFilter:
		more["incomplete_details"] = object{"reason": "content_filter"}
	case FinishStop, FinishRefusal:
		status = "completed"
	}
	if all := r.response(status, more); r.whole {
		b, _ := all["response"].(object)
		writeJSON(r.w, b)
	} else {
		r.event("response."+status, all)
	}
}
