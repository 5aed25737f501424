// Package accounts creates the providers that the operator has accounts for.
package accounts

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// An Account holds the access to a provider.
type Account struct {
	Key media.Secret
	URL string // empty means the provider's default
}

// Accounts holds the accounts of an operator. A zero Account is none.
type Accounts struct {
	Deepgram, OpenAI, ElevenLabs, Cartesia, AssemblyAI Account
	// Fake is the host and port of fake providers; empty for none.
	Fake string
}

// Providers holds the clients by provider name. The owner must close it.
type Providers struct {
	Recognizers map[string]pipeline.Recognizer
	Models      map[string]pipeline.Model
	Voices      map[string]pipeline.Voice

	client *http.Client
	warm   []*tts.Pool
	shared *tts.Cartesia // nil without an account
}

// Open creates the clients. It does not connect.
func (a Accounts) Open() *Providers {
	client := newClient((&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext)
	p := &Providers{
		Recognizers: map[string]pipeline.Recognizer{}, Models: map[string]pipeline.Model{},
		Voices: map[string]pipeline.Voice{"espeak": tts.Espeak{}}, client: client,
	}
	if a.Fake != "" {
		p.Recognizers["fake"] = asr.Deepgram{URL: "ws://" + a.Fake + "/v1/listen"}
		p.Models["fake"] = llm.OpenAI{URL: "http://" + a.Fake + "/v1", Client: client}
		p.Voices["fake"] = tts.ElevenLabs{URL: "ws://" + a.Fake, Warm: p.newPool(time.Minute)}
	}
	if d := a.Deepgram; d != (Account{}) {
		p.Recognizers["deepgram"] = asr.Deepgram{URL: d.at("/v1/listen"), Key: d.Key}
		p.Recognizers["deepgram-flux"] = asr.Flux{URL: d.at("/v2/listen"), Key: d.Key}
		p.Voices["deepgram"] = tts.Deepgram{URL: d.at("/v1/speak"), Key: d.Key, Warm: p.newPool(time.Minute)}
	}
	if o := a.OpenAI; o != (Account{}) {
		p.Recognizers["openai"] = asr.OpenAI{URL: realtime(o.URL), Key: o.Key}
		p.Models["openai"] = llm.OpenAI{URL: o.URL, Key: o.Key, Client: client}
		p.Voices["openai"] = tts.OpenAI{URL: o.URL, Key: o.Key, Client: client}
	}
	if e := a.ElevenLabs; e != (Account{}) {
		p.Voices["elevenlabs"] = tts.ElevenLabs{URL: e.URL, Key: e.Key, Warm: p.newPool(2 * time.Minute)}
	}
	if c := a.Cartesia; c != (Account{}) {
		p.shared = &tts.Cartesia{URL: c.URL, Key: c.Key}
		p.Voices["cartesia"] = p.shared
	}
	if s := a.AssemblyAI; s != (Account{}) {
		p.Recognizers["assemblyai"] = asr.AssemblyAI{URL: s.URL, Key: s.Key}
	}
	return p
}

// newClient returns an HTTP client with one connection pool and no timeout, as answers
// stream. An HTTP/2 connection carries all requests to a host, so an idle one is pinged
// and dropped after 3 s without a response.
func newClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second},
	}}
}

// newPool creates a pool of connections newPool for at most idle.
func (p *Providers) newPool(idle time.Duration) *tts.Pool {
	w := &tts.Pool{Idle: idle}
	p.warm = append(p.warm, w)
	return w
}

// at returns the URL of a Deepgram path, or "" for the default URL.
func (a Account) at(path string) string {
	if a.URL == "" {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(a.URL, "/"), "/v1/listen") + path
}

// realtime returns the speech endpoint of an OpenAI-compatible server.
func realtime(url string) string {
	if url == "" {
		return ""
	}
	return "ws" + strings.TrimPrefix(strings.TrimSuffix(url, "/"), "http") + "/realtime"
}

// Close closes all newPool connections.
func (p *Providers) Close() error {
	var err error
	for _, w := range p.warm {
		err = errors.Join(err, w.Close())
	}
	if p.shared != nil {
		err = errors.Join(err, p.shared.Close())
	}
	p.client.CloseIdleConnections()
	return err
}
