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

// quirks are the ways in which a model differs from the client's default request.
type quirks uint

const (
	maxCompletion      quirks = 1 << iota // requires max_completion_tokens instead of max_tokens
	lowestEffort                          // accepts tools only with the lowest reasoning effort
	noEffort                              // refuses a reasoning effort
	noParallel                            // refuses parallel_tool_calls
	noTemperature                         // refuses a temperature
	noUsage                               // refuses stream_options
	noForcedTool                          // refuses a tool choice that names a tool
	noEncryption                          // refuses to return encrypted reasoning
	alwaysThinking                        // refuses to disable reasoning
	thinksBetweenTools                    // refuses to disable reasoning between tool calls
	alternates                            // requires alternating roles, the user's first
)

const (
	maxModels  = 256 // most models of one cache; a full cache is emptied
	maxRetries = 5   // most repeats of one request to learn the quirks of a model
)

// A ParameterCache remembers which parameters each model refused, so that later requests omit them
// from the start. Its zero value is ready to use. It is safe for concurrent use.
type ParameterCache struct {
	mu     sync.Mutex
	models map[string]quirks
}

// get returns the quirks that the cache holds for a model, or initially if it holds none. A nil cache holds none.
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
	key      string              // options on which the quirks depend; part of the cache key
	body     func(quirks) object // returns the body for a model with quirks
	sequence int                 // number in generated call IDs; differs for each answer of a conversation
	// learn returns q with the quirk that explains why the model refused sent, or q unchanged if no
	// quirk does. refusal is the provider's message in lower case.
	learn func(q quirks, refusal string, sent object) quirks
}

// send sends a request. If the model refuses a parameter that the client can omit or change, send
// repeats the request, at most maxRetries times.
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

// has reports whether the request sent contains the parameter and the refusal names it.
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
