// Package llm contains the language model clients, one provider per file.
package llm

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Defaults of OpenAI. gpt-6-luna is the replacement that OpenAI names for gpt-4o-mini, which
// shuts down on 14 January 2027 (platform.openai.com/docs/deprecations, 14 October 2026).
const (
	OpenAIURL   = "https://api.openai.com/v1"
	OpenAIModel = "gpt-6-luna"
)

// OpenAI uses the chat completions API (platform.openai.com/docs/api-reference/chat-streaming) of
// OpenAI, Azure, Groq, OpenRouter, vLLM, llama.cpp, Ollama, SGLang and others.
//
// OpenAI's models since gpt-5.6 accept tools only with the reasoning effort "none". The client sends
// that effort to them unless the agent sets another. Azure serves the API in two ways
// (learn.microsoft.com/azure/foundry/openai/api-version-lifecycle): v1, with the URL
// https://NAME.openai.azure.com/openai/v1, and the classic paths, with the URL
// https://NAME.openai.azure.com and an APIVersion. Both expect the key in KeyHeader "api-key".
type OpenAI struct {
	URL       string // base URL without /chat/completions, perhaps with a query; empty means OpenAIURL
	Key       media.Secret
	KeyHeader string      // header that holds the key; empty means Authorization with a bearer token
	Header    http.Header // further headers of each request; may hold keys
	// APIVersion selects Azure's classic paths if not empty. The model is then the name of the deployment.
	APIVersion string
	Model      string       // model of agents that name none; empty means OpenAIModel
	Client     *http.Client // nil means http.DefaultClient; must not have a Timeout
	// Parameters remembers refused parameters. All copies of a client should share it. If it is nil,
	// each request tries all parameters again.
	Parameters *ParameterCache
}

// OptionRules implements pipeline.RuledProvider.
func (o OpenAI) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"temperature", "max_tokens", "reasoning_effort", "options"},
		Reserved: []string{
			"model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "n", "functions", "function_call",
			"max_tokens", "max_completion_tokens", "temperature", "reasoning_effort", "modalities", "audio",
		},
		Known: []string{
			"top_p", "frequency_penalty", "presence_penalty", "seed", "stop", "logit_bias", "service_tier", "verbosity", "store", "metadata",
			"prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user",
			"top_k", "min_p", "repetition_penalty", "chat_template_kwargs", // parameters of vLLM, SGLang and llama.cpp
			"provider", "route", "transforms", "reasoning", // parameters of OpenRouter
		},
	}
}

// Reply implements pipeline.Model.
func (o OpenAI) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	e, err := o.endpoint(cmp.Or(p.Model, o.Model, OpenAIModel))
	return reply(ctx, e, err, request{
		cache: o.Parameters, key: p.Options.ReasoningEffort, initial: chatQuirks(e), sequence: len(p.Messages),
		body: func(q quirks) object { return o.body(p, e, q) },
		learn: func(q quirks, refusal string, sent object) quirks {
			return learnChat(q, refusal, sent, p.Options.ReasoningEffort == "")
		},
	}, chatDecoder{})
}

func (o OpenAI) endpoint(model string) (endpoint, error) {
	path := []string{"chat", "completions"}
	base := cmp.Or(o.URL, OpenAIURL)
	if o.APIVersion != "" {
		deployment, err := segment(model)
		if err != nil {
			return endpoint{}, err
		}
		path = append([]string{"openai", "deployments", deployment}, path...)
	}
	e, err := newEndpoint("openai", model, base, path...)
	if err != nil {
		return e, err
	}
	if o.APIVersion != "" {
		query := e.url.Query()
		query.Set("api-version", o.APIVersion)
		e.url.RawQuery = query.Encode()
	}
	e.client = o.Client
	e.authorize(o.Header, o.KeyHeader, o.Key)
	return e, nil
}

func (o OpenAI) body(p pipeline.Prompt, e endpoint, q quirks) object {
	b := object{"model": e.model, "messages": chatMessages(p, e.origin(), q&alternates != 0), "stream": true}
	if q&noUsage == 0 {
		b["stream_options"] = object{"include_usage": true}
	}
	if p.MaxTokens > 0 {
		name := "max_tokens"
		if q&maxCompletion != 0 {
			name = "max_completion_tokens"
		}
		b[name] = p.MaxTokens
	}
	if p.Options.Temperature != nil && q&noTemperature == 0 {
		b["temperature"] = *p.Options.Temperature
	}
	if effort := p.Options.ReasoningEffort; effort != "" {
		b["reasoning_effort"] = effort
	} else if q&lowestEffort != 0 {
		b["reasoning_effort"] = "none"
	}
	if len(p.Tools) > 0 {
		b["tools"] = chatTools(p.Tools)
		if q&noParallel == 0 {
			b["parallel_tool_calls"] = true
		}
	}
	if p.ToolChoice != "" {
		b["tool_choice"] = object{"type": "function", "function": object{"name": p.ToolChoice}}
		if q&noForcedTool != 0 {
			b["tool_choice"] = "required"
		}
	}
	addExtra(b, p.Options.Extra, o.OptionRules())
	return b
}

// chatQuirks returns the quirks of a model that are known before its first request. OpenAI's own API
// does not need parallel_tool_calls, which is on by default there. Local servers do.
func chatQuirks(e endpoint) (q quirks) {
	if e.url != nil && isOpenAI(e.url.Host) {
		q |= maxCompletion | noParallel
	}
	if needsNoReasoning(e.model) {
		q |= lowestEffort | maxCompletion
	}
	return q
}

func isOpenAI(host string) bool {
	return host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com")
}

// needsNoReasoning reports whether OpenAI refuses tools for a model unless its reasoning is off. This is so for all
// models since gpt-5.6. The name has a prefix if the model is fine-tuned or behind a gateway.
func needsNoReasoning(model string) bool {
	name := strings.TrimPrefix(model[strings.LastIndex(model, "/")+1:], "ft:")
	version, ok := strings.CutPrefix(name, "gpt-")
	if !ok {
		return false
	}
	if end := strings.IndexAny(version, "-:@"); end >= 0 {
		version = version[:end]
	}
	n, err := strconv.ParseFloat(version, 64)
	return err == nil && n >= 5.6
}

// learnChat implements request.learn. defaultEffort means that the agent sets no reasoning effort.
func learnChat(q quirks, refusal string, sent object, defaultEffort bool) quirks {
	_, hasTools := sent["tools"]
	switch {
	case strings.Contains(refusal, "max_completion_tokens") && sent["max_tokens"] != nil:
		return q | maxCompletion
	case has(refusal, sent, "max_completion_tokens") && isUnsupported(refusal):
		return q &^ maxCompletion
	case has(refusal, sent, "reasoning_effort") && defaultEffort:
		return q &^ lowestEffort
	case strings.Contains(refusal, "reasoning_effort") && defaultEffort && hasTools:
		return q | lowestEffort
	case has(refusal, sent, "temperature") && isUnsupported(refusal):
		return q | noTemperature
	case strings.Contains(refusal, "roles must alternate"): // wording of the chat templates of Mistral and Gemma
		return q | alternates
	}
	for name, quirk := range map[string]quirks{"parallel_tool_calls": noParallel, "stream_options": noUsage, "tool_choice": noForcedTool} {
		if has(refusal, sent, name) {
			q |= quirk
		}
	}
	return q
}
