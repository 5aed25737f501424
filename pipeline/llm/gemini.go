package llm

import (
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

// Defaults of Gemini (ai.google.dev/gemini-api/docs/models).
const (
	GeminiURL   = "https://generativelanguage.googleapis.com/v1beta"
	GeminiModel = "gemini-3.8-flash"
)

// Gemini uses Google's generateContent API (ai.google.dev/api/generate-content). If the agent sets no reasoning
// effort, the models reason as little as possible, because the caller waits for the answer. Later requests return
// the signatures of tool calls to the model (ai.google.dev/gemini-api/docs/thought-signatures).
type Gemini struct {
	URL    string // base URL without /models, perhaps with a query; empty means GeminiURL
	Key    media.Secret
	Header http.Header  // further headers of each request; may hold keys
	Model  string       // model of agents that name none; empty means GeminiModel
	Client *http.Client // nil means http.DefaultClient; must not have a Timeout
	// Parameters remembers refused parameters. All copies of a client should share it. If it is nil,
	// each request tries all parameters again.
	Parameters *ParameterCache
}

// OptionRules implements pipeline.RuledProvider. Parameters in Options.Extra become fields of
// generationConfig, except safetySettings, cachedContent, labels and serviceTier.
func (o Gemini) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"temperature", "max_tokens", "reasoning_effort", "options"},
		Reserved: []string{
			"model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "temperature", "maxOutputTokens",
			"thinkingConfig", "candidateCount", "responseModalities",
		},
		Known: []string{
			"safetySettings", "cachedContent", "labels", "serviceTier",
			"topP", "topK", "seed", "stopSequences", "presencePenalty", "frequencyPenalty", "responseMimeType", "responseJsonSchema",
		},
	}
}

// Reply implements pipeline.Model.
func (o Gemini) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	e, err := o.endpoint(strings.TrimPrefix(cmp.Or(p.Model, o.Model, GeminiModel), "models/"))
	effort := p.Options.ReasoningEffort
	return reply(ctx, e, err, request{
		cache: o.Parameters, key: effort, sequence: len(p.Messages),
		body: func(q quirks) object { return o.body(p, e, q) },
		learn: func(q quirks, refusal string, _ object) quirks {
			return learnGemini(q, refusal, effort == "" || effort == "none" || effort == "minimal")
		},
	}, geminiDecoder{})
}

func (o Gemini) endpoint(model string) (endpoint, error) {
	name, err := segment(model)
	if err != nil {
		return endpoint{}, err
	}
	e, err := newEndpoint("gemini", model, cmp.Or(o.URL, GeminiURL), "models", name+":streamGenerateContent")
	if err != nil {
		return e, err
	}
	query := e.url.Query()
	query.Set("alt", "sse")
	e.url.RawQuery = query.Encode()
	e.client = o.Client
	e.authorize(o.Header, "X-Goog-Api-Key", o.Key)
	return e, nil
}

func (o Gemini) body(p pipeline.Prompt, e endpoint, q quirks) object {
	config := object{}
	if p.MaxTokens > 0 {
		config["maxOutputTokens"] = p.MaxTokens
	}
	if p.Options.Temperature != nil {
		config["temperature"] = *p.Options.Temperature
	}
	if q&noEffort == 0 {
		config["thinkingConfig"] = geminiThinking(e.model, p.Options.ReasoningEffort, q)
	}
	b := object{"contents": geminiContents(p.Messages, e), "generationConfig": config}
	if strings.TrimSpace(p.Instructions) != "" {
		b["systemInstruction"] = object{"parts": []object{{"text": p.Instructions}}}
	}
	if len(p.Tools) > 0 {
		var tools []object
		for _, t := range p.Tools {
			tools = append(tools, functionTool(t, "parametersJsonSchema"))
		}
		b["tools"] = []object{{"functionDeclarations": tools}}
	}
	if p.ToolChoice != "" {
		b["toolConfig"] = object{"functionCallingConfig": object{"mode": "ANY", "allowedFunctionNames": []string{p.ToolChoice}}}
	}
	top, rest := map[string]any{}, map[string]any{}
	for name, value := range p.Options.Extra {
		if slices.Contains([]string{"safetySettings", "cachedContent", "labels", "serviceTier"}, name) {
			top[name] = value
		} else {
			rest[name] = value
		}
	}
	addExtra(b, top, o.OptionRules())
	addExtra(config, rest, o.OptionRules())
	return b
}

// geminiThinking returns the thinkingConfig of a request. Models before Gemini 3 have a budget in tokens; its values
// are those of Google's OpenAI-compatible API (ai.google.dev/gemini-api/docs/openai). Later models have a level.
func geminiThinking(model, effort string, q quirks) object {
	if isBeforeGemini3(model) {
		budget := map[string]int{"low": 1024, "medium": 8192, "high": 24576}[effort]
		return object{"thinkingBudget": budget}
	}
	switch effort {
	case "", "none", "minimal":
		effort = "minimal"
		if q&alwaysThinking != 0 {
			effort = "low"
		}
	}
	return object{"thinkingLevel": effort}
}

func isBeforeGemini3(model string) bool {
	return strings.HasPrefix(model, "gemini-2") || strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemma")
}

