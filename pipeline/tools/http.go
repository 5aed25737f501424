package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// A request is an HTTP function. GET and DELETE carry the arguments in the query; other methods carry
// them as a JSON body.
type request struct {
	spec    pipeline.Tool
	url     *url.URL
	method  string
	headers map[string]media.Secret
	timeout time.Duration
	filler  string
	client  *http.Client
}

func (r *request) Spec() pipeline.Tool { return r.spec }
func (r *request) Filler() string      { return r.filler }

// Run implements pipeline.Function. The error for an error response contains the status and the body.
// The error for a failed request contains the reason without the address.
func (r *request) Run(ctx context.Context, arguments json.RawMessage) (pipeline.ToolResult, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := r.newRequest(ctx, arguments)
	if err != nil {
		return pipeline.ToolResult{}, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return pipeline.ToolResult{}, r.requestError(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResult+1))
	if err != nil {
		return pipeline.ToolResult{}, r.requestError(ctx, err)
	}
	text := strings.TrimSpace(string(body))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return pipeline.ToolResult{}, fmt.Errorf("the server answered %d: redirects are not followed", resp.StatusCode)
	case resp.StatusCode >= 400:
		return pipeline.ToolResult{}, fmt.Errorf("the server answered %d: %s", resp.StatusCode, text)
	case text == "":
		text = "done"
	}
	return pipeline.ToolResult{Text: text}, nil
}

func (r *request) newRequest(ctx context.Context, arguments json.RawMessage) (*http.Request, error) {
	u, body := *r.url, []byte(nil)
	if inQuery(r.method) {
		q := u.Query()
		if err := addQuery(q, arguments); err != nil {
			return nil, err
		}
		u.RawQuery = q.Encode()
	} else {
		body = arguments
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the function's address cannot be used")
	}
	req.Header.Set("User-Agent", "Parley/1")
	req.Header.Set("Accept", "application/json, text/plain;q=0.9, */*;q=0.1")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.headers {
		req.Header.Set(name, string(value))
	}
	return req, nil
}

// inQuery reports whether a method carries its arguments in the query.
func inQuery(method string) bool { return method == http.MethodGet || method == http.MethodDelete }

// hasParam reports whether a query contains a parameter. It ignores letter case, because many servers do.
func hasParam(q url.Values, name string) bool {
	for has := range q {
		if strings.EqualFold(has, name) {
			return true
		}
	}
	return false
}

// addQuery adds the arguments to a query: strings unchanged, other values as JSON. The model
// cannot override existing parameters.
func addQuery(q url.Values, arguments json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &all); err != nil {
		return errors.New("arguments must be an object")
	}
	for name := range all {
		if hasParam(q, name) {
			return fmt.Errorf("argument %q: already set in the function's address", name)
		}
	}
	for name, raw := range all {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		q.Set(name, text)
	}
	return nil
}

// requestError returns the reason of a failure without the address, which may hold a
// token.
func (r *request) requestError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, safedial.ErrNotPublic):
		return errors.New("the function's address is not public, and the operator does not allow it")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v", r.timeout)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errors.New("the server cannot be reached")
}
