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
	"github.com/parley-voice/parley/pipeline/egress"
)

// request is a function behind HTTP. GET and DELETE carry the arguments in the
// query, the others as a JSON body.
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

// Run asks. Of an answer that is no success, the model is told the status and
// the body; of none at all, why, without the address.
func (r *request) Run(ctx context.Context, arguments json.RawMessage) (pipeline.Done, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := r.ask(ctx, arguments)
	if err != nil {
		return pipeline.Done{}, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return pipeline.Done{}, r.fault(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, longestResult+1))
	if err != nil {
		return pipeline.Done{}, r.fault(ctx, err)
	}
	text := strings.TrimSpace(string(body))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return pipeline.Done{}, fmt.Errorf("the server answered %d: redirects are not followed", resp.StatusCode)
	case resp.StatusCode >= 400:
		return pipeline.Done{}, fmt.Errorf("the server answered %d: %s", resp.StatusCode, text)
	case text == "":
		text = "done"
	}
	return pipeline.Done{Text: text}, nil
}

func (r *request) ask(ctx context.Context, arguments json.RawMessage) (*http.Request, error) {
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

// inQuery tells that a request has its arguments in the query.
func inQuery(method string) bool { return method == http.MethodGet || method == http.MethodDelete }

// fixed tells that a query has a name, in whatever case: many servers see none.
func fixed(q url.Values, name string) bool {
	for has := range q {
		if strings.EqualFold(has, name) {
			return true
		}
	}
	return false
}

// addQuery adds the arguments to a query: strings as they are, the rest as JSON.
// What the query has is not the model's to say.
func addQuery(q url.Values, arguments json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &all); err != nil {
		return errors.New("the arguments are no object")
	}
	for name := range all {
		if fixed(q, name) {
			return fmt.Errorf("argument %q: the function's address has it already", name)
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

// fault is why there is no answer, without the address, which may hold a token.
func (r *request) fault(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, egress.ErrInward):
		return errors.New("the function's address is not public, and the operator does not allow it")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v", r.timeout)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errors.New("the server cannot be reached")
}
