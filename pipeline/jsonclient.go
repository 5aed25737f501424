package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/parley-voice/parley/media"
)

// A JSONClient sends JSON requests to one URL of a provider.
type JSONClient struct {
	URL    string
	Key    media.Secret // bearer token; empty sends none
	Header http.Header  // further headers of each request; may hold keys
	Client *http.Client // nil means http.DefaultClient; must have no Timeout, because answers stream
	Accept string       // accepted media type; empty for any
}

// Body posts body and returns the response body, which the caller closes.
func (p JSONClient) Body(ctx context.Context, body any) (io.ReadCloser, error) {
	resp, err := p.Do(ctx, body)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Do posts body and returns the response, whose body the caller closes. If the status is
// not 200, the error is a *RefusedError. No error contains the URL, which may hold a key.
func (p JSONClient) Do(ctx context.Context, body any) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(b))
	if err != nil {
		return nil, withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if p.Accept != "" {
		req.Header.Set("Accept", p.Accept)
	}
	if p.Key != "" {
		req.Header.Set("Authorization", "Bearer "+string(p.Key))
	}
	for name, values := range p.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := cmp.Or(p.Client, http.DefaultClient).Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, NewRefusedError(resp, RefusalText(resp, req.Header))
	}
	return resp, nil
}

func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
