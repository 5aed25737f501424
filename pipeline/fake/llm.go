package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// asked is a request for an answer, as far as it matters here.
type asked struct {
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

// chat plays a model behind the chat completions API, as server-sent events.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	f := s.fault(LLM)
	if refused(w, r, f) {
		return
	}
	var ask asked
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&ask); err != nil || !ask.Stream {
		http.Error(w, `{"error":{"message":"want JSON with stream: true"}}`, http.StatusBadRequest)
		return
	}
	words := strings.SplitAfter(s.reply(ask.Messages), " ")
	first := s.script.FirstToken
	if f == Slow {
		first += s.script.late()
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

// invent makes arguments that fit a schema: no value of an object is known,
// where that may be said.
func invent(schema json.RawMessage) string {
	var shape struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &shape) != nil || shape.Properties == nil {
		return "null"
	}
	made := object{}
	for name, p := range shape.Properties {
		made[name] = json.RawMessage(invent(p))
	}
	b, err := json.Marshal(made)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// call makes the tool call of the script or, where that has none, the one that
// must be made. The arguments come in two pieces.
func (s *Server) call(w http.ResponseWriter, ask asked) {
	name, args := "", ""
	if s.script.Call != nil {
		name, args = s.script.Call(ask.Messages)
	}
	for _, t := range ask.Tools {
		if name == "" && t.Function.Name == ask.Choice.Function.Name {
			name, args = t.Function.Name, invent(t.Function.Parameters)
		}
	}
	if name == "" {
		return
	}
	piece := func(call object) {
		event(w, object{"choices": []any{object{"index": 0, "delta": object{"tool_calls": []any{call}}}}})
	}
	half := len(args) / 2
	piece(object{"index": 0, "id": fmt.Sprintf("call_%d", len(ask.Messages)), "type": "function", "function": object{"name": name, "arguments": args[:half]}})
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
