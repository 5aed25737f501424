// Package remote asks an external classifier over HTTP whether a caller has finished. If
// it fails or is late, the local guess is used.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/eot"
)

// Timeout is the default time limit of a classifier, including the network.
const Timeout = 150 * time.Millisecond

const (
	maxOpen   = 64   // maximum number of concurrent questions per classifier
	maxAnswer = 4096 // maximum number of bytes of an answer
	maxText   = 2000 // maximum number of bytes of a text; only its end is sent
)

// errBusy means that too many requests are in progress.
var errBusy = errors.New("too many requests are in progress")

// A Question is the JSON request.
type Question struct {
	Text     string   `json:"text"`
	Asked    string   `json:"asked"`
	Language string   `json:"language"`
	Prosody  *Prosody `json:"prosody,omitempty"` // nil if unknown
}

// A Prosody is the JSON form of eot.Prosody.
type Prosody struct {
	Fall  float64 `json:"fall_semitones"`
	Trail float64 `json:"trail_db"`
}

// An Answer is the JSON response.
type Answer struct {
	P *float64 `json:"p"` // 0 to 1: probability that the caller has finished
}

// A Classifier is one endpoint. It is safe for concurrent use.
type Classifier struct {
	url     string
	key     media.Secret
	timeout time.Duration
	client  *http.Client
	open    chan struct{}
}

// New returns a classifier that posts to url, with key as a bearer token unless it is
// empty. A timeout of 0 means Timeout; a nil client means one with its own connection
// pool.
func New(url string, key media.Secret, timeout time.Duration, client *http.Client) *Classifier {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: maxOpen, IdleConnTimeout: 5 * time.Minute,
		}}
	}
	return &Classifier{url, key, cmp.Or(timeout, Timeout), client, make(chan struct{}, maxOpen)}
}

// Guess asks the classifier. Without a usable answer in time it returns the local guess
// and an error with the reason.
func (c *Classifier) Guess(ctx context.Context, p eot.Pause) (eot.Guess, error) {
	own := p.Guess()
	select {
	case c.open <- struct{}{}:
	default:
		return own, fmt.Errorf("classifier: %w", errBusy) // a queued question would be answered too late
	}
	defer func() { <-c.open }()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	probability, err := c.ask(ctx, p)
	if err != nil {
		return own, fmt.Errorf("classifier: %w", err)
	}
	return eot.Guess{P: probability, Reason: "classifier", Dictation: own.Dictation}, nil
}

func (c *Classifier) ask(ctx context.Context, p eot.Pause) (float64, error) {
	q := Question{Text: tail(p.Text), Asked: tail(p.Asked), Language: p.Language}
	if p.Prosody.Known {
		q.Prosody = &Prosody{p.Prosody.Fall, p.Prosody.Trail}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+string(c.key))
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return 0, err
	case answer.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("response status %d, want 200", answer.StatusCode)
	}
	var a Answer
	switch err := json.Unmarshal(b, &a); {
	case err != nil:
		return 0, fmt.Errorf("response is not JSON of the form {\"p\": 0.5}: %w", err)
	case a.P == nil:
		return 0, errors.New("response has no p")
	case *a.P < 0 || *a.P > 1:
		return 0, fmt.Errorf("response has p = %v; accepted: 0 to 1", *a.P)
	}
	return *a.P, nil
}

// tail returns at most the last maxText bytes of a text.
func tail(s string) string {
	if len(s) <= maxText {
		return s
	}
	s = s[len(s)-maxText:]
	for i := range s {
		if i > 0 {
			return s[i:] // so that the text starts with a whole rune
		}
	}
	return s
}
