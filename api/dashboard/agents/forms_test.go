package agents_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

// TestToolForm changes, adds and removes tools. The value of a header is never shown, and is not sent to another server.
func TestToolForm(t *testing.T) {
	h := dashtest.New(t)
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	at := "agents/" + a.ID + "/tool"
	b.Follow("agents/"+a.ID+"/text", "text", `speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}
tools:
- {type: http, name: find, description: d, url: "https://crm.example.com/f", headers: {X-Key: canary}, parameters: {type: object, required: [id], properties: {id: {type: string}}}}
- {type: http, name: nested, description: d, url: "https://crm.example.com/n", parameters: {type: object, properties: {a: {type: array, items: {type: string}}}}}`)
	page := b.Get(at + "?n=1")
	if strings.Contains(page.Body, "canary") || !strings.Contains(page.Body, `value="X-Key"`) || !strings.Contains(page.Body, `name="parameter.0.name" value="id"`) {
		t.Errorf("%d %s", page.Status, page.Body)
	}
	form := func(more ...string) []string {
		return append([]string{
			"type", "http", "name", "find", "description", "Finds an order.", "url", "https://crm.example.com/f", "method", "GET", "timeout_s", "4",
			"parameter.0.name", "id", "parameter.0.type", "string", "parameter.0.required", "on",
			"parameter.1.name", "size", "parameter.1.type", "string", "parameter.1.values", "small, large", "parameter.1.description", "Of the order.",
			"header.0.name", "X-Key", "header.0.value", "", "header.1.name", "X-Other", "header.1.value", "second",
		}, more...)
	}
	b.Follow(at+"?n=1", form()...)
	tool := read(t, h).Draft.Tools[0]
	if tool.Headers["X-Key"] != "canary" || tool.Headers["X-Other"] != "second" || tool.Method != "GET" || tool.TimeoutS != 4 ||
		!strings.Contains(string(tool.Parameters), `"small"`) || !strings.Contains(string(tool.Parameters), `"required"`) {
		t.Errorf("%+v %s", tool, tool.Parameters)
	}
	for want, change := range map[string][2]string{
		`id="f-header.0.value-error"`:     {"url", "https://evil.example.com/f"},
		`id="f-name-error"`:               {"name", "two words"},
		`id="f-timeout_s-error"`:          {"timeout_s", "99"},
		`id="f-url-error"`:                {"url", "ftp://crm.example.com"},
		`id="f-parameter.0.name-error"`:   {"parameter.0.type", "date"},
		`id="f-parameter.1.values-error"`: {"parameter.1.type", "number"},
	} {
		bad := form()
		for i := 0; i < len(bad); i += 2 {
			switch {
			case bad[i] == change[0]:
				bad[i+1] = change[1]
			case bad[i] == "header.0.value" && change[1] != "https://evil.example.com/f":
				bad[i+1] = "entered again"
			}
		}
		if again := b.Post(at+"?n=1", bad...); again.Status != http.StatusUnprocessableEntity || !strings.Contains(again.Body, want) {
			t.Errorf("%v: %d, no %s: %s", change, again.Status, want, again.Text())
		}
	}
	if page = b.Get(at + "?n=2"); !strings.Contains(page.Body, "The form cannot express this schema") {
		t.Errorf("%s", page.Text())
	}
	b.Follow(at+"?n=2", "type", "http", "name", "nested", "description", "Changed.", "url", "https://crm.example.com/n")
	if tool = read(t, h).Draft.Tools[1]; tool.Description != "Changed." || !strings.Contains(string(tool.Parameters), "items") {
		t.Errorf("%+v %s", tool, tool.Parameters)
	}
	b.Follow(at+"?type=transfer_call", "type", "transfer_call", "destinations", "sales = +12025550123\n\n+12025550124")
	if tool = read(t, h).Draft.Tools[2]; len(tool.Destinations) != 2 || tool.Destinations[0].Label != "sales" || tool.Destinations[1].Number != "+12025550124" {
		t.Errorf("%+v", tool)
	}
	b.Follow(at+"?n=1", "remove", "on")
	if all := read(t, h).Draft.Tools; len(all) != 2 || all[0].Name != "nested" {
		t.Errorf("%+v", all)
	}
	if page = b.Get(at + "?n=9"); page.Status != http.StatusNotFound {
		t.Errorf("a tool that does not exist: %d", page.Status)
	}
	if log := h.Text(t, "SELECT string_agg(a::text, ' ') FROM audit_log a"); strings.Contains(log, "canary") || strings.Contains(log, `"second"`) {
		t.Errorf("the audit log has a secret: %s", log)
	}
}

