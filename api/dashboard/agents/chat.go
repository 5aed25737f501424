package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/operator"
)

// Bounds of a test in writing. The page carries its state, so that a chat that nobody continues holds nothing.
const (
	chatTimeout  = 60 * time.Second // of a request
	chatAnswer   = 45 * time.Second // of one answer
	chatExpiry   = 30 * time.Minute // since the last answer
	maxChatTurns = 40
	maxChatText  = 2000      // characters of a message
	maxChatState = 256 << 10 // bytes of the state
)

// A chatState is a test in writing. The page carries it, signed, in a hidden field.
type chatState struct {
	Agent     string // ID of the agent
	At        time.Time
	Variables map[string]any
	Servers   bool // requests of http tools are sent
	Chat      agents.Chat
	Greeting  string
	Turns     []chatTurn
	Ended     bool
}

// A chatTurn is what the operator wrote, and the answer.
type chatTurn struct {
	Said, Answer string
	First, Took  time.Duration
	Tools        []string
	Actions      []string
}

// chatOf reads the chat that the form carries; nil if it begins.
func chatOf(r *ui.Request, agentID string) (*chatState, error) {
	sealed := r.Raw("state")
	if sealed == "" {
		return nil, nil //nolint:nilnil // a new chat
	}
	text, ok := r.Unseal("chat", sealed)
	s := &chatState{}
	if !ok || json.Unmarshal(text, s) != nil || s.Agent != agentID {
		return nil, ui.Invalid("", r.Texts.T("agents.chat.invalid.other_page"))
	}
	return s, nil
}

func (a Agents) askChat(r *ui.Request) (ui.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	s, err := chatOf(r, agent.ID)
	if err != nil {
		s = nil // begins again
	}
	return a.chatPage(r, agent, s)
}

func (a Agents) chatPage(r *ui.Request, agent agents.Agent, s *chatState) (ui.Page, error) {
	d := agent.Draft
	var f ui.Form
	sealed := ""
	if s == nil {
		f.Fields = variableFields(agent.Draft)
		if hasServers(d) {
			servers := ui.CheckboxField("servers", r.Texts.T("agents.chat.servers.label"), false)
			servers.Help = r.Texts.T("agents.chat.servers.help")
			f.Fields = append(f.Fields, servers)
		}
	} else {
		state, err := json.Marshal(s)
		if err != nil {
			return ui.Page{}, fmt.Errorf("chat: %w", err)
		}
		sealed = r.Seal("chat", state)
	}
	message := ui.Field{
		Name: "message", Label: r.Texts.T("agents.chat.message.label"), Kind: ui.TextArea, Rows: 2,
		Placeholder: r.Texts.T("agents.chat.message.placeholder"),
	}
	f.Fields = append(f.Fields, message)
	f = r.Form(f)
	last := len(f.Fields) - 1
	return ui.Page{
		Template: "chat.html", Title: r.Texts.T("agents.chat.title", "name", agent.Name), Crumbs: crumbs(r.Texts, agentLink(agent)),
		Lead: r.Texts.T("agents.chat.lead"),
		Data: map[string]any{
			"A": agent, "S": s, "State": sealed, "Form": f, "Setup": f.Fields[:last], "Message": f.Fields[last],
			"Opening": agents.Fill(d.Greeting, d.Values("", nil)), "Available": a.Tester != nil,
			"Full": s != nil && len(s.Turns) >= maxChatTurns,
		},
	}, nil
}

// hasServers reports whether a tool of the agent sends requests.
func hasServers(d agents.Definition) bool {
	for _, t := range d.Tools {
		if t.URL != "" {
			return true
		}
	}
	return false
}

