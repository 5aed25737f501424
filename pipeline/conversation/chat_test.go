package conversation_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
)

// TestChat has a conversation in writing: the greeting, a tool that looks up, a transfer that would end the call, and the
// limit of turns. The state survives JSON between the turns.
func TestChat(t *testing.T) {
	script := fakeprovider.Script{
		Reply: func(m []fakeprovider.Message) string {
			return "heard " + m[len(m)-1].Content + " after " + m[len(m)-2].Content
		},
		Call: func(m []fakeprovider.Message) (string, string) {
			if strings.HasPrefix(m[len(m)-1].Content, "transfer") {
				return "transfer_call", `{"to":"sales","say":"One moment."}`
			}
			return "", ""
		},
	}
	fakes, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fakes.Close() }() // likewise
	registry := endpoints.Set{Fake: fakes.Addr()}.Open(safedial.Rules{})
	defer func() { _ = registry.Close() }() // idle connections
	functions, err := tools.Build([]tools.Definition{{Type: tools.TransferCall, Destinations: []tools.Destination{{Label: "sales", Number: "+12025550123"}}}}, safedial.Rules{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := pipeline.SessionConfig{
		Greeting: "Hello.", Prompt: "Sell.", Tools: functions, Limits: pipeline.Limits{Turns: 2},
		Engines: pipeline.Engines{LLM: pipeline.Engine{Provider: "fake"}},
	}
	var used pipeline.UsageMeter
	a := &conversation.Agent{Clients: registry, OnTest: func(all []pipeline.EngineUsage) {
		for _, u := range all {
			used.Add(u)
		}
	}}
	chat := conversation.StartChat(config)
	say := func(text string) (conversation.ChatTurn, error) {
		stored, fault := json.Marshal(chat)
		chat = conversation.Chat{}
		if fault = errors.Join(fault, json.Unmarshal(stored, &chat)); fault != nil {
			t.Fatal(fault)
		}
		return a.Chat(context.Background(), config, &chat, text)
	}
	turn, err := say("good day")
	if err != nil || turn.Text != "heard good day after Hello." || turn.First == 0 || turn.Took < turn.First || turn.Ends {
		t.Errorf("%+v, %v", turn, err)
	}
	turn, err = say("transfer me")
	if err != nil || !turn.Ends || len(turn.Tools) != 1 || len(turn.Actions) != 1 || turn.Actions[0].Number != "+12025550123" || !strings.Contains(turn.Text, "One moment.") {
		t.Errorf("%+v, %v", turn, err)
	}
	if _, err = a.Sample(t.Context(), pipeline.Engine{Provider: "fake"}, "en", "Good day."); err != nil {
		t.Error(err)
	}
	usage := used.Total()
	if len(usage) != 2 || usage[0].Serves != "llm" || usage[0].PromptTokens+usage[0].CompletionTokens != chat.Tokens || usage[1].Serves != "tts" || usage[1].Characters != 9 {
		t.Errorf("the tests have the usage %+v, and the chat %d tokens", usage, chat.Tokens)
	}
	before := len(chat.Messages)
	if _, err = say("more"); err == nil || !strings.Contains(err.Error(), "limit") || len(chat.Messages) != before || chat.ToolCalls != 1 || chat.Tokens == 0 {
		t.Errorf("%v, %+v", err, chat)
	}
}