func TestAnalysisForm(t *testing.T) {
	h := dashtest.New(t)
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	at := "agents/" + a.ID + "/field"
	b.Follow(at, "name", "size", "type", "enum", "values", "small\nlarge\n", "description", "Of the order.")
	b.Follow(at+"?n=1", "name", "topic", "type", "string")
	if all := read(t, h).Draft.Analysis.Fields; len(all) != 2 || all[0].Type != "string" || len(all[0].Values) != 0 || len(all[1].Values) != 2 {
		t.Errorf("%+v", all)
	}
	for want, form := range map[string][]string{
		`id="f-name-error"`: {"name", "two words", "type", "string"}, `id="f-values-error"`: {"name", "x", "type", "enum"}, `id="f-type-error"`: {"name", "x", "type", "date"},
	} {
		if again := b.Post(at, form...); again.Status != http.StatusUnprocessableEntity || !strings.Contains(again.Body, want) {
			t.Errorf("%v: %d %s", form, again.Status, again.Text())
		}
	}
	b.Follow(at+"?n=2", "remove", "on")
	if all := read(t, h).Draft.Analysis.Fields; len(all) != 1 || all[0].Name != "topic" {
		t.Errorf("%+v", all)
	}
}

// TestDiffPage compares versions and the draft by fields; texts by lines, secrets without their values.
func TestDiffPage(t *testing.T) {
	h := dashtest.New(t)
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	at := "agents/" + a.ID
	if page := b.Get(at + "/diff"); !strings.Contains(page.Text(), "No published version yet") {
		t.Errorf("%s", page.Text())
	}
	b.Follow(at + "/publish")
	if page := b.Get(at + "/diff"); !strings.Contains(page.Text(), "No difference") {
		t.Errorf("%s", page.Text())
	}
	b.Follow(at+"/text", "text", `greeting: Good day.
prompt: "Be kind.\nSell."
speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake, voice: ada}}
tools: [{type: http, name: find, description: d, url: "https://crm.example.com/f", headers: {X-Key: another}, parameters: {type: object, required: [a]}}]`)
	page := b.Get(at + "/diff")
	for _, want := range []string{`aria-label="removed">−</span></td><td class="text">Hello {{name}}.`, `aria-label="added">+</span></td><td class="text">Sell.`, "The secret differs.", "Voice voice"} {
		if !strings.Contains(page.Body, want) {
			t.Errorf("%q is missing in %s", want, page.Body)
		}
	}
	if strings.Contains(page.Body, "canary") || strings.Contains(page.Body, "another") {
		t.Error("the page shows a secret")
	}
	if turned := b.Get(at + "/diff?from=draft&to=1"); !strings.Contains(turned.Body, `aria-label="added">+</span></td><td class="text">Hello {{name}}.`) {
		t.Errorf("%s", turned.Body)
	}
	for _, bad := range []string{"from=7", "to=0", "from=x"} {
		if page := b.Get(at + "/diff?" + bad); page.Status != http.StatusNotFound {
			t.Errorf("%s: %d", bad, page.Status)
		}
	}
}

var state = regexp.MustCompile(`name="state" value="([^"]*)"`)

// TestChatPage has a chat of two turns, and rejects changed and foreign states.
func TestChatPage(t *testing.T) {
	stub := &testerStub{}
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Tester = stub })
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	at := "agents/" + a.ID + "/chat"
	if page := b.Post(at, "message", "hi"); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Body, `id="f-variable.name-error"`) {
		t.Errorf("without a variable: %d %s", page.Status, page.Text())
	}
	page := b.Post(at, "message", "hi", "variable.name", "Ada")
	if page.Status != http.StatusOK || !strings.Contains(page.Text(), "Hello Ada.") || !strings.Contains(page.Text(), "you said hi") || stub.setup.CallServers {
		t.Fatalf("%d %s", page.Status, page.Text())
	}
	sealed := state.FindStringSubmatch(page.Body)[1]
	sealed = strings.NewReplacer("&#43;", "+", "&#34;", `"`).Replace(sealed)
	second := b.Post(at, "message", "bye", "state", sealed)
	if second.Status != http.StatusOK || !strings.Contains(second.Text(), "you said hi") || !strings.Contains(second.Text(), "you said bye") || !strings.Contains(second.Text(), "transferred to +12025550123") ||
		!strings.Contains(second.Text(), "This chat is over") || stub.messages != 2 {
		t.Errorf("%d %s", second.Status, second.Text())
	}
	for name, form := range map[string][]string{
		"empty": {"message", "", "state", sealed}, "long": {"message", strings.Repeat("a", 2001), "state", sealed},
		"changed": {"message", "x", "state", sealed[:60] + "AAAA" + sealed[64:]}, "garbage": {"message", "x", "state", "%%"},
	} {
		if page := b.Post(at, form...); page.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, page.Status, page.Text())
		}
	}
	if other := h.SignIn(t, "ada").Post(at, "message", "x", "state", sealed); other.Status != http.StatusUnprocessableEntity {
		t.Errorf("another operator: %d", other.Status)
	}
	b.Post(at, "message", "hi", "variable.name", "Ada", "servers", "on")
	if !stub.setup.CallServers || h.Count(t, "SELECT count(*) FROM audit_log WHERE action = 'agent.chat'") != 1 {
		t.Error("requests to servers of tools are not in the audit log")
	}
}
