package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/converse"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// openProviders lists the providers that an agent may name. One that needs an
// account is there where the operator set its key, or a server of its kind.
func (h *house) openProviders(ctx context.Context) error {
	addr := h.config.FakeURL
	if addr == "" {
		var err error
		if h.fakes, err = fake.Start(ctx, "127.0.0.1:0", demo.Script()); err != nil {
			return err
		}
		addr = h.fakes.Addr()
	}
	// One pool of warm connections, and no time limit: answers stream.
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext, TLSHandshakeTimeout: 5 * time.Second,
	}}
	h.agent = &converse.Agent{
		Recognizers: map[string]pipeline.Recognizer{"fake": asr.Deepgram{URL: "ws://" + addr + "/v1/listen"}},
		Models:      map[string]pipeline.Model{"fake": llm.OpenAI{URL: "http://" + addr + "/v1", Client: client}},
		Voices: map[string]pipeline.Voice{
			"fake": tts.ElevenLabs{URL: "ws://" + addr}, "espeak": tts.Espeak{},
		},
		Log: h.log,
	}
	c := h.config
	if c.Deepgram != (Account{}) {
		h.agent.Recognizers["deepgram"] = asr.Deepgram{URL: c.Deepgram.URL, Key: c.Deepgram.Key}
	}
	if c.OpenAI != (Account{}) {
		h.agent.Models["openai"] = llm.OpenAI{URL: c.OpenAI.URL, Key: c.OpenAI.Key, Client: client}
		h.agent.Voices["openai"] = tts.OpenAI{URL: c.OpenAI.URL, Key: c.OpenAI.Key, Client: client}
	}
	if c.ElevenLabs != (Account{}) {
		h.agent.Voices["elevenlabs"] = tts.ElevenLabs{URL: c.ElevenLabs.URL, Key: c.ElevenLabs.Key}
	}
	return nil
}
