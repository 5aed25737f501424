package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/parley-voice/parley/media"
)

const (
	maxErrorBody = 64 << 10 // bytes read
	maxErrorText = 200      // characters kept
)

// A JSONClient sends JSON requests with a bearer key to one URL of a provider.
type JSONClient struct {
	URL    string
	Key    media.Secret // empty sends none
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
// not 200, the error is a *RefusedError.
func (p JSONClient) Do(ctx context.Context, body any) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if p.Accept != "" {
		req.Header.Set("Accept", p.Accept)
	}
	if p.Key != "" {
		req.Header.Set("Authorization", "Bearer "+string(p.Key))
	}
	resp, err := cmp.Or(p.Client, http.DefaultClient).Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp)
	}
	return resp, nil
}

// statusError returns the error of a response and closes it. It keeps only the message of
// an OpenAI-style error, as the rest of the body may repeat words of the caller.
func statusError(resp *http.Response) error {
	defer resp.Body.Close()
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil || json.Unmarshal(b, &body) != nil || body.Error.Message == "" {
		return NewRefusedError(resp, "")
	}
	message := []rune(Clean(body.Error.Message))
	return NewRefusedError(resp, string(message[:min(len(message), maxErrorText)]))
}
