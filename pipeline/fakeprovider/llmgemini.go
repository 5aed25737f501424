package fakeprovider

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
)

// geminiRequest holds the fields of a generateContent request that the fake provider uses.
type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	System   geminiContent   `json:"systemInstruction"`
	Tools    []struct {
		Functions []struct {
			Name       string          `json:"name"`
			Schema     json.RawMessage `json:"parametersJsonSchema"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig struct {
		Calling struct {
			Mode    string   `json:"mode"`
			Allowed []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Config struct {
		Thinking struct {
			Level  string `json:"thinkingLevel"`
			Budget *int   `json:"thinkingBudget"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text string `json:"text"`
	Call *struct {
		Name string `json:"name"`
	} `json:"functionCall"`
	Response *struct {
		Name     string `json:"name"`
		Response struct {
			Output string `json:"output"`
		} `json:"response"`
	} `json:"functionResponse"`
	Signature string `json:"thoughtSignature"`
}

// gemini is Google's API with the methods streamGenerateContent (server-sent events) and generateContent.
type gemini struct{}

func (gemini) read(r *http.Request, body []byte) (question, error) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	var ask geminiRequest
	whole := method == "generateContent"
	streams := method == "streamGenerateContent" && r.URL.Query().Get("alt") == "sse"
	if json.Unmarshal(body, &ask) != nil || !whole && !streams || len(ask.Contents) == 0 {
		return question{}, invalid("the request must be generateContent or streamGenerateContent?alt=sse with contents")
	}
	q := question{model: model, whole: whole, messages: []Message{{Role: "system", Content: ask.System.text()}}}
	for _, c := range ask.Contents {
		q.messages = append(q.messages, c.messages()...)
	}
	for _, t := range ask.Tools {
		for _, f := range t.Functions {
			schema := f.Schema
			if schema == nil {
				schema = f.Parameters
			}
			q.tools = append(q.tools, tool{f.Name, schema})
		}
	}
	if calling := ask.ToolConfig.Calling; calling.Mode == "ANY" && len(calling.Allowed) > 0 {
		q.forced = calling.Allowed[0]
	}
	if err := ask.checkThinking(model); err != nil {
		return q, err
	}
	return q, ask.checkContents(!strings.HasPrefix(model, "gemini-2"))
}

func (c geminiContent) text() (text string) {
	for _, p := range c.Parts {
		text += p.Text
	}
	return text
}

func (c geminiContent) messages() (all []Message) {
	role := c.Role
	if role == "model" {
		role = "assistant"
	}
	for _, p := range c.Parts {
		if p.Response != nil {
			all = append(all, Message{Role: "tool", Content: p.Response.Response.Output})
		} else {
			all = append(all, Message{Role: role, Content: p.Text})
		}
	}
	return all
}

// checkThinking returns the error of a model that always reasons or has no thinking levels.
func (ask geminiRequest) checkThinking(model string) error {
	thinking := ask.Config.Thinking
	switch {
	case strings.HasPrefix(model, "gemini-2") && thinking.Level != "":
		return invalid("Thinking level is not supported for this model.")
	case strings.Contains(model, "-pro") && thinking.Budget != nil && *thinking.Budget == 0:
		return invalid("Budget 0 is invalid. This model only works in thinking mode.")
	case strings.Contains(model, "-pro") && strings.EqualFold(thinking.Level, "minimal"):
		return invalid("Thinking level MINIMAL is not supported for this model.")
	}
	return nil
}

// checkContents checks the order of contents. If signs is true, it also checks the signatures of the calls in the turn
// in progress.
func (ask geminiRequest) checkContents(signs bool) error {
	if last := ask.Contents[len(ask.Contents)-1]; ask.Contents[0].Role != "user" || last.Role != "user" {
		return invalid("Please ensure that the contents begin and end with the role user.")
	}
	open := 0 // calls that have no result yet
	for _, c := range ask.Contents {
		results := 0
		for _, p := range c.Parts {
			switch {
			case p.Call != nil:
				open++
			case p.Response != nil:
				results++
			}
		}
		if c.Role == "user" {
			if results != open {
				return invalid("Please ensure that the number of function response parts is equal to the number of function call parts.")
			}
			open = 0
		}
	}
	for i := len(ask.Contents) - 1; signs && i >= 0; i-- {
		c := ask.Contents[i]
		if c.Role == "user" && c.text() != "" {
			break
		}
		if err := c.checkSignature(); err != nil {
			return err
		}
	}
	return nil
}

// checkSignature checks the signature of the first call of a content, if it has a call.
func (c geminiContent) checkSignature() error {
	for _, p := range c.Parts {
		if p.Call == nil {
			continue
		}
		if p.Signature != signature(p.Call.Name) && p.Signature != "skip_thought_signature_validator" {
			return errUnsigned
		}
		return nil
	}
	return nil
}

func (gemini) writer(w http.ResponseWriter, q question) answerWriter {
	return &geminiWriter{w: w, q: q}
}

// geminiWriter writes an answer in chunks, or as one JSON document.
type geminiWriter struct {
	w     http.ResponseWriter
	q     question
	parts []any // parts so far of an answer in one JSON document
}

func (g *geminiWriter) chunk(part object, finish string, more object) {
	parts := []any{part}
	if g.q.whole {
		g.parts = append(g.parts, part)
		if parts = g.parts; finish == "" {
			return
		}
	}
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	all := object{"candidates": []any{candidate}, "modelVersion": g.q.model, "responseId": "fake"}
	maps.Copy(all, more)
	if g.q.whole {
		writeJSON(g.w, all)
	} else {
		event(g.w, all)
	}
}

func (g *geminiWriter) begin() {
	if g.w.Header().Set("Content-Type", "text/event-stream"); g.q.whole {
		g.w.Header().Set("Content-Type", "application/json")
	}
}

func (g *geminiWriter) text(word string) {
	if word != "" {
		g.chunk(object{"text": word}, "", nil)
	}
}

// refuse writes the word as text: Gemini's protocol has no separate text for a refusal.
func (g *geminiWriter) refuse(word string) { g.text(word) }

func (g *geminiWriter) call(id, name, arguments string) {
	part := object{"functionCall": object{"id": id, "name": name, "args": json.RawMessage(arguments)}}
	if !strings.HasPrefix(g.q.model, "gemini-2") {
		part["thoughtSignature"] = signature(name)
	}
	g.chunk(part, "", nil)
}

func (g *geminiWriter) end(f Finish, u usage) {
	finish := map[Finish]string{FinishStop: "STOP", FinishLength: "MAX_TOKENS", FinishFilter: "SAFETY", FinishRefusal: "SAFETY"}[f]
	g.chunk(object{"text": ""}, finish, object{"usageMetadata": object{
		"promptTokenCount": u.prompt, "candidatesTokenCount": u.completion, "totalTokenCount": u.prompt + u.completion,
		"cachedContentTokenCount": u.cached,
	}})
}
