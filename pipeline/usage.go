package pipeline

import (
	"cmp"
	"slices"
	"sync"
)

// An EngineUsage is what a call used of one provider and model, in the units that providers
// charge for.
type EngineUsage struct {
	Serves     string  `json:"serves"`            // "asr", "llm" or "tts"
	Purpose    string  `json:"purpose,omitempty"` // "analysis" for the analysis after the call; otherwise empty
	Provider   string  `json:"provider"`
	OrgID      string  `json:"organization_id,omitempty"` // organization whose own endpoint was used; empty for the operator's
	Model      string  `json:"model,omitempty"`           // model that the agent names; empty for the provider's default
	Requests   int     `json:"requests"`                  // number of streams, answers or utterances
	Seconds    float64 `json:"seconds,omitempty"`         // seconds of sound sent to a recognizer
	Characters int     `json:"characters,omitempty"`      // characters of text sent to a voice
	// Tokens of a model. CachedTokens are part of PromptTokens.
	PromptTokens     int `json:"prompt_tokens,omitempty"`
	CachedTokens     int `json:"cached_tokens,omitempty"`
	CompletionTokens int `json:"completion_tokens,omitempty"`
}

// maxUsages bounds the entries of a UsageMeter. An agent has at most 15 engines.
const maxUsages = 64

// ForAnalysis is the Purpose of the usage of an analysis.
const ForAnalysis = "analysis"

// A UsageMeter sums the usage of a call by provider and model. It is safe for concurrent
// use; a nil meter discards what it is given.
type UsageMeter struct {
	mu  sync.Mutex
	all []EngineUsage
}

// Add adds usage.
func (m *UsageMeter) Add(u EngineUsage) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.all, func(x EngineUsage) bool {
		return x.Serves == u.Serves && x.Provider == u.Provider && x.OrgID == u.OrgID && x.Model == u.Model && x.Purpose == u.Purpose
	})
	if i < 0 {
		if len(m.all) < maxUsages {
			m.all = append(m.all, u)
		}
		return
	}
	x := &m.all[i]
	x.Requests += u.Requests
	x.Seconds += u.Seconds
	x.Characters += u.Characters
	x.PromptTokens += u.PromptTokens
	x.CachedTokens += u.CachedTokens
	x.CompletionTokens += u.CompletionTokens
}

// Tokens returns the tokens of all models, prompts included.
func (m *UsageMeter) Tokens() int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, u := range m.all {
		n += u.PromptTokens + u.CompletionTokens
	}
	return n
}

// Total returns the sums, ordered by what is served, provider and model.
func (m *UsageMeter) Total() []EngineUsage {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.all)
	slices.SortFunc(all, func(a, b EngineUsage) int {
		return cmp.Or(
			cmp.Compare(a.Serves, b.Serves), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.OrgID, b.OrgID),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Purpose, b.Purpose),
		)
	})
	return all
}
