package agents_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// testerStub is a Tester that counts requests.
type testerStub struct {
	err    error
	engine pipeline.Engine // of the last request
	text   string
	asked  int

	setup    agents.ChatSetup // of the last chat
	messages int              // of the last chat, before the last answer
}

func (s *testerStub) Start(d agents.Definition, _ agents.ChatSetup) agents.Chat {
	return agents.Chat{Messages: []pipeline.Message{{Role: pipeline.RoleAgent, Text: d.Greeting}}}
}

func (s *testerStub) Answer(_ context.Context, _ agents.Definition, setup agents.ChatSetup, c *agents.Chat, text string) (agents.ChatTurn, error) {
	s.setup, s.messages = setup, len(c.Messages)
	c.Messages = append(c.Messages, pipeline.Message{Role: pipeline.RoleCaller, Text: text})
	t := agents.ChatTurn{Text: "you said " + text}
	if text == "bye" {
		t.Ends, t.Actions = true, []pipeline.FollowUp{{Step: pipeline.Transfer, Number: "+12025550123"}}
	}
	return t, s.err
}

func (s *testerStub) Sample(_ context.Context, _ string, d agents.Definition, text string) ([]byte, error) {
	s.engine, s.text = d.Speech.TTS, text
	s.asked++
	return []byte("RIFF"), s.err
}

// TestSample checks that a sample is made once, has the options of the agent, and that each operator has a limit.
func TestSample(t *testing.T) {
	stub := &testerStub{}
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Tester = stub })
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	b.Follow("agents/"+a.ID+"/text", "text", "speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake, speed: 1.5, fallback: {provider: other}}}")
	ask := func(b *dashtest.Browser, voice string) dashtest.Answer {
		return b.Post("agents/sample", "agent", a.ID, "provider", "fake", "voice", voice, "language", "es-US")
	}
	for range 2 {
		if s := ask(b, "ada"); s.Status != http.StatusOK || s.Body != "RIFF" {
			t.Fatalf("%d %q", s.Status, s.Text())
		}
	}
	if stub.asked != 1 || stub.engine.Voice != "ada" || stub.engine.Speed != 1.5 || stub.engine.Fallback != nil || stub.engine.OrgID != h.Acme || !strings.HasPrefix(stub.text, "Hola") {
		t.Errorf("%d requests, the last for %+v: %s", stub.asked, stub.engine, stub.text)
	}
	stub.err = errors.New("no voice \"eve\"")
	if s := ask(b, "eve"); s.Status != http.StatusUnprocessableEntity || s.Body != `No voice "eve"` {
		t.Errorf("%d %q", s.Status, s.Body)
	}
	stub.err = nil
	for range 10 {
		ask(b, strings.Repeat("x", stub.asked))
	}
	if s := ask(b, "another"); s.Status != http.StatusUnprocessableEntity || !strings.Contains(s.Body, "Too many tests in a minute") || stub.asked != 12 {
		t.Errorf("after %d requests: %d %q", stub.asked, s.Status, s.Body)
	}
	if s := ask(h.SignIn(t, "ada"), "another"); s.Status != http.StatusOK {
		t.Errorf("another operator: %d %q", s.Status, s.Body)
	}
	if s := ask(h.SignIn(t, "vera"), "another"); s.Status != http.StatusForbidden {
		t.Errorf("a viewer: %d", s.Status)
	}
}

// TestProviderChoices checks that the form offers the configured providers, shows the others as such, and keeps a saved
// provider that no server has.
func TestProviderChoices(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Dashboard.Choices = func(context.Context, db.Querier, string) ([]agents.Choice, error) {
			return []agents.Choice{
				{Serves: "asr", Name: "deepgram", Title: "Deepgram", Configured: true},
				{Serves: "llm", Name: "openai", Configured: true},
				{Serves: "tts", Name: "ours", Title: "Cartesia", Configured: true, Voices: []string{"katie"}},
				{Serves: "tts", Name: "elevenlabs"},
			}, nil
		}
	})
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	page := b.Get("agents/" + a.ID + "/edit").Body
	for _, want := range []string{
		`<option value="deepgram">deepgram</option>`, `<option value="fake" selected>fake: not configured</option>`,
		`<option value="elevenlabs" disabled>elevenlabs: no key configured</option>`, `<option value="ours">ours (Cartesia)</option>`,
		`<datalist id="voices-ours"><option value="katie"></datalist>`, `<th scope="row"><code>name</code></th><td>name of the contact; no default`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %s", want)
		}
	}
	if page := b.Get("agents/new").Body; !strings.Contains(page, `<option value="" selected>Choose a provider</option>`) {
		t.Error("a new agent has a provider")
	}
	b.Follow("agents/"+a.ID+"/edit", "voicemail", "hangup", "speech.asr.provider", "deepgram", "speech.llm.provider", "openai", "speech.tts.provider", "ours")
	if s := read(t, h).Draft.Speech; s.ASR.Provider != "deepgram" || s.TTS.Provider != "ours" {
		t.Errorf("%+v", s)
	}
}

// TestTalkVariables checks that the form of a test call requires the variables of the published version that have no default,
// and names a missing one.
func TestTalkVariables(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Calls.Tickets = noTickets{} })
	id := h.Furnish(t, "sales")["agents"]
	h.Exec(t, `UPDATE agent_versions SET definition = (definition::jsonb || '{"greeting": "{{first_name}} {{who}}"}')::json WHERE agent_id = $1`, id)
	h.Exec(t, `UPDATE agents SET draft = (draft::jsonb || '{"greeting": "{{amount}}"}')::json WHERE id = $1`, id)
	b := h.SignIn(t, "oscar")
	page := b.Get("agents/" + id + "/talk").Body
	for name, required := range map[string]bool{"first_name": true, "who": false} {
		field := regexp.MustCompile(`<input[^>]* name="variable\.` + name + `"[^>]*>`).FindString(page)
		if field == "" || strings.Contains(field, " required") != required {
			t.Errorf("%s: %q", name, field)
		}
	}
	if strings.Contains(page, "variable.amount") {
		t.Error("the form asks for a variable of the draft only")
	}
	if a := b.Post("agents/" + id + "/talk"); a.Status != http.StatusUnprocessableEntity || a.Body != `{"message":"first_name: Required."}` {
		t.Errorf("%d %q", a.Status, a.Body)
	}
}

// noTickets issues join tokens that no server accepts.
type noTickets struct{}

func (noTickets) Ticket(string, time.Time, time.Time) map[string]any { return map[string]any{} }
