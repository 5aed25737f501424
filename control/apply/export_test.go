package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// withProviders adds endpoints and a tool with a secret header to whole.
const withProviders = `
providers: [{name: gate, kind: chat, url: "https://gate.example/v1", key: canary-key, headers: {X-Team: canary-header}, model: m}]` + whole + `
  providers: [{name: own, kind: chat, url: "https://own.example/v1", key: canary-own, model: m}]
- name: initech
  agents:
  - name: clerk
    speech: {asr: {provider: fake}, llm: {provider: fake, fallback: {provider: gate}}, tts: {provider: fake}}
    tools: [{type: http, name: look, description: Look it up., parameters: {type: object, properties: {n: {type: integer, minimum: 0, default: ""}}}, url: "https://crm.example/", headers: {Key: canary-tool}}]
  trunks: [{name: spare, proxy: "sip:192.0.2.7", rates: {"7": 0}, username: v, password: canary-trunk, realm: r}]
`

func plan(t *testing.T, d *db.DB, text string, o apply.Options) (lines []string, err error) {
	t.Helper()
	s, err := apply.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	o.AllowInsecure = true
	o.Plan = func(all []apply.Change) {
		for _, c := range all {
			lines = append(lines, c.String())
		}
	}
	return lines, apply.Apply(t.Context(), d.Pool, s, o)
}

// TestExport checks that an exported file changes nothing in its database, and holds no secret.
func TestExport(t *testing.T) {
	d := dbtest.New(t)
	put(t, d, withProviders, apply.Options{AllowInsecure: true})
	before := dump(t, d)
	s, err := apply.Read(t.Context(), d.Pool)
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	if err = s.Write(&file); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"canary", "whsec_", "password: p"} {
		if strings.Contains(file.String(), secret) {
			t.Errorf("the file contains %s", secret)
		}
	}
	if n := strings.Count(file.String(), `[secret]`); n != 8 { // one in the comment
		t.Errorf("%d secrets are marked in\n%s", n, &file)
	}
	for _, prune := range []bool{false, true} {
		if lines, fault := plan(t, d, file.String(), apply.Options{Prune: prune}); fault != nil || len(lines) > 0 {
			t.Errorf("planned: %v, %v", lines, fault)
		}
	}
	put(t, d, file.String(), apply.Options{AllowInsecure: true, Prune: true})
	if after := dump(t, d); after != before {
		t.Errorf("the exported file changed\n%s\nto\n%s", before, after)
	}
	if _, err = plan(t, dbtest.New(t), file.String(), apply.Options{}); err == nil || !strings.Contains(err.Error(), "enter the secret") {
		t.Errorf("in another database: %v", err)
	}
	moved := strings.Replace(file.String(), "sip:192.0.2.7", "sip:192.0.2.8", 1)
	if _, err = plan(t, d, moved, apply.Options{}); err == nil || !strings.Contains(err.Error(), `trunk "spare": password: no secret is stored`) {
		t.Errorf("the secret of another proxy: %v", err)
	}
}

// TestPlan checks the lines of a plan, and that a plan changes nothing.
func TestPlan(t *testing.T) {
	d := dbtest.New(t)
	put(t, d, withProviders, apply.Options{AllowInsecure: true})
	before := dump(t, d)
	lines, err := plan(t, d, `
organizations:
- name: acme
  timezone: America/Chicago
  suppression: []
  agents: [{name: sales, greeting: Hi., recording: false}, {name: new, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks: [{name: main, password: canary-other, codecs: [pcmu], limits: {calls_per_second: 7, concurrent_calls: 100}, subgroups: [{name: default, agents: [sales], calls_per_minute: 60}]}]
- name: globex
- name: umbrella
  agents: [{name: bot, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks: [{name: out, proxy: "sip:192.0.2.9", password: canary-new, subgroups: [{name: default, agents: [bot], allowed_destinations: [US]}]}]
`, apply.Options{Prune: true})
	want := []string{
		"~ organizations[acme].agents[sales].greeting: \"Hello, this is Parley.\" → \"Hi.\"",
		"~ organizations[acme].agents[sales].recording: true → false",
		"- organizations[acme].agents[sales].published: true",
		"+ organizations[acme].agents[new]",
		"- organizations[acme].suppression: [\"+12025550199\"]",
		"~ organizations[acme].timezone: \"America/New_York\" → \"America/Chicago\"",
		"~ organizations[acme].trunks[main].codecs: [\"g722\",\"pcmu\"] → [\"pcmu\"]",
		"~ organizations[acme].trunks[main].limits.calls_per_second: 5 → 7",
		"~ organizations[acme].trunks[main].password: the secret changes",
		"~ organizations[acme].trunks[main].subgroups[default].calls_per_minute: 30 → 60",
		"- organizations[globex].agents[helpdesk]",
		"+ organizations[umbrella]",
		"+ organizations[umbrella].agents[bot]",
		"+ organizations[umbrella].trunks[out]",
		"+ organizations[umbrella].trunks[out].subgroups[default]",
		"- organizations[initech]",
	}
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() || err != nil {
		t.Errorf("%v\n%s", err, strings.Join(lines, "\n"))
	}
	if strings.Contains(fmt.Sprint(lines), "canary") {
		t.Error("the plan shows a secret")
	}
	if after := dump(t, d); after != before {
		t.Error("the plan changed the database")
	}
}