// chat answers one message.
func (a Agents) chat(r *ui.Request) (ui.Result, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Result{}, err
	}
	if a.Tester == nil {
		return ui.Result{}, ui.Invalid("", r.Texts.T("agents.chat.invalid.no_model"))
	}
	text := r.Text("message")
	if n := utf8.RuneCountInString(text); n == 0 || n > maxChatText {
		return ui.Result{}, ui.Invalid("message", r.Texts.T("agents.chat.invalid.message", "limit", maxChatText))
	}
	s, err := chatOf(r, agent.ID)
	if err != nil {
		return ui.Result{}, err
	}
	now := time.Now()
	begins := s == nil
	if begins {
		if s, err = a.beginChat(r, agent); err != nil {
			return ui.Result{}, err
		}
	}
	if err = s.open(r.Texts, now); err != nil {
		return ui.Result{}, err
	}
	end, err := a.chats.begin(r.Texts, r.Session.ID, now)
	if err != nil {
		return ui.Result{}, err
	}
	defer end()
	if begins && s.Servers {
		entry := operator.Entry{Action: "agent.chat", Object: agent.ID, After: map[string]any{"name": agent.Name, "servers": "called"}}
		if err = r.Log(entry); err != nil {
			return ui.Result{}, err
		}
	}
	setup := agents.ChatSetup{OrgID: r.Org(), Variables: s.Variables, CallServers: s.Servers}
	ctx, cancel := context.WithTimeout(r.Context(), chatAnswer)
	defer cancel()
	answer, err := a.Tester.Answer(ctx, agent.Draft, setup, &s.Chat, text)
	if err != nil {
		return ui.Result{}, ui.Invalid("", r.Texts.T("agents.chat.invalid.no_answer", "reason", err.Error()))
	}
	s.add(r.Texts, text, answer)
	p, err := a.chatPage(r, agent, s)
	return ui.Result{Page: &p}, err
}

// beginChat reads the variables of a new chat.
func (a Agents) beginChat(r *ui.Request, agent agents.Agent) (*chatState, error) {
	given := map[string]any{}
	for _, name := range agent.Draft.VariableNames() {
		v := r.Text("variable." + name)
		if len(v) > maxChatText {
			return nil, ui.Invalid("variable."+name, r.Texts.T("agents.chat.invalid.variable", "limit", maxChatText))
		}
		if v != "" {
			given[name] = v
		}
	}
	values := agent.Draft.Values("", given)
	if missing := agent.Draft.Missing(values); len(missing) > 0 {
		return nil, ui.Invalid("variable."+missing[0], r.Texts.T("ui.field.required"))
	}
	s := &chatState{Agent: agent.ID, At: time.Now(), Variables: values, Servers: r.Ticked("servers")}
	s.Chat = a.Tester.Start(agent.Draft, agents.ChatSetup{OrgID: r.Org(), Variables: values})
	s.Greeting = agents.Fill(agent.Draft.Greeting, values)
	return s, nil
}

// open returns why the chat takes no further message, or nil.
func (s *chatState) open(texts *ui.Texts, now time.Time) error {
	switch {
	case s.Ended:
		return ui.Invalid("", texts.T("agents.chat.invalid.ended"))
	case now.Sub(s.At) > chatExpiry:
		return ui.Invalid("", texts.T("agents.chat.invalid.expired"))
	case len(s.Turns) >= maxChatTurns:
		return ui.Invalid("", texts.T("agents.chat.invalid.full", "limit", maxChatTurns))
	}
	return nil
}

func (s *chatState) add(texts *ui.Texts, said string, t agents.ChatTurn) {
	turn := chatTurn{Said: said, Answer: t.Text, First: t.First, Took: t.Took}
	for _, x := range t.Tools {
		turn.Tools = append(turn.Tools, fmt.Sprintf("%s (%s)", x.Text, milliseconds(x.Took)))
	}
	for _, x := range t.Actions {
		switch {
		case x.Number != "":
			turn.Actions = append(turn.Actions, texts.T("agents.chat.action.transfer", "number", x.Number))
		case x.Keys != "":
			turn.Actions = append(turn.Actions, texts.T("agents.chat.action.keys", "keys", strings.Join(strings.Split(x.Keys, ""), " ")))
		default:
			turn.Actions = append(turn.Actions, texts.T("agents.chat.action.end"))
		}
	}
	s.Turns = append(s.Turns, turn)
	s.At, s.Ended = time.Now(), t.Ends
	if state, err := json.Marshal(s); err != nil || len(state) > maxChatState {
		s.Ended = true // the next message would not fit
	}
}

func milliseconds(d time.Duration) string {
	return ui.Milliseconds(float64(d) / float64(time.Millisecond))
}

// FirstTime is the time to the first word of the answer.
func (t chatTurn) FirstTime() string { return milliseconds(t.First) }

// WholeTime is the time to the whole answer.
func (t chatTurn) WholeTime() string { return milliseconds(t.Took) }
