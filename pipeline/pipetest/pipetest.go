// Package pipetest connects an agent to fake providers over an in-memory network, so that
// whole conversations can run on the fake clock of synctest. Its own tests let random callers talk with an agent whose
// providers fail at random. A judge looks for faults in the audio of both directions, the requests to the model, and the
// outcome of the call.
package pipetest

import (
	"net/http"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/tts"
)

// An Env is an agent with its providers.
type Env struct {
	*conversation.Agent
	Clients *provider.Clients // clients that the agent uses
	Fakes   *fakeprovider.Server
	client  *http.Client
}

// FakeEngines returns engines that use the fake providers.
func FakeEngines() pipeline.Engines {
	e := pipeline.Engine{Provider: "fake"}
	return pipeline.Engines{ASR: e, LLM: e, TTS: e}
}

// New starts fake providers that follow script, and an agent that uses them.
func New(script fakeprovider.Script) *Env {
	n := fakeprovider.NewNet()
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	clients := &provider.Clients{
		Recognizers: map[string]pipeline.Recognizer{"fake": asr.Deepgram{URL: "ws://fake/v1/listen", Dial: n.Dial}},
		Models:      map[string]pipeline.Model{"fake": llm.OpenAI{URL: "http://fake/v1", Client: client}},
		Voices: map[string]pipeline.Voice{
			"fake":   tts.ElevenLabs{URL: "ws://fake", Dial: n.Dial},
			"openai": tts.OpenAI{URL: "http://fake/v1", Client: client},
		},
	}
	return &Env{
		Fakes: fakeprovider.Serve(n, script), client: client,
		Agent: &conversation.Agent{Clients: clients}, Clients: clients,
	}
}

// Close stops the fake providers.
func (s *Env) Close() error {
	s.client.CloseIdleConnections()
	return s.Fakes.Close()
}
