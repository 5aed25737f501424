// Package endpoints creates the clients of the providers that the operator configured, each
// under a name of its own.
package endpoints

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// A Set holds the endpoints of an operator by name. Its zero value has none.
type Set struct {
	Named map[string]Endpoint
	// Fake is the host and port of fake providers; empty for none.
	Fake string
}

// Check returns what is wrong with the endpoints, by name.
func (s Set) Check() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Named)) {
		if err := errors.Join(CheckName(name), s.Named[name].Check()); err != nil {
			errs = append(errs, fmt.Errorf("provider %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Limits returns the concurrency limits by provider name, as provider.Guards takes them.
func (s Set) Limits() map[string]int {
	all := map[string]int{}
	for name, e := range s.Named {
		if e.Concurrency > 0 {
			all[name] = e.Concurrency
		}
	}
	return all
}

// Providers holds the clients by provider name. The owner must close it.
type Providers struct {
	Recognizers map[string]pipeline.Recognizer
	Models      map[string]pipeline.Model
	Voices      map[string]pipeline.Voice

	client  *http.Client
	closers []io.Closer
}

// Open creates the clients. It does not connect. The set must have passed Check.
func (s Set) Open() *Providers {
	p := &Providers{
		Recognizers: map[string]pipeline.Recognizer{}, Models: map[string]pipeline.Model{},
		Voices: map[string]pipeline.Voice{"espeak": tts.Espeak{}},
		client: newClient((&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext),
	}
	if s.Fake != "" {
		p.Recognizers["fake"] = asr.Deepgram{URL: "ws://" + s.Fake + "/v1/listen"}
		p.Models["fake"] = llm.OpenAI{URL: "http://" + s.Fake + "/v1", Client: p.client}
		p.Voices["fake"] = tts.ElevenLabs{URL: "ws://" + s.Fake, Warm: p.newPool(time.Minute)}
	}
	kinds := Kinds()
	for name, e := range s.Named {
		if k, ok := kinds[e.Kind]; ok {
			k.open(p, name, e)
		}
	}
	return p
}

// newClient returns an HTTP client with one connection pool. It has no timeout, because answers
// stream. An HTTP/2 connection carries all requests to a host, so an idle connection is pinged,
// and dropped after 3 s without a response.
func newClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	return &http.Client{CheckRedirect: checkRedirect, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second},
	}}
}

// checkRedirect follows a redirect only within the host. To another host net/http would send
// the words of a call, and keys in headers other than Authorization.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; len(via) > 3 || req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// newPool creates a pool that keeps idle connections open for at most idle.
func (p *Providers) newPool(idle time.Duration) *tts.Pool {
	pool := &tts.Pool{Idle: idle}
	p.closers = append(p.closers, pool)
	return pool
}

// grpc returns the client of a gRPC endpoint. It speaks HTTP/2 even without TLS.
func (p *Providers) grpc(e Endpoint) *http.Client {
	if !strings.HasPrefix(e.URL, "http:") {
		return p.client
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	p.closers = append(p.closers, idleCloser{transport})
	return &http.Client{Transport: transport, CheckRedirect: checkRedirect}
}

// idleCloser closes idle connections.
type idleCloser struct{ *http.Transport }

// Close implements io.Closer.
func (c idleCloser) Close() error { c.CloseIdleConnections(); return nil }

// realtime returns the speech endpoint of an OpenAI-compatible server.
func realtime(url string) string {
	if url == "" {
		return ""
	}
	return "ws" + strings.TrimPrefix(strings.TrimSuffix(url, "/"), "http") + "/realtime"
}

// Close closes all idle connections.
func (p *Providers) Close() error {
	var errs []error
	for _, c := range p.closers {
		errs = append(errs, c.Close())
	}
	p.client.CloseIdleConnections()
	return errors.Join(errs...)
}
