package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// chat plays a model behind the chat completions API, as server-sent events.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	f := s.fault(LLM)
	if refused(w, r, f) {
		return
	}
	var ask struct {
		Model    string    `json:"model"`
		Messages []Message `json:"messages"`
		Stream   bool      `json:"stream"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&ask); err != nil || !ask.Stream {
		http.Error(w, `{"error":{"message":"want JSON with stream: true"}}`, http.StatusBadRequest)
		return
	}
	words := strings.SplitAfter(s.reply(ask.Messages), " ")
	if !wait(r.Context(), s.script.FirstToken) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for i, word := range words {
		if f == Drop && i == (len(words)+1)/2 {
			cut(w)
			return
		}
		if f == Freeze && i == (len(words)+1)/2 {
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
	s.call(w, ask.Messages)
	event(w, map[string]any{"choices": []any{}, "usage": map[string]any{
		"prompt_tokens": len(ask.Messages), "completion_tokens": len(words),
	}})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// call makes the tool call of the script, its arguments in two pieces.
func (s *Server) call(w http.ResponseWriter, messages []Message) {
	if s.script.Call == nil {
		return
	}
	name, args := s.script.Call(messages)
	if name == "" {
		return
	}
	piece := func(call object) {
		event(w, object{"choices": []any{object{"index": 0, "delta": object{"tool_calls": []any{call}}}}})
	}
	half := len(args) / 2
	piece(object{"index": 0, "id": fmt.Sprintf("call_%d", len(messages)), "type": "function", "function": object{"name": name, "arguments": args[:half]}})
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
