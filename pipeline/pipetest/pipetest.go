// Package pipetest wires an agent to fake providers over a network in memory,
// so that whole conversations run in a synctest bubble on its clock.
package pipetest

import (
	"net/http"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/converse"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// A Stage is an agent and its providers.
type Stage struct {
	*converse.Agent
	Fakes  *fake.Server
	client *http.Client
}

// Fake are engines that name the fakes.
func Fake() pipeline.Engines {
	e := pipeline.Engine{Provider: "fake"}
	return pipeline.Engines{ASR: e, LLM: e, TTS: e}
}

// New starts fakes that follow script and an agent that asks them.
func New(script fake.Script) *Stage {
	n := fake.NewNet()
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	return &Stage{
		Fakes: fake.Serve(n, script), client: client,
		Agent: &converse.Agent{
			Recognizers: map[string]pipeline.Recognizer{"fake": asr.Deepgram{URL: "ws://fake/v1/listen", Dial: n.Dial}},
			Models:      map[string]pipeline.Model{"fake": llm.OpenAI{URL: "http://fake/v1", Client: client}},
			Voices: map[string]pipeline.Voice{
				"fake":   tts.ElevenLabs{URL: "ws://fake", Dial: n.Dial},
				"openai": tts.OpenAI{URL: "http://fake/v1", Client: client},
			},
		},
	}
}

// Close ends the fakes.
func (s *Stage) Close() error {
	s.client.CloseIdleConnections()
	return s.Fakes.Close()
}
