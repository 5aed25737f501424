// Package parley is a client of the Parley API, which places phone calls that voice agents handle.
//
// A [Client] repeats requests after lost connections, server errors and rate limits. Requests that create something are
// repeated with the same Idempotency-Key, so that they have one effect. Failed requests return an [*Error].
package parley

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Version is the version of this package.
const Version = "0.1.0"

// maxResponse limits a response body, in bytes.
const maxResponse = 256 << 20

// A Client sends requests with one API key. It is safe for concurrent use.
type Client struct {
	base, key string
	http      http.Client
	timeout   time.Duration
	attempts  int
	retryTime time.Duration
}

// An Option sets a property of a [Client].
type Option func(*Client)

// WithHTTPClient sets the HTTP client. Its CheckRedirect is not used: the API never redirects, and a redirect could take
// the API key to another host.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = *h } }

// WithTimeout limits each attempt of a request. The default is 30 s, and 130 s for campaigns and their contacts.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// WithRetries limits the attempts of a request, including the first, and the time after which no further attempt
// starts. The defaults are 4 attempts and 2 minutes; 1 attempt disables retries.
func WithRetries(attempts int, within time.Duration) Option {
	return func(c *Client) { c.attempts, c.retryTime = attempts, within }
}

// NewClient returns a client for the server at baseURL, such as https://parley.example.
func NewClient(baseURL, apiKey string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("parley: base URL: %w", err)
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("parley: the base URL must be like https://parley.example")
	case strings.TrimSpace(apiKey) == "":
		return nil, errors.New("parley: the API key is empty")
	}
	c := &Client{base: strings.TrimRight(baseURL, "/"), key: apiKey, attempts: 4, retryTime: 2 * time.Minute}
	for _, o := range options {
		o(c)
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// A RequestOption sets a property of one request.
type RequestOption func(*request)

// WithIdempotencyKey sets the Idempotency-Key of a request that creates something. Without it, the client generates one
// for each method call. Use a key of your own, such as the ID of an order, to repeat a request safely after a crash.
func WithIdempotencyKey(key string) RequestOption { return func(r *request) { r.idempotencyKey = key } }

type request struct {
	method, path, id string
	query            url.Values
	body             any
	file             *ContactFile
	keyed            bool // takes an Idempotency-Key
	safe             bool // may be repeated even if the server may have received it
	idempotencyKey   string
}

// url returns the URL of the request.
func (r request) url(base string) string {
	u := base + strings.Replace(r.path, "{id}", url.PathEscape(r.id), 1)
	if len(r.query) > 0 {
		u += "?" + r.query.Encode()
	}
	return u
}

// send sends a request and decodes the response. A *[]byte gets the body as it is.
func send[T any](ctx context.Context, c *Client, r request, options []RequestOption) (out T, err error) {
	for _, o := range options {
		o(&r)
	}
	if r.path == "" || strings.Contains(r.path, "{id}") && strings.Trim(r.id, ".") == "" {
		return out, errors.New("parley: the id is empty")
	}
	text, err := c.do(ctx, r)
	if err != nil {
		return out, err
	}
	if raw, ok := any(&out).(*[]byte); ok {
		*raw = text
		return out, nil
	}
	if err = json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("parley: %s %s: decode the response: %w", r.method, r.path, err)
	}
	return out, nil
}

// do sends a request until it succeeds, fails permanently, or a limit of retries is reached.
func (c *Client) do(ctx context.Context, r request) ([]byte, error) {
	body, err := r.payload()
	if err != nil {
		return nil, err
	}
	if r.keyed && r.idempotencyKey == "" {
		random := make([]byte, 16)
		_, _ = rand.Read(random) // never fails
		r.idempotencyKey = hex.EncodeToString(random)
	}
	end := time.Now().Add(c.retryTime)
	for attempt := 1; ; attempt++ {
		text, err := c.attempt(ctx, r, body)
		if err == nil {
			return text, nil
		}
		wait, again := r.delay(err, attempt)
		if !again || attempt >= c.attempts || ctx.Err() != nil || time.Now().Add(wait).After(end) {
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

func (c *Client) attempt(ctx context.Context, r request, body payload) ([]byte, error) {
	timeout := c.timeout
	if timeout == 0 {
		timeout = 30 * time.Second
		if r.method == http.MethodPost && strings.HasPrefix(r.path, "/v1/campaigns") {
			timeout = 130 * time.Second
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	h, err := http.NewRequestWithContext(ctx, r.method, r.url(c.base), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("parley: %w", err)
	}
	h.Header.Set("Authorization", "Bearer "+c.key)
	h.Header.Set("User-Agent", "parley-go/"+Version)
	body.attach(h)
	if r.idempotencyKey != "" {
		h.Header.Set("Idempotency-Key", r.idempotencyKey)
	}
	resp, err := c.http.Do(h)
	if err != nil {
		return nil, fmt.Errorf("parley: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("parley: %s %s: read the response: %w", r.method, r.path, err)
	case len(text) > maxResponse:
		return nil, fmt.Errorf("parley: %s %s: the response is larger than %d MiB", r.method, r.path, maxResponse>>20)
	case resp.StatusCode/100 != 2:
		return nil, newError(resp, text)
	}
	return text, nil
}

// pages returns the items of all pages.
func pages[T any](page func(cursor string) ([]T, *string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			items, next, err := page(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == nil || *next == "" || *next == cursor {
				return
			}
			cursor = *next
		}
	}
}

// set adds a parameter that is not zero.
func set[T comparable](q url.Values, name string, v T) {
	var zero T
	if v == zero {
		return
	}
	text := fmt.Sprint(v)
	if f, ok := any(v).(float64); ok {
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	q.Set(name, text)
}

// Ptr returns a pointer to v, for optional members of requests.
func Ptr[T any](v T) *T { return &v }
