package dashboard_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// withFakes gives the dashboard providers: fakes of all kinds, and Deepgram without a key.
func withFakes(t *testing.T, script fakeprovider.Script) func(*dashtest.Env) {
	t.Helper()
	fakes, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	registry := endpoints.Set{Fake: fakes.Addr()}.Open(safedial.Rules{})
	t.Cleanup(func() {
		_ = registry.Close() // idle connections to the fakes
		_ = fakes.Close()
	})
	return func(h *dashtest.Env) {
		h.Dashboard.Tester = agents.Playground{Agent: &conversation.Agent{Clients: registry}}
		h.Dashboard.Choices = func(context.Context, db.Querier, string) (all []agents.Choice, err error) {
			for _, serves := range []string{"asr", "llm", "tts"} {
				all = append(all, agents.Choice{Serves: serves, Name: "fake", Configured: true}, agents.Choice{Serves: serves, Name: "deepgram", Title: "Deepgram"})
			}
			all[4].Voices = []string{"ada", "eve"}
			return all, nil
		}
	}
}

// choose sets the providers of the form to the fakes.
func choose(b dashtest.Tab) {
	for _, part := range []string{"asr", "llm", "tts"} {
		b.Run(`(() => { const s = document.querySelector("[name='speech.` + part + `.provider']"); s.value = "fake"; s.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	}
}

// TestAgentEditorInBrowser writes a prompt, sees its size and variables change, and hears a sample of the voice.
func TestAgentEditorInBrowser(t *testing.T) {
	h := dashtest.New(t, withFakes(t, fakeprovider.Script{}))
	b := h.Chrome(t)
	b.SignIn("oscar")
	b.SetViewport("light", 1440)
	b.Go("agents/new")
	b.Fill("[name=name]", "sales")
	b.Fill("[name=prompt]", "Sell to {{first_name}} in {{city}}. é {{2}}")
	b.Fill("[name=variables]", "city = Rome\nunused = x")
	facts := dashtest.Read[string](b, "document.querySelector('.prompt-facts').innerText")
	for _, want := range []string{"43 characters, about 11 tokens", "first_name", "each call must set it", "else the default “Rome”", "not a valid placeholder", "not used"} {
		if !strings.Contains(facts, want) {
			t.Errorf("%q is missing in %s", want, facts)
		}
	}
	b.Fill("[name=prompt]", "Sell to {{first_name}} in {{city}}.")
	choose(b)
	if list := dashtest.Read[string](b, "document.querySelector(\"[name='speech.tts.voice']\").getAttribute('list')"); list != "voices-fake" {
		t.Errorf("the voices are those of %q", list)
	}
	b.Run(`document.querySelector(".sample button").click()`)
	b.Until(`document.querySelector(".sample audio").duration > 0.5`)
	if says := dashtest.Read[string](b, `document.querySelector(".sample span").textContent`); says != "" && !strings.Contains(says, "play") {
		t.Errorf("the sample says %q", says)
	}
	b.CheckAccessibility("agents/new")
	for _, width := range []int64{390, 2560} {
		b.SetViewport("light", width)
		if wide := dashtest.Read[int64](b, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("the page is %d pixels wide at %d", wide, width)
		}
	}
	b.Press("Create draft")
	if text := b.Text(); !strings.Contains(text, "Draft created.") {
		t.Errorf("the page says %s", text)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestAgentJourneyInBrowser changes an agent, tests it in writing, compares it with the published version and publishes it.
func TestAgentJourneyInBrowser(t *testing.T) {
	fakes := fakeprovider.Script{Call: func(m []fakeprovider.Message) (string, string) {
		if strings.HasPrefix(m[len(m)-1].Content, "goodbye") {
			return "end_call", `{"say":"Goodbye."}`
		}
		return "", ""
	}}
	h := dashtest.New(t, withFakes(t, fakes))
	b := h.Chrome(t)
	b.SignIn("oscar")
	b.Go("agents/new")
	b.Fill("[name=name]", "sales")
	b.Fill("[name=greeting]", "Hello {{first_name}}.")
	b.Fill("[name=prompt]", "Be kind.\nSell.")
	choose(b)
	b.Press("Create draft")
	b.Press("Add hang up")
	b.Press("Save draft")
	b.Press("Add web request")
	b.Fill("[name=name]", "find_order")
	b.Fill("[name=description]", "Finds an order.")
	b.Fill("[name=url]", "https://crm.example.com/orders")
	b.Fill("[name='parameter.0.name']", "number")
	b.Fill("[name='header.0.name']", "Authorization")
	b.Fill("[name='header.0.value']", "canary")
	b.CheckAccessibility("tool")
	b.Press("Save draft")
	b.Press("Publish draft")
	b.Press("Edit")
	b.Fill("[name=prompt]", "Be kind.\nDo not sell.")
	b.Press("Save draft")
	b.Press("Chat with the draft")
	b.Fill("[name='variable.first_name']", "Ada")
	b.Fill("[name=message]", "good day")
	b.Run(`document.querySelector("[data-chat] button.first").click()`)
	b.Until(`document.querySelector(".chat-lines").innerText.includes("you said good day")`)
	if text := b.Text(); !strings.Contains(text, "Hello Ada.") || !regexp.MustCompile(`First word after [0-9,]+ ms, whole answer after [0-9,]+ ms`).MatchString(text) {
		t.Errorf("the chat shows %s", text)
	}
	b.CheckAccessibility("chat")
	b.Run(`(() => { const m = document.querySelector("[name=message]"); m.value = "goodbye"; m.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })); })()`)
	b.Until(`document.body.innerText.includes("The agent would hang up now.")`)
	if text := b.Text(); !strings.Contains(text, "you said good day") || !strings.Contains(text, "This chat is over") {
		t.Errorf("the chat shows %s", text)
	}
	b.Press("Back to the agent")
	b.Press("Compare it with the published version")
	rows := dashtest.Read[[]string](b, `[...document.querySelectorAll(".diff tr.added, .diff tr.removed")].map((r) => r.innerText.replace(/\s+/g, " ").trim())`)
	if len(rows) != 2 || rows[0] != "− Sell." || rows[1] != "+ Do not sell." {
		t.Errorf("the comparison shows %q", rows)
	}
	b.CheckAccessibility("diff")
	b.Go("agents")
	b.Press("sales")
	b.Press("Publish draft")
	if text := b.Text(); !strings.Contains(text, "Version 2 published") || strings.Contains(text, "canary") {
		t.Errorf("the page says %s", text)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestTalkFaults checks that the page shows "Not connected" after a refused test call, and that an error disappears with its
// cause.
func TestTalkFaults(t *testing.T) {
	h, scenes := talking(t)
	b := h.Chrome(t)
	expect := func(when, want string) {
		t.Helper()
		const look = `[...document.querySelectorAll("[data-state], [data-start], .refused")].map((e) => e.textContent + " " + e.className).join("|")`
		if got := dashtest.Read[string](b, look); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	for _, s := range scenes {
		switch s.do(b); s.name {
		case "refused":
			expect("refused", "Browsers cannot talk with this agent. It is not published, or this server has no web calls. refused|Not connected state bad|Try again button")
			b.Run(`document.querySelector("#f-typed").click()`)
			expect("another choice", " refused|Ready state|Start talking button first")
		case "fault":
			b.Run(`call.emit("error", { code: "text_unsent", message: "Not sent." })`)
			expect("lost", "Not sent. refused|Reconnecting state|Start talking button first")
			b.Run(`call.emit("state", { state: "listening" })`)
			expect("connected again", " refused|Listening state|Start talking button first")
			b.Run(`call.emit("error", { code: "microphone_lost", message: "No microphone." }); call.emit("state", { state: "reconnecting" }); call.emit("state", { state: "listening" })`)
			expect("no microphone", "No microphone. refused|Listening state|Start talking button first")
		}
	}
}
