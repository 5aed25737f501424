package fakeprovider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

const maxRequest = 1 << 20 // bytes

// A question is a request to the model, in any protocol.
type question struct {
	model    string
	messages []Message // the first is the system message, if there is one
	tools    []tool
	forced   string // name of the tool that the model must call; empty for none
	reasons  bool   // the model reasons before its answer
	whole    bool   // the client wants one JSON document instead of events
}

type tool struct {
	name       string
	parameters json.RawMessage
}

// usage counts tokens. A word is a token. The tokens of the instructions count as cached.
type usage struct{ prompt, completion, cached int }

// An answerWriter writes an answer in one protocol.
type answerWriter interface {
	begin()
	text(word string)
	refuse(word string) // word is part of the text with which the model declines
	call(id, name, arguments string)
	end(f Finish, u usage)
}

// A protocol reads requests and writes answers. For an invalid request, read returns the error that the provider would
// send.
type protocol interface {
	read(r *http.Request, body []byte) (question, error)
	writer(w http.ResponseWriter, q question) answerWriter
}

// invalid is the provider's error message for an invalid request.
type invalid string

func (e invalid) Error() string { return string(e) }

// answer returns the HTTP handler for a protocol. It calls of for each request.
func (s *Server) answer(of func() protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f := s.fault(LLM)
		if refuse(w, r, f) {
			return
		}
		p := of()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		var q question
		if err == nil {
			q, err = p.read(r, body)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			writeJSON(w, object{"type": "error", "error": object{"type": "invalid_request_error", "code": 400, "message": err.Error()}})
			return
		}
		first := s.script.FirstToken
		if f == Slow {
			first += s.script.lateBy()
		}
		if wait(r.Context(), first) {
			s.generate(w, r, f, q, p.writer(w, q))
		}
	}
}

// generate writes the answer of the script, word by word.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, f Fault, q question, to answerWriter) {
	text, finish := s.reply(q.messages), FinishStop
	if s.script.Finish != nil {
		finish = s.script.Finish(q.messages)
	}
	words := strings.SplitAfter(text, " ")
	out := http.NewResponseController(w)
	to.begin()
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
		if finish == FinishRefusal {
			to.refuse(word)
		} else {
			to.text(word)
		}
		if out.Flush() != nil {
			return
		}
	}
	name, args := s.toolCall(q)
	if name != "" {
		to.call(fmt.Sprintf("call_%d", len(q.messages)), name, args)
	}
	u := usage{countWords(q.messages), len(strings.Fields(text + " " + args)), q.cached()}
	to.end(finish, u)
	s.receive(Received{PromptTokens: u.prompt, CachedTokens: u.cached, CompletionTokens: u.completion})
	_ = out.Flush() // like a real server, send the end of the response separately
}

// cached returns the number of tokens in the instructions.
func (q question) cached() int {
	if len(q.messages) == 0 || q.messages[0].Role != "system" {
		return 0
	}
	return countWords(q.messages[:1])
}

func countWords(messages []Message) (n int) {
	for _, m := range messages {
		n += len(strings.Fields(m.Content))
	}
	return n
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

// toolCall returns the tool call of the script. Without one, it returns a call of the tool that the request requires.
// An empty name means no call.
func (s *Server) toolCall(q question) (name, arguments string) {
	if s.script.Call != nil {
		name, arguments = s.script.Call(q.messages)
	}
	for _, t := range q.tools {
		if name == "" && t.name == q.forced {
			return t.name, inventArguments(t.parameters)
		}
	}
	return name, arguments
}

// inventArguments returns arguments with all properties of a schema. Every value that is not an object is null.
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

// signature returns the opaque data that a client must send back with a tool call.
func signature(name string) string {
	return base64.StdEncoding.EncodeToString([]byte("signature of " + name))
}

// event writes a server-sent event.
func event(w http.ResponseWriter, m object) {
	if b, err := json.Marshal(m); err == nil {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
	}
}

// typedEvent writes a server-sent event with its type.
func typedEvent(w http.ResponseWriter, name string, m object) {
	m["type"] = name
	_, _ = fmt.Fprintf(w, "event: %s\n", name)
	event(w, m)
}

func writeJSON(w http.ResponseWriter, m object) {
	if b, err := json.Marshal(m); err == nil {
		_, _ = w.Write(b)
	}
}

// parts returns the text of a content, which is a string or a list of parts.
func parts(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var list []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &list) // other content counts as no text
	for _, p := range list {
		text += p.Text
	}
	return text
}

// isReasoningModel reports whether a model is one of OpenAI's since gpt-5.6.
func isReasoningModel(model string) bool {
	return slices.ContainsFunc([]string{"gpt-5.6", "gpt-6"}, func(prefix string) bool { return strings.HasPrefix(model, prefix) })
}
