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
	longestErrorBody = 64 << 10 // bytes that are read
	longestError     = 200      // characters that are told
)

// A Post asks a provider that takes JSON and a bearer key.
type Post struct {
	URL    string
	Key    media.Secret // empty: none is sent
	Client *http.Client // nil: http.DefaultClient; must not have a Timeout, for answers stream
	Accept string       // media type of the answer; empty: any
}

// Send posts body and returns the answer's, which the caller closes.
func (p Post) Send(ctx context.Context, body any) (io.ReadCloser, error) {
	resp, err := p.Do(ctx, body)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Do posts body and returns the answer, whose body the caller closes. Of an
// answer that is none the error is a RefusedError.
func (p Post) Do(ctx context.Context, body any) (*http.Response, error) {
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

// statusError is the error of an answer that is none, which it closes. It tells
// the message of an OpenAI-shaped error and nothing else of the body, which may
// repeat what the caller said.
func statusError(resp *http.Response) error {
	defer resp.Body.Close()
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, longestErrorBody))
	if err != nil || json.Unmarshal(b, &body) != nil || body.Error.Message == "" {
		return NewRefusedError(resp, "")
	}
	message := []rune(Clean(body.Error.Message))
	return NewRefusedError(resp, string(message[:min(len(message), longestError)]))
}
