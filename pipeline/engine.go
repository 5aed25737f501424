package pipeline

import (
	"encoding/json"
	"fmt"
)

// Engines selects the recognizer, model and voice of an agent.
type Engines struct {
	ASR Engine `json:"asr" yaml:"asr"`
	LLM Engine `json:"llm" yaml:"llm"`
	TTS Engine `json:"tts" yaml:"tts"`
}

// An Engine is one provider with its settings.
type Engine struct {
	Provider string `json:"provider"        yaml:"provider"` // name of a configured provider
	Model    string `json:"model,omitempty" yaml:"model"`    // name of the provider's model; empty for the provider's default
	Voice    string `json:"voice,omitempty" yaml:"voice"`    // name of the provider's voice, only for TTS; empty for the provider's default
	Options  `yaml:",inline"`
	// Fallback is used if this engine fails. It may have a fallback of its own.
	Fallback *Engine `json:"fallback,omitempty" yaml:"fallback"`
	// OrgID is the ID of the organization whose own endpoint is used, if it has one of that name. If OrgID is empty,
	// only the operator's endpoint is used. It is not part of an agent's definition.
	OrgID string `json:"-" yaml:"-"`
}

// For returns a copy of the engines in which OrgID is orgID, in the fallbacks too.
func (e Engines) For(orgID string) Engines {
	return e.Change(func(_ string, one *Engine) { one.OrgID = orgID })
}

// change returns a copy of the engine in which do has changed the engine and each fallback.
func (e Engine) change(do func(*Engine)) Engine {
	do(&e)
	if e.Fallback != nil {
		next := e.Fallback.change(do)
		e.Fallback = &next
	}
	return e
}

// Change returns a copy of the engines in which do has changed each engine and fallback.
func (e Engines) Change(do func(serves string, e *Engine)) Engines {
	of := func(serves string) func(*Engine) { return func(e *Engine) { do(serves, e) } }
	return Engines{e.ASR.change(of("asr")), e.LLM.change(of("llm")), e.TTS.change(of("tts"))}
}

// EndpointID returns Provider, or "OrgID/Provider" if OrgID is set.
func (e Engine) EndpointID() string {
	if e.OrgID == "" {
		return e.Provider
	}
	return e.OrgID + "/" + e.Provider
}

// MaxFallbacks is the maximum number of fallbacks of an engine.
const MaxFallbacks = 4

// Chain returns the engine and its fallbacks in order, each without a fallback of its own.
func (e Engine) Chain() []Engine {
	var all []Engine
	for next := &e; next != nil; next = next.Fallback {
		one := *next
		one.Fallback = nil
		all = append(all, one)
	}
	return all
}

// Key returns a string that is the same for equal engines only.
func (e Engine) Key() string {
	b, err := json.Marshal(e)
	if err != nil { // an option cannot be encoded as JSON; such an engine equals no other
		return fmt.Sprintf("%+v %p", e, &e)
	}
	return e.OrgID + string(b)
}

// Options tune an engine. A provider ignores the options that it does not have
// (docs/providers.md lists them). The zero value of each means the provider's default.
type Options struct {
	// KeyTerms are names and words that a recognizer should expect: at most 100 of at most
	// 50 characters each.
	KeyTerms []string `json:"keyterms,omitempty" yaml:"keyterms"`
	// Languages are all languages of the caller, BCP 47, for recognizers that accept several:
	// at most 8. The language of the agent comes first.
	Languages []string `json:"languages,omitempty" yaml:"languages"`
	// Temperature is the randomness of a model or voice, 0 to 2.
	Temperature *float64 `json:"temperature,omitempty" yaml:"temperature"`
	// MaxTokens bounds the answer of a model, 1 to 100,000.
	MaxTokens int `json:"max_tokens,omitempty" yaml:"max_tokens"`
	// ReasoningEffort of a model is "none", "minimal", "low", "medium" or "high". If it is empty, OpenAI's models
	// since gpt-5.6, Claude and Gemini reason as little as they can, because the caller is waiting.
	ReasoningEffort string `json:"reasoning_effort,omitempty" yaml:"reasoning_effort"`
	// Speed is the speaking rate of a voice as a factor, 0.5 to 2.
	Speed float64 `json:"speed,omitempty" yaml:"speed"`
	// Instructions describe to a voice how to speak, in at most 1,000 characters.
	Instructions string `json:"instructions,omitempty" yaml:"instructions"`
	// Extra holds further parameters, passed to the provider as they are. Parameters that
	// the client sets itself are refused.
	Extra map[string]any `json:"options,omitempty" yaml:"options"`
}
