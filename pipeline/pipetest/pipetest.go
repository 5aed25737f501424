// Package pipetest wires an agent to fake providers over a network in memory,
// so that whole conversations run in a synctest bubble on its clock.
package pipetest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// A Net is a listener whose connections are pipes.
type Net struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewNet returns a network with nobody on it.
func NewNet() *Net { return &Net{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects to the listener.
func (n *Net) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.conns <- far:
		return near, nil
	case <-n.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (n *Net) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *Net) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

// Addr implements net.Listener.
func (n *Net) Addr() net.Addr { return &net.TCPAddr{} }

// A Stage is an agent and its providers.
type Stage struct {
	*pipeline.Agent
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
	n := NewNet()
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	return &Stage{
		Fakes: fake.Serve(n, script), client: client,
		Agent: &pipeline.Agent{
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
