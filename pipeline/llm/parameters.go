package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/parley-voice/parley/pipeline"
)

// quirks are the ways in which a model differs from what its client sends at first.
type quirks uint

const (
	maxCompletion      quirks = 1 << iota // requires max_completion_tokens instead of max_tokens
	lowestEffort                          // accepts tools only with the lowest reasoning effort
	noEffort                              // refuses a reasoning effort
	noParallel                            // refuses parallel_tool_calls
	noTemperature                         // refuses a temperature
	noUsage                               // refuses stream_options
	noForcedTool                          // refuses a tool choice that names a tool
	noEncryption                          // has no encrypted reasoning to return
	alwaysThinking                        // reasons always
	thinksBetweenTools                    // reasons at least between tool calls; this cannot be disabled
	alternates                            // requires that the roles alternate, beginning with the user
)

const (
	maxModels  = 256 // most models of one cache; a full cache is emptied
	maxRetries = 5   // most requests that are repeated to learn the quirks of a model
)

// A ParameterCache remembers which parameters the models refused, so that only the first
// request to a model is sent again without them. Its zero value is ready to use. It is
// safe for concurrent use.
type ParameterCache struct {
	mu     sync.Mutex
	models map[string]quirks
}

// get returns what is known of a model, or initially if nothing is known. A nil cache always
// returns initially.
func (c *ParameterCache) get(model string, initially quirks) quirks {
	if c == nil {
		return initially
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q, ok := c.models[model]; ok {
		return q
	}
	return initially
}

func (c *ParameterCache) set(model string, q quirks) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.models == nil || len(c.models) >= maxModels {
		c.models = map[string]quirks{}
	}
	c.models[model] = q
}

// A request builds the body of a request and learns from refusals.
type request struct {
	cache    *ParameterCache
	initial  quirks              // quirks of a model that is not in the cache
	key      string              // options on which the accepted parameters depend
	body     func(quirks) object // returns the body for a model with quirks
	sequence int                 // distinguishes the answers of one conversation
	// learn returns the quirks that explain why sent was refused, or q if nothing explains it.
	learn func(q quirks, refusal string, sent object) quirks
}

// send sends a request. If the model refuses a parameter that can be left out, send repeats the
// request without it.
func (r request) send(ctx context.Context, e endpoint) (io.ReadCloser, error) {
	key := e.origin() + " " + r.key
	q := r.cache.get(key, r.initial)
	known := q
	tried := []quirks{q}
	for {
		sent := r.body(q)
		body, err := e.post(ctx, sent)
		if err == nil && q != known {
			r.cache.set(key, q)
		}
		var refused *pipeline.RefusedError
		if !errors.As(err, &refused) || len(tried) > maxRetries ||
			refused.Status != http.StatusBadRequest && refused.Status != http.StatusUnprocessableEntity {
			return body, err
		}
		q = r.learn(q, strings.ToLower(refused.Text), sent)
		if slices.Contains(tried, q) {
			return nil, err
		}
		tried = append(tried, q)
	}
}

// has reports whether a request contains the parameter that a refusal names.
func has(refusal string, sent object, parameter string) bool {
	_, ok := sent[parameter]
	return ok && strings.Contains(refusal, parameter)
}

// isUnsupported reports whether a refusal is about a parameter as such, not about its value.
func isUnsupported(refusal string) bool {
	return slices.ContainsFunc([]string{
		"unsupported", "not support", "unrecognized", "unknown", "not permitted", "deprecated", "not allowed", "unexpected",
	}, func(s string) bool { return strings.Contains(refusal, s) })
}
