// Package classify asks an external classifier whether a caller has finished,
// over HTTP, and answers by itself where that one does not in time.
package classify

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

// Timeout is how long a classifier may take, the network included, where
// nothing else is said.
const Timeout = 150 * time.Millisecond

const (
	atOnce     = 64   // questions that one classifier is asked at a time
	mostAnswer = 4096 // bytes of an answer
	mostText   = 2000 // bytes of a text, its end: the rest tells nothing
)

// errBusy is that too many questions are open.
var errBusy = errors.New("too many questions are open")

// A Question is what is posted, as JSON.
type Question struct {
	Text     string   `json:"text"`
	Asked    string   `json:"asked"`
	Language string   `json:"language"`
	Prosody  *Prosody `json:"prosody,omitempty"` // where it is known
}

// A Prosody is eot's.
type Prosody struct {
	Fall  float64 `json:"fall_semitones"`
	Trail float64 `json:"trail_db"`
}

// An Answer is what comes back.
type Answer struct {
	P *float64 `json:"p"` // 0 to 1: the caller has finished
}

// A Classifier is one endpoint. It may be shared by any number of calls.
type Classifier struct {
	url     string
	key     media.Secret
	timeout time.Duration
	client  *http.Client
	open    chan struct{}
}

// New returns the classifier at url, which is posted questions with key as a
// bearer token, if there is one. A timeout of 0 is Timeout; without a client it
// has one of its own, which keeps its connections.
func New(url string, key media.Secret, timeout time.Duration, client *http.Client) *Classifier {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: atOnce, IdleConnTimeout: 5 * time.Minute,
		}}
	}
	return &Classifier{url, key, cmp.Or(timeout, Timeout), client, make(chan struct{}, atOnce)}
}

// Guess asks. Where there is no answer in time, or none that can be used, the
// guess is the one of this process, and the error says why.
func (c *Classifier) Guess(ctx context.Context, p eot.Pause) (eot.Guess, error) {
	own := p.Guess()
	select {
	case c.open <- struct{}{}:
	default:
		return own, fmt.Errorf("classifier: %w", errBusy) // a question that waits comes too late
	}
	defer func() { <-c.open }()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	said, err := c.ask(ctx, p)
	if err != nil {
		return own, fmt.Errorf("classifier: %w", err)
	}
	return eot.Guess{P: said, Reason: "classifier", Dictation: own.Dictation}, nil
}

func (c *Classifier) ask(ctx context.Context, p eot.Pause) (float64, error) {
	q := Question{Text: end(p.Text), Asked: end(p.Asked), Language: p.Language}
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
	b, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	switch {
	case err != nil:
		return 0, err
	case answer.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("status %d, want 200", answer.StatusCode)
	}
	var a Answer
	switch err := json.Unmarshal(b, &a); {
	case err != nil:
		return 0, fmt.Errorf("its answer is not JSON of the form {\"p\": 0.5}: %w", err)
	case a.P == nil:
		return 0, errors.New("its answer has no p")
	case *a.P < 0 || *a.P > 1:
		return 0, fmt.Errorf("its p is %v, want 0 to 1", *a.P)
	}
	return *a.P, nil
}

// end returns the end of a text, of mostText bytes at most.
func end(s string) string {
	if len(s) <= mostText {
		return s
	}
	s = s[len(s)-mostText:]
	for i := range s {
		if i > 0 {
			return s[i:] // from the next whole rune on
		}
	}
	return s
}
