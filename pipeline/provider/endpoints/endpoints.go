// Package endpoints creates the clients of the providers that the operator and organizations
// configured, each under a name of its own.
package endpoints

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/tts"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// A Set holds the settings of all endpoints. Its zero value has none.
type Set struct {
	// Named holds the operator's endpoints by name.
	Named map[string]Endpoint
	// Organizations holds the own endpoints of organizations, by organization ID and name. An endpoint without a kind
	// has no clients: agents of the organization that name it cannot make calls.
	Organizations map[string]map[string]Endpoint
	// Fake is the host and port of fake providers; empty for none.
	Fake string
}

// Check returns what is wrong with the operator's endpoints, by name.
func (s Set) Check() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Named)) {
		if err := errors.Join(CheckName(name), s.Named[name].Check()); err != nil {
			errs = append(errs, fmt.Errorf("provider %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Limits returns the concurrency limits by endpoint ID, as provider.Guards takes them.
func (s Set) Limits() map[string]int {
	all := map[string]int{}
	for id, e := range s.all() {
		if e.Concurrency > 0 {
			all[id.String()] = e.Concurrency
			if e.Kind == "deepgram" {
				all[id.String()+fluxSuffix] = e.Concurrency
			}
		}
	}
	return all
}

// An endpointID identifies an endpoint.
type endpointID struct{ orgID, name string } // orgID is empty for the operator's

// String returns the ID in the form of pipeline.Engine.EndpointID.
func (id endpointID) String() string {
	return pipeline.Engine{OrgID: id.orgID, Provider: id.name}.EndpointID()
}

// all returns the endpoints of the operator and of all organizations.
func (s Set) all() map[endpointID]Endpoint {
	all := map[endpointID]Endpoint{}
	for name, e := range s.Named {
		all[endpointID{"", name}] = e
	}
	for orgID, own := range s.Organizations {
		for name, e := range own {
			all[endpointID{orgID, name}] = e
		}
	}
	return all
}

// clients holds the clients of one endpoint and their transports.
type clients struct {
	provider.Clients
	client  *http.Client
	dial    wsdial.DialFunc // opens WebSockets; nil for TCP
	closers []io.Closer
}

func newClients(client *http.Client, dial wsdial.DialFunc) *clients {
	return &clients{client: client, dial: dial, Clients: provider.Clients{
		Recognizers: map[string]pipeline.Recognizer{}, Models: map[string]pipeline.Model{}, Voices: map[string]pipeline.Voice{},
	}}
}

// newClient returns an HTTP client with one connection pool. proxy may be nil. The client has no timeout, because
// answers stream. One HTTP/2 connection carries all requests to a host, so the client pings an idle connection, and
// drops it after 3 s without a response.
func newClient(dial wsdial.DialFunc, proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{CheckRedirect: checkRedirect, Transport: &http.Transport{
		Proxy: proxy, DialContext: dial, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second},
	}}
}

// checkRedirect allows redirects only within a host. On a redirect to another host, net/http would send that host the
// words of a call, and keys in headers other than Authorization.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; len(via) > 3 || req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// newPool creates a pool that keeps idle connections open for at most idle.
func (p *clients) newPool(idle time.Duration) *tts.Pool {
	pool := &tts.Pool{Idle: idle}
	p.closers = append(p.closers, pool)
	return pool
}

// grpc returns the client of a gRPC endpoint. It speaks HTTP/2 even without TLS.
func (p *clients) grpc(e Endpoint) *http.Client {
	if !strings.HasPrefix(e.URL, "http:") {
		return p.client
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: p.dial}
	p.closers = append(p.closers, idleCloser{transport})
	return &http.Client{Transport: transport, CheckRedirect: checkRedirect}
}

// idleCloser closes idle connections.
type idleCloser struct{ *http.Transport }

// Close implements io.Closer.
func (c idleCloser) Close() error { c.CloseIdleConnections(); return nil }

// realtime returns the WebSocket URL of the realtime API of an OpenAI-compatible server; "" for the default URL.
func realtime(url string) string {
	if url == "" {
		return ""
	}
	return "ws" + strings.TrimPrefix(strings.TrimSuffix(url, "/"), "http") + "/realtime"
}
