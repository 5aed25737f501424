package agents

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
)

// A Choice is a provider that an agent may use.
type Choice struct {
	Serves      string // "asr", "llm" or "tts"
	Name, Title string
	// Configured means that a server has the provider. If not, the form shows it, but it cannot be chosen.
	Configured bool
	// Voices are some names of its voices.
	Voices []string
}

// A Playground tries drafts of agents outside of calls.
type Playground struct {
	Agent *conversation.Agent
	// Egress and Client serve the tools of chats.
	Egress safedial.Rules
	Client *http.Client
}

// Sample synthesizes a text with the voice of a definition and returns at most 15 s of it as a WAV file.
func (p Playground) Sample(ctx context.Context, orgID string, d Definition, text string) (wav []byte, err error) {
	pcm, err := p.Agent.Sample(ctx, d.Speech.For(orgID).TTS, d.Language, text)
	if err != nil {
		return nil, err
	}
	return recorder.Mono(pcm, conversation.SampleRate), nil
}

// Chat is the state of a test in writing.
type Chat = conversation.Chat

// ChatTurn is one answer in a test in writing.
type ChatTurn = conversation.ChatTurn

// A ChatSetup says how a draft is tested in writing.
type ChatSetup struct {
	OrgID     string
	Variables map[string]any
	// CallServers sends the requests of http tools. Otherwise the model is told that no request was sent.
	CallServers bool
}

// Start returns a chat in which the agent has said its greeting.
func (Playground) Start(d Definition, s ChatSetup) Chat {
	return conversation.StartChat(d.Session(s.OrgID, s.Variables))
}

// Answer answers a text with the model, the prompt and the tools of a definition. Nothing is dialed, and what a call would do
// is in the result.
func (p Playground) Answer(ctx context.Context, d Definition, s ChatSetup, c *Chat, text string) (ChatTurn, error) {
	config := d.Session(s.OrgID, s.Variables)
	var err error
	if config.Tools, err = tools.Build(d.ToolDefinitions(), p.Egress, p.Client); err != nil {
		return ChatTurn{}, err
	}
	for i, t := range d.Tools {
		if t.Type == tools.HTTP && !s.CallServers {
			config.Tools[i] = unsent{config.Tools[i]}
		}
	}
	return p.Agent.Chat(ctx, config, c, text)
}

// unsent is an http tool that sends no request.
type unsent struct{ pipeline.Function }

// Filler implements pipeline.Function.
func (unsent) Filler() string { return "" }

// Run implements pipeline.Function.
func (unsent) Run(context.Context, json.RawMessage) (pipeline.ToolResult, error) {
	return pipeline.ToolResult{Text: "This is a test: no request was sent. Go on as if it had succeeded, and invent no data."}, nil
}

// Session returns the part of a call's configuration that the definition decides. values are those of Values.
func (d Definition) Session(orgID string, values map[string]any) pipeline.SessionConfig {
	return pipeline.SessionConfig{
		Greeting: Fill(d.Greeting, values), Prompt: Fill(d.Prompt, values), Language: d.Language, Engines: d.Speech.For(orgID),
		Limits: d.Limits, Pronunciation: d.Pronunciation, Patience: pipeline.Patience(d.Patience),
		VoicemailMessage: Fill(d.VoicemailMessage, values),
	}
}
