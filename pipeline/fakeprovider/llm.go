package fakeprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// chatRequest holds the used fields of a request.
type chatRequest struct {
	Model    string     `json:"model"`
	Messages []Message  `json:"messages"`
	Stream   bool       `json:"stream"`
	Tools    []function `json:"tools"`
	Choice   function   `json:"tool_choice"`
}

type function struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// chat serves the chat completions API with server-sent events.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	f := s.fault(LLM)
	if refuse(w, r, f) {
		return
	}
	var ask chatRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&ask); err != nil || !ask.Stream {
		http.Error(w, `{"error":{"message":"want JSON with stream: true"}}`, http.StatusBadRequest)
		return
	}
	words := strings.SplitAfter(s.reply(ask.Messages), " ")
	first := s.script.FirstToken
	if f == Slow {
		first += s.script.lateBy()
	}
	if !wait(r.Context(), first) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for i, word := range words {
		if f.cuts() && i == (len(words)+1)/2 {
			f.cut(w)
			return
		}
		if f.stops() && i == (len(words)+1)/2 {
			<-r.Context().Done()
			return
		}
		if f == Garble {
			_, _ = fmt.Fprint(w, "data: {garbled\n\n")
			return
		}
		if i > 0 && !wait(r.Context(), s.script.TokenGap) {
			return
		}
		event(w, map[string]any{"object": "chat.completion.chunk", "model": ask.Model, "choices": []any{
			map[string]any{"index": 0, "delta": map[string]any{"content": word}, "finish_reason": nil},
		}})
		if out.Flush() != nil {
			return
		}
	}
	s.call(w, ask)
	event(w, map[string]any{"choices": []any{}, "usage": map[string]any{
		"prompt_tokens": len(ask.Messages), "completion_tokens": len(words),
	}})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// inventArguments returns arguments that match a schema, with null for all values.
func inventArguments(schema json.RawMessage) string {
	var shape struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &shape) != nil || shape.Properties == nil {
		return "null"
	}
	values := object{}
	for name, p := range shape.Properties {
		values[name] = json.RawMessage(inventArguments(p))
	}
	b, err := json.Marshal(values)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// call sends the tool call of the script, else the required one, in two parts.
func (s *Server) call(w http.ResponseWriter, ask chatRequest) {
	name, args := "", ""
	if s.script.Call != nil {
		name, args = s.script.Call(ask.Messages)
	}
	for _, t := range ask.Tools {
		if name == "" && t.Function.Name == ask.Choice.Function.Name {
			name, args = t.Function.Name, inventArguments(t.Function.Parameters)
		}
	}
	if name == "" {
		return
	}
	piece := func(call object) {
		event(w, object{"choices": []any{object{"index": 0, "delta": object{"tool_calls": []any{call}}}}})
	}
	half := len(args) / 2
	piece(
		object{
			"index":    0,
			"id":       fmt.Sprintf("call_%d", len(ask.Messages)),
			"type":     "function",
			"function": object{"name": name, "arguments": args[:half]},
		},
	)
	piece(object{"index": 0, "function": object{"arguments": args[half:]}})
	event(w, object{"choices": []any{object{"index": 0, "delta": object{}, "finish_reason": "tool_calls"}}})
}

func event(w http.ResponseWriter, m map[string]any) {
	b, err := json.Marshal(m)
	if err == nil {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
	}
}

func (s *Server) reply(messages []Message) string {
	if s.script.Reply != nil {
		return s.script.Reply(messages)
	}
	if n := len(messages); n > 0 {
		return "you said " + messages[n-1].Content
	}
	return "nothing was said"
}
