// Package accounts makes the providers that an operator has accounts of, or
// servers of their kind.
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

// An Account is how a provider is reached.
type Account struct {
	Key media.Secret
	URL string // empty: the provider's own
}

// Accounts are those of an operator. A zero Account is none.
type Accounts struct {
	Deepgram, OpenAI, ElevenLabs, Cartesia, AssemblyAI Account
	// Fake is the host and port of fakes; empty for none.
	Fake string
}

// Providers are what conversations may name. Their owner closes them.
type Providers struct {
	Recognizers map[string]pipeline.Recognizer
	Models      map[string]pipeline.Model
	Voices      map[string]pipeline.Voice

	client *http.Client
	warm   []*tts.Warm
	shared *tts.Cartesia // nil without an account
}

// Open makes the providers. It connects to none.
func (a Accounts) Open() *Providers {
	client := newClient((&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext)
	p := &Providers{
		Recognizers: map[string]pipeline.Recognizer{}, Models: map[string]pipeline.Model{},
		Voices: map[string]pipeline.Voice{"espeak": tts.Espeak{}}, client: client,
	}
	if a.Fake != "" {
		p.Recognizers["fake"] = asr.Deepgram{URL: "ws://" + a.Fake + "/v1/listen"}
		p.Models["fake"] = llm.OpenAI{URL: "http://" + a.Fake + "/v1", Client: client}
		p.Voices["fake"] = tts.ElevenLabs{URL: "ws://" + a.Fake, Warm: p.kept(time.Minute)}
	}
	if d := a.Deepgram; d != (Account{}) {
		p.Recognizers["deepgram"] = asr.Deepgram{URL: d.at("/v1/listen"), Key: d.Key}
		p.Recognizers["deepgram-flux"] = asr.Flux{URL: d.at("/v2/listen"), Key: d.Key}
		p.Voices["deepgram"] = tts.Deepgram{URL: d.at("/v1/speak"), Key: d.Key, Warm: p.kept(time.Minute)}
	}
	if o := a.OpenAI; o != (Account{}) {
		p.Recognizers["openai"] = asr.OpenAI{URL: realtime(o.URL), Key: o.Key}
		p.Models["openai"] = llm.OpenAI{URL: o.URL, Key: o.Key, Client: client}
		p.Voices["openai"] = tts.OpenAI{URL: o.URL, Key: o.Key, Client: client}
	}
	if e := a.ElevenLabs; e != (Account{}) {
		p.Voices["elevenlabs"] = tts.ElevenLabs{URL: e.URL, Key: e.Key, Warm: p.kept(2 * time.Minute)}
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

// newClient has one pool of warm connections, and no time limit: answers stream.
// An HTTP/2 connection carries all requests to a host, so one on which nothing
// comes is asked whether anybody is there, and left after 3 s.
func newClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second},
	}}
}

// kept makes a pool of connections that are not kept longer than idle.
func (p *Providers) kept(idle time.Duration) *tts.Warm {
	w := &tts.Warm{Idle: idle}
	p.warm = append(p.warm, w)
	return w
}

// at is a path of Deepgram's, where its URL is another than the provider's own.
func (a Account) at(path string) string {
	if a.URL == "" {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(a.URL, "/"), "/v1/listen") + path
}

// realtime is where an OpenAI-compatible server listens to speech.
func realtime(url string) string {
	if url == "" {
		return ""
	}
	return "ws" + strings.TrimPrefix(strings.TrimSuffix(url, "/"), "http") + "/realtime"
}

// Close lets go of all connections that are kept.
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