// learnGemini implements request.learn. It changes only the lowest effort: a higher one was set by the agent.
func learnGemini(q quirks, refusal string, isLowest bool) quirks {
	switch {
	case !isLowest || !strings.Contains(refusal, "thinking") && !strings.Contains(refusal, "budget"):
		return q
	case q&alwaysThinking == 0 && strings.Contains(refusal, "level"):
		return q | alwaysThinking
	}
	return q | noEffort
}

// unsigned is sent instead of a signature with a call that another model made.
const unsigned = "skip_thought_signature_validator"

// A geminiExtra is the content of pipeline.ToolCall.Extra for this provider.
type geminiExtra struct {
	ID        string `json:"id,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// geminiContents returns the messages in the order that the API requires. The first and the last
// message are the user's. All results of a message's calls stand in one message.
func geminiContents(all []pipeline.Message, e endpoint) []object {
	var out []object
	kind := "" // role of the last content; results have a kind of their own
	add := func(role, of string, parts ...object) {
		if kind == role+of {
			before, _ := out[len(out)-1]["parts"].([]object)
			out[len(out)-1]["parts"] = append(before, parts...)
			return
		}
		kind = role + of
		out = append(out, object{"role": role, "parts": parts})
	}
	made := map[string]pipeline.ToolCall{}
	for _, l := range withUser(all) {
		switch l.Role {
		case pipeline.RoleAgent:
			add("model", "", geminiParts(l, e)...)
			for _, c := range l.Calls {
				made[c.ID] = c
			}
		case pipeline.RoleTool:
			call := made[l.CallID]
			result := object{"name": cmp.Or(call.Name, "unknown"), "response": object{"output": l.Text}}
			var extra geminiExtra
			if unseal(e.origin(), call.Extra, &extra) && extra.ID != "" {
				result["id"] = extra.ID
			}
			add("user", "result", object{"functionResponse": result})
		case pipeline.RoleNote:
			add("user", "", object{"text": note(l.Text)})
		case pipeline.RoleCaller:
			add("user", "", object{"text": l.Text})
		}
	}
	return out
}

// geminiParts returns the parts of an agent's message. From Gemini 3 on, the first call of a message
// requires a signature.
func geminiParts(l pipeline.Message, e endpoint) []object {
	var parts []object
	if strings.TrimSpace(l.Text) != "" {
		parts = append(parts, object{"text": l.Text})
	}
	for i, c := range l.Calls {
		call := object{"name": c.Name, "args": c.Arguments}
		part := object{"functionCall": call}
		var extra geminiExtra
		unseal(e.origin(), c.Extra, &extra)
		if extra.ID != "" {
			call["id"] = extra.ID
		}
		switch {
		case extra.Signature != "":
			part["thoughtSignature"] = extra.Signature
		case i == 0 && !isBeforeGemini3(e.model):
			part["thoughtSignature"] = unsigned
		}
		parts = append(parts, part)
	}
	return parts
}

// geminiChunk holds the fields of a chunk that this client uses.
type geminiChunk struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text      string `json:"text"`
				Thought   bool   `json:"thought"`
				Signature string `json:"thoughtSignature"`
				Call      *struct {
					ID   string          `json:"id"`
					Name string          `json:"name"`
					Args json.RawMessage `json:"args"`
				} `json:"functionCall"`
			} `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int `json:"promptTokenCount"`
		ToolPrompt int `json:"toolUsePromptTokenCount"`
		Cached     int `json:"cachedContentTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	Error *chatError `json:"error"`
}

// geminiDecoder reads the chunks of streamGenerateContent.
type geminiDecoder struct{}

func (geminiDecoder) decode(data []byte, a *answer) error {
	var c geminiChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return errNotJSON(err)
	}
	if c.Error != nil {
		return a.fault(c.Error.status(), c.Error.Message)
	}
	if u := c.Usage; u != nil {
		a.usage = &pipeline.Usage{PromptTokens: u.Prompt + u.ToolPrompt, CompletionTokens: u.Candidates + u.Thoughts, CachedTokens: u.Cached}
	}
	if reason := c.Feedback.BlockReason; reason != "" && reason != "BLOCKED_REASON_UNSPECIFIED" {
		a.complete, a.end = true, pipeline.ErrContentFilter
	}
	if len(c.Candidates) == 0 {
		return nil
	}
	for _, p := range c.Candidates[0].Content.Parts {
		if !p.Thought {
			a.text(p.Text)
		}
		if p.Call == nil {
			continue
		}
		one := piece{id: p.Call.ID, name: p.Call.Name, arguments: p.Call.Args}
		if string(one.arguments) == "null" {
			one.arguments = nil
		}
		if extra := (geminiExtra{p.Call.ID, p.Signature}); extra != (geminiExtra{}) && len(p.Signature) <= maxArguments {
			one.extra = extra
		}
		if err := a.calls.add(one); err != nil {
			return err
		}
	}
	a.finishGemini(c.Candidates[0].FinishReason)
	return nil
}

func (a *answer) finishGemini(reason string) {
	switch reason {
	case "", "FINISH_REASON_UNSPECIFIED":
		return
	case "STOP":
	case "MAX_TOKENS":
		a.end = pipeline.ErrLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR":
		a.end = pipeline.ErrContentFilter
	default: // for example MALFORMED_FUNCTION_CALL
		a.end = fmt.Errorf("%w: finish reason %q", pipeline.ErrUnusable, a.redact(reason))
	}
	a.complete = true
}
