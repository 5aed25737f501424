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
	maxCompletion      quirks = 1 << iota // takes max_completion_tokens instead of max_tokens
	lowestEffort                          // takes the lowest reasoning effort with tools
	noEffort                              // takes no reasoning effort
	noParallel                            // takes no parallel_tool_calls
	noTemperature                         // takes no temperature
	noUsage                               // takes no stream_options
	noForcedTool                          // cannot be forced to call a certain tool
	noEncryption                          // has no encrypted reasoning
	alwaysThinking                        // cannot be kept from reasoning
	thinksBetweenTools                    // cannot be kept from reasoning between tool calls
	alternates                            // takes only messages whose roles alternate, the user first
)

const (
	maxModels  = 256 // models of one cache; a full one starts anew
	maxRetries = 5   // requests that teach a client the quirks of a model
)

// A ParameterCache remembers which parameters the models refused, so that only the first
// request to a model is sent again without them. Its zero value is ready to use. It is
// safe for concurrent use.
type ParameterCache struct {
	mu     sync.Mutex
	models map[string]quirks
}

// get returns what is known of a model, or initially if nothing is. A nil cache knows
// nothing.
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
	initial  quirks              // assumed for a model that is not in the cache
	key      string              // options that change what a model takes
	body     func(quirks) object // what to send to a model with quirks
	sequence int                 // distinguishes the answer from others of a conversation
	// learn returns the quirks that explain a refusal of sent, or q.
	learn func(q quirks, refusal string, sent object) quirks
}

// send sends a request. If a parameter is refused that can be left out, it sends the
// request again without it.
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

// has reports whether a request has a parameter that a refusal names.
func has(refusal string, sent object, parameter string) bool {
	_, ok := sent[parameter]
	return ok && strings.Contains(refusal, parameter)
}

// isUnsupported reports whether a refusal is of a parameter rather than of its value.
func isUnsupported(refusal string) bool {
	return slices.ContainsFunc([]string{
		"unsupported", "not support", "unrecognized", "unknown", "not permitted", "deprecated", "not allowed", "unexpected",
	}, func(s string) bool { return strings.Contains(refusal, s) })
}
