package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

type object = map[string]any

// An endpoint is the address of one model of a provider.
type endpoint struct {
	name   string // name of the provider, for errors
	model  string
	url    *url.URL
	header http.Header // headers of each request, with the key
	client *http.Client
}

// newEndpoint returns the endpoint at a path below base. It keeps the query of base.
func newEndpoint(name, model, base string, path ...string) (endpoint, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return endpoint{}, fmt.Errorf("%s: the URL is malformed; accepted: https://HOST/PATH", name)
	}
	return endpoint{name: name, model: model, url: u.JoinPath(path...)}, nil
}

// segment returns a model's name as one segment of a path.
func segment(model string) (string, error) {
	if strings.Trim(model, ".") == "" {
		return "", &pipeline.RefusedError{Status: http.StatusNotFound, Text: fmt.Sprintf("model %q does not exist", model)}
	}
	return url.PathEscape(model), nil
}

// authorize sets the headers of requests to those in given and the key. If keyHeader is empty, the
// key is sent as a bearer token.
func (e *endpoint) authorize(given http.Header, keyHeader string, key media.Secret) {
	e.header = http.Header{}
	maps.Copy(e.header, given.Clone())
	switch {
	case key == "":
	case keyHeader == "":
		e.header.Set("Authorization", "Bearer "+string(key))
	default:
		e.header.Set(keyHeader, string(key))
	}
}

// origin identifies the model of this endpoint. Provider data in ToolCall.Extra is sent back only to
// the model that it came from.
func (e *endpoint) origin() string { return e.name + " " + e.url.Host + " " + e.model }

// redact returns a provider's text without the secrets of the request.
func (e *endpoint) redact(text string) string { return pipeline.Redact(text, e.header, e.url) }

// post sends a request and returns the body of the response, which the caller closes.
func (e *endpoint) post(ctx context.Context, body object) (io.ReadCloser, error) {
	client := pipeline.JSONClient{URL: e.url.String(), Header: e.header, Client: e.client, Accept: "text/event-stream"}
	return client.Body(ctx, body)
}

// reply sends a request and streams its answer.
func reply(asker context.Context, e endpoint, err error, r request, d decoder) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		ctx, cancel := context.WithCancel(asker)
		defer cancel()
		var body io.ReadCloser
		if err == nil {
			if body, err = r.send(ctx, e); err != nil {
				err = fmt.Errorf("%s: %w", e.name, err)
			}
		}
		if err != nil {
			yield(pipeline.Delta{}, err)
			return
		}
		defer body.Close() // cancels the request if it is unfinished
		a := &answer{endpoint: e, yield: yield, calls: calls{origin: e.origin(), first: r.sequence}}
		if a.stream(body, d); a.complete && !a.stopped {
			release(body, cancel)
		}
	}
}

// maxRelease bounds the wait for the end of a response after its last event.
const maxRelease = 20 * time.Millisecond

// release reads the rest of a response, because HTTP/1.1 reuses a connection only after that. The
// rest has normally arrived already.
func release(body io.Reader, cancel func()) {
	defer time.AfterFunc(maxRelease, cancel).Stop()
	_, _ = io.CopyN(io.Discard, body, maxEvent)
}

// addExtra adds the parameters in Options.Extra to a request. It skips parameters that the client
// sets itself; OptionRules.Check refuses those when an agent is saved.
func addExtra(body object, extra map[string]any, rules pipeline.OptionRules) {
	for name, value := range extra {
		if _, exists := body[name]; !exists && !slices.Contains(rules.Reserved, name) {
			body[name] = value
		}
	}
}

// note returns the text of a note for a message with the user's role. Many models accept only one
// system message, as the first.
func note(text string) string { return "[" + strings.Trim(text, "[]") + "]" }

// Notes that take the place of the caller's words where a model requires a message of the user.
const (
	callAnswered = "the call was answered"
	callerSilent = "the caller is silent"
)

// A sealed is the JSON form of ToolCall.Extra: provider data and the model that it came from.
type sealed struct {
	Origin string          `json:"origin"`
	Data   json.RawMessage `json:"data"`
}

// seal encodes data for ToolCall.Extra. It returns nil if data cannot be encoded.
func seal(origin string, data any) json.RawMessage {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	all, err := json.Marshal(sealed{origin, raw})
	if err != nil {
		return nil
	}
	return all
}

// unseal decodes ToolCall.Extra into v. It reports false if extra is empty, comes from another
// origin or is not valid.
func unseal(origin string, extra json.RawMessage, v any) bool {
	var s sealed
	return len(extra) > 0 && json.Unmarshal(extra, &s) == nil && s.Origin == origin && json.Unmarshal(s.Data, v) == nil
}
