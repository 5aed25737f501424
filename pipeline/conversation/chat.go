package conversation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

// A Chat is a test of an agent in writing: its model and its tools without a call. It can be stored as JSON between two
// turns.
type Chat struct {
	Messages  []pipeline.Message // as the model gets them
	Answers   int
	ToolCalls int
	Tokens    int
}

// A ChatTurn is one answer of the agent.
type ChatTurn struct {
	Text string
	// First is the time to the first word, Took the time to the end of the answer.
	First, Took time.Duration
	Tools       []ChatTool
	// Actions are what a call would do now.
	Actions []pipeline.FollowUp
	// Ends reports that a call would end now.
	Ends bool
}

// A ChatTool is a tool call with its arguments and its result.
type ChatTool struct {
	Text string
	Took time.Duration
}

// errChatLimit is returned if a call would have ended at a limit of the agent.
var errChatLimit = errors.New("the agent has reached a limit of turns, tool calls or tokens; a call would end now")

// StartChat returns a chat in which the agent has said its greeting.
func StartChat(config pipeline.SessionConfig) Chat {
	var c Chat
	if config.Greeting != "" {
		c.Messages = append(c.Messages, pipeline.Message{Role: pipeline.RoleAgent, Text: config.Greeting})
	}
	return c
}

// Chat answers text as a call would answer these words. If it returns an error, c is as before.
func (a *Agent) Chat(ctx context.Context, config pipeline.SessionConfig, c *Chat, text string) (t ChatTurn, err error) {
	clients := a.Clients.Current()
	if err = clients.CheckModel(config.Engines.LLM); err != nil {
		return t, err
	}
	meter := &pipeline.UsageMeter{}
	defer a.endTest(meter)
	limits := newCallLimits(config.Limits, meter)
	limits.Answers = c.Answers
	limits.calls.Store(int64(c.ToolCalls))
	if limits.Reached(false) || c.Tokens >= limits.most.Tokens {
		return t, errChatLimit
	}
	optedOut := tools.OptOut(phraseOptedOut.In(config.Language), func(context.Context) error { return nil })
	set, err := tools.NewSet(tools.Add(config.Tools, optedOut))
	if err != nil {
		return t, err
	}
	committed := make(chan struct{})
	close(committed)
	messages := append(slices.Clip(c.Messages), callerMessages(text, "")...)
	var log tools.CallLog
	loop := tools.Loop{
		Model: a.Guards.Model(clients, config.Engines.LLM, meter), Set: set, Log: &log, Committed: committed, UseCall: limits.Call,
		Prompt: pipeline.Prompt{Model: config.Engines.LLM.Model, Instructions: config.Prompt, Messages: messages},
		Quiet:  func() bool { return true },
	}
	began := time.Now()
	if t.Text, t.First, err = readAnswer(ctx, loop, began); err != nil {
		return ChatTurn{}, err
	}
	t.Took, t.Actions = time.Since(began), log.FollowUps()
	for _, f := range t.Actions {
		t.Ends = t.Ends || f.Step != pipeline.Press
	}
	used, entries := log.Close()
	for _, e := range entries {
		t.Tools = append(t.Tools, ChatTool{e.Text, e.Ended.Sub(e.Began)})
	}
	c.Messages = append(append(messages, used...), pipeline.Message{Role: pipeline.RoleAgent, Text: t.Text})
	c.Answers++
	c.ToolCalls, c.Tokens = int(limits.calls.Load()), c.Tokens+meter.Tokens()
	return t, nil
}

// readAnswer returns the text of an answer and the time to its first word.
func readAnswer(ctx context.Context, loop tools.Loop, began time.Time) (text string, first time.Duration, err error) {
	var all strings.Builder
	for p, err := range loop.Answer(ctx) {
		if err != nil {
			return "", 0, err
		}
		if p.Resume && all.Len() > 0 {
			all.WriteByte(' ')
		}
		if p.Text != "" && first == 0 {
			first = time.Since(began)
		}
		all.WriteString(p.Text)
	}
	return strings.Join(strings.Fields(all.String()), " "), first, nil
}
