package agents_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/pipeline"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const agentYAML = `organizations:
- name: acme
  agents:
  - name: sales
    greeting: Hello {{name}}.
    speech: {asr: {provider: fake}, llm: {provider: fake, fallback: {provider: other}}, tts: {provider: fake}}
    analysis: {fields: [{name: topic, type: enum, values: [a, b]}]}
    tools:
    - {type: http, name: find, description: d, url: "https://crm.example.com/f", headers: {X-Key: canary}, parameters: {type: object, required: [a]}}
`

// sales is an agent with a tool that has a secret header.
func sales(t *testing.T, h *dashtest.Env) agents.Agent {
	t.Helper()
	spec, err := apply.Parse(strings.NewReader(agentYAML))
	if err == nil {
		err = apply.Apply(t.Context(), h.DB.Pool, spec, apply.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return read(t, h)
}

func read(t *testing.T, h *dashtest.Env) agents.Agent {
	t.Helper()
	a, err := agents.Find(t.Context(), h.DB.Pool, h.Acme, "sales")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestFormKeepsOtherSettings checks that the form does not change settings that it does not contain.
func TestFormKeepsOtherSettings(t *testing.T) {
	h := dashtest.New(t)
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	at := "agents/" + a.ID
	b.Follow(at+"/edit", "greeting", "Good day.\r\nThis is Acme.", "prompt", "Sell.", "voicemail", "hangup", "speech.asr.provider", "fake", "speech.llm.provider", "fake", "speech.llm.model", "big",
		"speech.tts.provider", "fake", "speech.tts.voice", "ada", "variables", "who = there\n\ncity=Rome", "max_duration_s", "600", "patience", "quick", "summary", "on")
	d := read(t, h).Draft
	if d.Greeting != "Good day.\nThis is Acme." || d.Recording || d.MaxDurationS != 600 || d.Patience != "quick" || d.Variables["city"] != "Rome" || !d.Analysis.Summary || d.Analysis.Success || d.Speech.LLM.Model != "big" {
		t.Errorf("%+v", d)
	}
	if len(d.Tools) != 1 || d.Tools[0].Headers["X-Key"] != "canary" || len(d.Analysis.Fields) != 1 || d.Speech.LLM.Fallback == nil || d.Speech.LLM.Fallback.Provider != "other" {
		t.Errorf("other settings changed: %+v", d)
	}
	for field, bad := range map[string]string{"voicemail": "shout", "patience": "slow", "variables": "no value", "max_duration_s": "5", "greeting": "{{a b}}", "speech.asr.provider": ""} {
		form := map[string]string{"voicemail": "hangup", "speech.asr.provider": "fake", "speech.llm.provider": "fake", "speech.tts.provider": "fake", field: bad}
		var pairs []string
		for k, v := range form {
			pairs = append(pairs, k, v)
		}
		if a := b.Post(at+"/edit", pairs...); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `class="error" id="f-`+field+`-error"`) {
			t.Errorf("%s %q: %d %s", field, bad, a.Status, a.Text())
		}
	}
}

// TestEditYAML checks that the YAML of an agent round-trips. Secrets are hidden and are not sent to another server; missing keys
// get their defaults.
func TestEditYAML(t *testing.T) {
	h := dashtest.New(t)
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	at := "agents/" + a.ID + "/text"
	text, err := apply.FromAgent(a).YAML()
	if err != nil || strings.Contains(text, "canary") || !strings.Contains(text, apply.HiddenSecret) || strings.Contains(text, "null") {
		t.Fatalf("%s, %v", text, err)
	}
	if page := b.Get(at); strings.Contains(page.Body, "canary") {
		t.Error("the page shows a secret")
	}
	b.Follow(at, "text", text)
	if d := read(t, h).Draft; d.Tools[0].Headers["X-Key"] != "canary" || string(d.Tools[0].Parameters) != string(a.Draft.Tools[0].Parameters) {
		t.Errorf("%+v", d.Tools)
	}
	if again := b.Post(at, "text", strings.Replace(text, "crm.example.com", "evil.example.com", 1)); again.Status != http.StatusUnprocessableEntity || !strings.Contains(again.Text(), "enter the value") {
		t.Errorf("a secret is sent to another server: %d %s", again.Status, again.Text())
	}
	for bad, want := range map[string]string{"greting: hi": "greting", ": [": "YAML", "name: other": "cannot be changed", "voicemail: shout": "voicemail", "tools: [{type: nonsense}]": "Tools[0]: type"} {
		if again := b.Post(at, "text", bad); again.Status != http.StatusUnprocessableEntity || !strings.Contains(again.Text(), want) {
			t.Errorf("%q: %d %s", bad, again.Status, again.Text())
		}
	}
	b.Follow(at, "text", "speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}")
	if d := read(t, h).Draft; len(d.Tools) != 0 || d.Greeting != "" || !d.Recording || !d.Analysis.Summary || len(d.Analysis.Fields) != 0 {
		t.Errorf("%+v", d)
	}
	if log := h.Text(t, "SELECT string_agg(a::text, ' ') FROM audit_log a"); strings.Contains(log, "canary") {
		t.Errorf("the audit log has a secret: %s", log)
	}
}

// TestVersions publishes two versions, restores the first as draft, unpublishes and deletes.
func TestVersions(t *testing.T) {
	h := dashtest.New(t)
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	at := "agents/" + a.ID
	b.Follow(at + "/publish")
	b.Follow(at+"/text", "text", "greeting: Two.\nspeech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}")
	b.Follow(at + "/publish")
	if page := b.Follow(at + "/versions/2"); !strings.Contains(page.Text(), "Draft restored from version 2. It equals the published version.") {
		t.Errorf("%s", page.Text())
	}
	if page := b.Follow(at + "/versions/1"); !strings.Contains(page.Text(), "Draft restored from version 1. Publish it to use it in new calls.") {
		t.Errorf("%s", page.Text())
	}
	if got := read(t, h); got.Published != 2 || got.Draft.Greeting != "Hello {{name}}." || got.Draft.Tools[0].Headers["X-Key"] != "canary" {
		t.Errorf("%+v", got)
	}
	for _, n := range []string{"3", "0", "x", "99999999999999999999"} {
		if page := b.Get(at + "/versions/" + n); page.Status != http.StatusNotFound {
			t.Errorf("version %s: %d", n, page.Status)
		}
	}
	b.Follow(at + "/unpublish")
	if got := read(t, h); got.Published != 0 {
		t.Errorf("%+v", got)
	}
	if page := b.Follow(at + "/versions/2"); !strings.Contains(page.Text(), "Publish it to use it in new calls.") {
		t.Errorf("%s", page.Text())
	}
	b.Follow(at + "/delete")
	if _, err := agents.ByID(t.Context(), h.DB.Pool, h.Acme, a.ID); err == nil {
		t.Error("the deleted agent exists")
	}
}

// TestConcurrentEdits checks that of two concurrent edits the second is rejected with the current values, and keeps the typed ones.
func TestConcurrentEdits(t *testing.T) {
	h := dashtest.New(t)
	a := sales(t, h)
	oscar, ada := h.SignIn(t, "oscar"), h.SignIn(t, "ada")
	at := "agents/" + a.ID + "/edit"
	seen := func(page dashtest.Answer) string {
		m := regexp.MustCompile(`name="seen" value="([0-9a-f]{32})"`).FindStringSubmatch(page.Body)
		if m == nil {
			t.Fatalf("%d %s", page.Status, page.Text())
		}
		return m[1]
	}
	form := func(seen, greeting string) []string {
		return []string{"seen", seen, "greeting", greeting, "voicemail", "hangup", "speech.asr.provider", "fake", "speech.llm.provider", "fake", "speech.tts.provider", "fake"}
	}
	first := seen(oscar.Get(at))
	ada.Follow(at, form(seen(ada.Get(at)), "Ada’s.")...)
	page := oscar.Post(at, form(first, "Oscar’s.")...)
	if page.Status != http.StatusConflict || !strings.Contains(page.Text(), "someone else changed this") || !strings.Contains(page.Body, "Oscar’s.</textarea>") ||
		!strings.Contains(page.Body, `id="f-greeting-newer"><small>Current value:</small><pre>Ada’s.</pre>`) || strings.Contains(page.Body, "f-prompt-newer") || seen(page) == first {
		t.Errorf("%d %s", page.Status, page.Body)
	}
	if text := oscar.Post("agents/"+a.ID+"/text", "seen", first, "text", "greeting: Text."); text.Status != http.StatusConflict {
		t.Errorf("as YAML: %d %s", text.Status, text.Text())
	}
	if d := read(t, h).Draft; d.Greeting != "Ada’s." {
		t.Errorf("the greeting is %q", d.Greeting)
	}
	oscar.Follow(at, form(seen(page), "Oscar’s.")...)
	if d := read(t, h).Draft; d.Greeting != "Oscar’s." {
		t.Errorf("the greeting is %q", d.Greeting)
	}
	last := seen(oscar.Get(at)) // two submissions at the same time
	var saved atomic.Int64
	var both sync.WaitGroup
	for i, b := range []*dashtest.Browser{oscar, ada} {
		both.Go(func() {
			if b.Post(at, form(last, strconv.Itoa(i))...).Status == http.StatusSeeOther {
				saved.Add(1)
			}
		})
	}
	both.Wait()
	if saved.Load() != 1 {
		t.Errorf("%d edits were saved, want 1", saved.Load())
	}
}

// TestConcurrentSecretEdits checks that a concurrent change of a tool's header is detected and logged, although
// neither the page nor the log shows the value.
func TestConcurrentSecretEdits(t *testing.T) {
	h := dashtest.New(t)
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	at := "agents/" + a.ID + "/text"
	seen := func() string {
		m := regexp.MustCompile(`name="seen" value="([0-9a-f]{32})"`).FindStringSubmatch(b.Get(at).Body)
		if m == nil {
			t.Fatal("the form has no digest of its object")
		}
		return m[1]
	}
	text := func(token string) string {
		return "greeting: Hello.\nspeech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}\ntools: [{name: look_up, type: http, description: Looks up., url: \"https://crm.example.com/x\", headers: {Authorization: " + token + "}}]"
	}
	b.Follow(at, "seen", seen(), "text", text("canary"))
	first := seen()
	b.Follow(at, "seen", first, "text", text("another"))
	if a := b.Post(at, "seen", first, "text", text("a third")); a.Status != http.StatusConflict || read(t, h).Draft.Tools[0].Headers["Authorization"] != "another" {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	if after := h.Text(t, "SELECT after::text FROM audit_log ORDER BY id DESC LIMIT 1"); after != `{"headers of tools": "changed"}` {
		t.Errorf("the audit log has %s", after)
	}
}

// TestTestCall checks that a test call passes the checks of the API, once per form.
func TestTestCall(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	b := h.SignIn(t, "oscar")
	at := "agents/" + ids["agents"] + "/call"
	if page := b.Get(at).Body; !strings.Contains(page, `name="variable.first_name" value="" required`) {
		t.Errorf("a variable without a default is optional: %s", page)
	}
	for _, bad := range []struct {
		name, want string
		form       []string
	}{
		{"forbidden destination", `id="f-to-error"`, []string{"to", "+44 20 7946 0000", "variable.first_name", "Ada"}},
		{"no number", `id="f-to-error"`, []string{"to", "none", "variable.first_name", "Ada"}},
		{"missing variable", "Required.", []string{"to", "+12025550177"}},
		{"long variable", `id="f-variable.first_name-error"`, []string{"to", "+12025550177", "variable.first_name", strings.Repeat("a", 2001)}},
	} {
		if a := b.Post(at, append(bad.form, "once", "a")...); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, bad.want) {
			t.Errorf("%s: %d %s", bad.name, a.Status, a.Text())
		}
	}
	form := []string{"to", "+12025550177", "variable.first_name", "Ada"}
	if a := b.Post(at, form...); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a form without its key: %d %s", a.Status, a.Text())
	}
	form = append(form, "once", "a")
	a := b.Post(at, form...)
	if a.Status != http.StatusSeeOther || !strings.Contains(a.Location(), "/calls/call_") {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	if again := b.Post(at, form...); again.Location() != a.Location() {
		t.Errorf("again: %d %s, the first was %s", again.Status, again.Location(), a.Location())
	}
	if other := b.Post(at, "to", "+12025550178", "variable.first_name", "Ada", "once", "a"); other.Status != http.StatusUnprocessableEntity {
		t.Errorf("another number with the same form: %d", other.Status)
	}
	var n int
	var status, name string
	err := h.DB.Pool.QueryRow(t.Context(), "SELECT count(*), max(status), max(variables->>'first_name') FROM calls WHERE to_number LIKE '1202555017_'").Scan(&n, &status, &name)
	if err != nil || n != 1 || status != "queued" || name != "Ada" {
		t.Errorf("%d %s %s, %v", n, status, name, err)
	}
}

// TestDestinations shows where an agent may call: countries by name, digits after a +.
func TestDestinations(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	h.Exec(t, "UPDATE subgroups SET allowed_destinations = '{US,44}' WHERE id = $1", ids["subgroups"])
	if a := h.SignIn(t, "oscar").Get("agents/" + ids["agents"]); !strings.Contains(a.Text(), "US, +44") || strings.Contains(a.Text(), "+US") {
		t.Errorf("%d %s", a.Status, a.Text())
	}
}

// TestTestCallCapacity checks that a test call is rejected if the API would refuse it for lack of capacity.
func TestTestCallCapacity(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Dashboard.Calls.Admission = &admission.Controller{Pool: h.DB.Pool, Store: h.Dashboard.Store, QueueDepth: 1}
	})
	ids := h.Furnish(t, "sales")
	b := h.SignIn(t, "oscar")
	for once, want := range []int{http.StatusSeeOther, http.StatusUnprocessableEntity} {
		if a := b.Post("agents/"+ids["agents"]+"/call", "to", "+12025550177", "variable.first_name", "Ada", "once", strconv.Itoa(once)); a.Status != want {
			t.Errorf("%d: %d %s", once, a.Status, a.Text())
		}
	}
}

// providersStub is a ProviderChecker with fixed results.
type providersStub struct {
	refused error
	probes  int
}

func (p *providersStub) Probe(context.Context, string, pipeline.Engines)          { p.probes++ }
func (*providersStub) Save(context.Context, db.Querier, string, pipeline.Engines) {}
func (p *providersStub) Check(context.Context, db.Querier, string, agents.Definition) error {
	return p.refused
}

func (p *providersStub) Warnings(string, agents.Definition) []string {
	return []string{"voice azure: no response in time"}
}

// TestPublishRejected checks that a draft whose providers refuse it is not published, and that the page says why. A
// failure that may pass is shown as a warning.
func TestPublishRejected(t *testing.T) {
	p := &providersStub{refused: errors.New(`speech.asr.provider: "deepgrm" is not a configured provider; accepted: deepgram`)}
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Agents = p })
	a := sales(t, h)
	b := h.SignIn(t, "oscar")
	b.Follow("agents/"+a.ID+"/text", "text", "greeting: Three.\nspeech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}")
	before := read(t, h).Published
	if page := b.Follow("agents/" + a.ID + "/publish"); !strings.Contains(page.Text(), "Not published: speech.asr.provider") || !strings.Contains(page.Text(), "accepted: deepgram") {
		t.Errorf("%s", page.Text())
	}
	if got := read(t, h).Published; got != before {
		t.Errorf("version %d is published", got)
	}
	if page := b.Get("agents/" + a.ID + "/publish"); !strings.Contains(page.Text(), "Calls with this draft cannot start") || !strings.Contains(page.Body, `name="force"`) {
		t.Errorf("%s", page.Text())
	}
	forced := b.Follow("agents/"+a.ID+"/publish", "force", "on")
	if got := read(t, h).Published; got != before+1 || !strings.Contains(forced.Text(), "Calls with it cannot start: speech.asr.provider") {
		t.Errorf("version %d is published: %s", got, forced.Text())
	}
	if entry := h.Text(t, "SELECT after->>'forced' FROM audit_log ORDER BY id DESC LIMIT 1"); !strings.Contains(entry, "deepgrm") {
		t.Errorf("the audit log has %q", entry)
	}
	b.Follow("agents/"+a.ID+"/text", "text", "greeting: Four.\nspeech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}")
	before++
	p.refused, p.probes = nil, 0
	page := b.Follow("agents/" + a.ID + "/publish")
	if got := read(t, h).Published; got == before || p.probes != 1 || !strings.Contains(page.Text(), "Warning: voice azure: no response in time.") {
		t.Errorf("version %d is published after %d probes: %s", got, p.probes, page.Text())
	}
}
