package apply_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/safedial"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const whole = `
organizations:
- name: acme
  timezone: America/New_York
  market: us
  calling_window: {days: [0,1,2,3,4,5,6], start: "09:00", end: "21:00"}
  frequency_caps: {enabled: true, daily: 3, rolling_7d: 7}
  suppression: ["+12025550199"]
  webhooks: [{url: "http://127.0.0.1:9099/hook", secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", events: [call_ended, call_analyzed]}]
  agents:
  - name: sales
    published: true
    greeting: "Hello, this is Parley."
    prompt: "…"
    voicemail: hangup
    patience: careful
    recording: true
    analysis: {summary: true, success: true, fields: [{name: interested, type: boolean}]}
    speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}
  trunks:
  - name: main
    proxy: "sip:127.0.0.1:5080;transport=udp"
    username: u
    password: p
    caller_numbers: ["+12025550100"]
    limits: {calls_per_second: 5, concurrent_calls: 100}
    backups: ["sip:127.0.0.2:5080"]
    register: true
    codecs: [g722, pcmu]
    encryption: srtp
    dtmf: inband
    media_sources: ["203.0.113.0/24"]
    first_media_timeout_s: 60
    media_timeout_s: 90
    asserted_identity: true
    privacy: true
    diversion: "+12025550101"
    headers: {X-Customer: "acme 7"}
    realm: carrier.example
    provider: Carrier Inc
    rates: {"1": 0.01, "": 0.5}
    subgroups:
    - {name: default, dial_prefix: "", allowed_destinations: ["1"], agents: [sales], concurrent_calls: 10, calls_per_minute: 30}
  grants:
  - {trunk: main, to: globex, caller_numbers: ["+12025550100"], concurrent_calls: 5, calls_per_minute: 10}
- name: globex
  limits: {daily_calls: 1000, daily_cost: 12.5}
  agents: [{name: helpdesk, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  granted_trunks:
  - {trunk: main, of: acme, subgroups: [{name: default, agents: [helpdesk]}]}
`

func put(t *testing.T, d *db.DB, text string, o apply.Options) {
	t.Helper()
	s, err := apply.Parse(strings.NewReader(text))
	if err == nil {
		err = apply.Apply(t.Context(), d.Pool, s, o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// dump returns the contents of all tables that Apply writes, as text.
func dump(t *testing.T, d *db.DB) string {
	t.Helper()
	var text string
	err := d.Pool.QueryRow(t.Context(), `SELECT concat_ws(E'\n',
		(SELECT json_agg(o ORDER BY name) FROM organizations o), (SELECT json_agg(s) FROM suppressions s),
		(SELECT json_agg(w ORDER BY url) FROM webhook_endpoints w), (SELECT json_agg(v ORDER BY version) FROM agent_versions v),
		(SELECT json_agg(json_build_array(id, name, draft, published_version) ORDER BY name) FROM agents),
		(SELECT json_agg(t ORDER BY name) FROM trunks t), (SELECT json_agg(s ORDER BY grant_id) FROM subgroups s), (SELECT json_agg(a) FROM subgroup_agents a),
		(SELECT json_agg(g) FROM grants g))`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestApplyIsIdempotent(t *testing.T) {
	d := dbtest.New(t)
	o := apply.Options{AllowInsecure: true}
	put(t, d, whole, o)
	first := dump(t, d)
	for _, want := range []string{"America/New_York", `"12025550199"`, `"market": "us"`, `"daily_cost": 12.5`, `"rolling_7d": 7`, `"calls_per_minute":10`, `"concurrent_calls":100`, `"patience": "careful"`, "interested", "sip:127.0.0.1:5080"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %s in\n%s", want, first)
		}
	}
	put(t, d, whole, o)
	if again := dump(t, d); again != first {
		t.Errorf("the second time changed\n%s\nto\n%s", first, again)
	}
}

func TestApplyChangesWhatIsGiven(t *testing.T) {
	d := dbtest.New(t)
	put(t, d, whole, apply.Options{AllowInsecure: true})
	org, err := apikeys.FindOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	find := func() agents.Agent {
		t.Helper()
		a, err := agents.Find(t.Context(), d.Pool, org, "sales")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	put(t, d, `organizations: [{name: acme, suppression: [], agents: [{name: sales, greeting: "Hi."}]}]`, apply.Options{})
	if a := find(); a.Draft.Greeting != "Hi." || a.Draft.Prompt != "…" || a.Published != 1 || !a.Draft.Recording {
		t.Errorf("after a new greeting: %+v", a)
	}
	put(t, d, `organizations: [{name: acme, agents: [{name: sales, published: true}]}]`, apply.Options{})
	if a := find(); a.Published != 2 {
		t.Errorf("after publishing: version %d", a.Published)
	}
	put(t, d, `organizations: [{name: acme, agents: [{name: sales, published: false}]}]`, apply.Options{})
	if a := find(); a.Published != 0 {
		t.Errorf("after unpublishing: version %d", a.Published)
	}
	put(t, d, `organizations: [{name: acme, agents: [{name: sales, published: true}]}]`, apply.Options{})
	if a := find(); a.Published != 2 {
		t.Errorf("the same draft published again is version %d", a.Published)
	}
	text := dump(t, d)
	if strings.Contains(text, "12025550199") || !strings.Contains(text, "sip:127.0.0.1:5080") || !strings.Contains(text, "9099/hook") {
		t.Errorf("suppression replaces, what is not named stays:\n%s", text)
	}
	put(t, d, `organizations: [{name: acme, trunks: [{name: main, subgroups: [{name: second, agents: []}]}]}]`, apply.Options{Prune: true})
	text = dump(t, d)
	if strings.Contains(text, `"name":"globex"`) || strings.Contains(text, `"sales"`) || strings.Contains(text, `"default"`) || !strings.Contains(text, `"second"`) || !strings.Contains(text, `"u"`) {
		t.Errorf("after pruning:\n%s", text)
	}
}

// line is a CheckTrunk function that rejects the header Via.
func line(t media.Trunk) error {
	if t.Headers["Via"] != "" {
		return errors.New("header Via cannot be set")
	}
	return nil
}

func TestApplyKeepsATrunksSettings(t *testing.T) {
	d := dbtest.New(t)
	put(t, d, whole, apply.Options{AllowInsecure: true})
	want := media.Trunk{
		Proxy: "sip:127.0.0.1:5080;transport=udp", Backups: []string{"sip:127.0.0.2:5080"}, Username: "u", Password: "p",
		Realm: "carrier.example", Register: true, Codecs: []string{"G722", "PCMU"}, Encryption: media.Encrypted, Keys: media.InBand,
		Asserted: true, Private: true, Diversion: "+12025550101", Headers: map[string]string{"X-Customer": "acme 7"},
		MediaSources: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, FirstMedia: time.Minute, MediaGap: 90 * time.Second,
	}
	check := func() {
		t.Helper()
		all, err := trunks.All(t.Context(), d.Pool)
		if err != nil || len(all) != 1 || !reflect.DeepEqual(all[0].MediaTrunk(), want) {
			t.Errorf("%+v, %v, want %+v", all, err, want)
		}
	}
	check()
	put(t, d, `organizations: [{name: acme, trunks: [{name: main, encryption: none, headers: {}, backups: []}]}]`, apply.Options{})
	want.Encryption, want.Headers, want.Backups = media.Plain, nil, nil
	check()
}

func TestApplyIsAllOrNothing(t *testing.T) {
	d := dbtest.New(t)
	before := dump(t, d)
	for text, want := range map[string]string{
		`organizations: [{name: a, agents: [{name: x, published: true}]}]`:                                                         "speech",
		`organizations: [{name: a, trunks: [{name: x}]}]`:                                                                          "proxy",
		`organizations: [{name: a, trunks: [{name: x, proxy: "sip:h", subgroups: [{name: s, agents: [nobody]}]}]}]`:                "nobody",
		`organizations: [{name: a, trunks: [{name: x, proxy: "sip:h", password: "a\r\nb"}]}]`:                                      "control character",
		`organizations: [{name: a, trunks: [{name: x, proxy: "sip:h", register: true}]}]`:                                          "needs a username",
		`organizations: [{name: a, trunks: [{name: x, proxy: "sip:h", codecs: [opus]}]}]`:                                          "use pcmu, pcma, g722",
		`organizations: [{name: a, trunks: [{name: x, proxy: "sip:h", headers: {Via: there}}]}]`:                                   "header Via cannot be set",
		`organizations: [{name: a, webhooks: [{url: "http://x/", secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}]}]`: "https",
		`organizations: [{name: a, webhooks: [{url: "https://x/", secret: "canary"}]}]`:                                            "whsec_",
	} {
		s, err := apply.Parse(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		err = apply.Apply(t.Context(), d.Pool, s, apply.Options{CheckTrunk: line})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want something about %s", text, err, want)
		}
	}
	if dump(t, d) != before {
		t.Error("a refused file left something behind")
	}
}

func TestParseNamesThePath(t *testing.T) {
	for text, want := range map[string][]string{
		``:                  {"empty"},
		`{`:                 {"YAML"},
		`[]`:                {"the file", "keys and values"},
		`orgs: []`:          {"orgs", "line 1", "known here: providers, organizations"},
		`organizations: {}`: {"organizations", "a list"},
		`organizations: [{name: a, agents: [{name: x, greting: hi}]}]`:                                {"organizations[0].agents[0].greting", "unknown key; did you mean greeting? known here: name,", "greeting, prompt"},
		`organizations: [{name: a, trunks: [{name: x, subgroups: [{name: s, destinations: [US]}]}]}]`: {"subgroups[0].destinations", "did you mean allowed_destinations?"},
		`organizations: [{name: a, coffee: 1}]`:                                                       {"organizations[0].coffee", "unknown key; known here: name, timezone"},
		`organizations: [{name: a, agents: [{name: x, published: maybe}]}]`:                           {"organizations[0].agents[0].published", "true or false"},
		`organizations: [{name: a, agents: [{name: x, speech: {llm: {"-": x}}}]}]`:                    {"organizations[0].agents[0].speech.llm.-", "unknown key"},
		`organizations: [{name: a, frequency_caps: {daily: three}}]`:                                  {"organizations[0].frequency_caps.daily", "whole number"},
		`organizations: [{name: a, frequency_caps: {daily: 0}}]`:                                      {"organizations[0].frequency_caps", "at least 1"},
		`organizations: [{name: a, timezone: EST}]`:                                                   {"organizations[0].timezone", "America/New_York"},
		`organizations: [{name: a, market: de}]`:                                                      {"organizations[0].market", "us, kz"},
		`organizations: [{name: a, agents: [{name: x, voicemail: shout}]}]`:                           {"organizations[0].agents[0].voicemail", "hangup, leave_message, continue"},
		`organizations: [{name: a, calling_window: {days: [7], start: "09:00", end: "10:00"}}]`:       {"organizations[0].calling_window.days"},
		`organizations: [{name: a, calling_window: {days: [1], start: "10:00", end: "09:00"}}]`:       {"organizations[0].calling_window", "before"},
		`organizations: [{name: a, suppression: ["12"]}]`:                                             {"organizations[0].suppression[0]"},
		`organizations: [{name: a}, {name: a}]`:                                                       {"organizations[1].name", "twice"},
		`organizations: [{timezone: UTC}]`:                                                            {"organizations[0].name", "missing"},
		"organizations: [{name: a, name: b}]":                                                         {"organizations[0].name", "twice"},
		"organizations: []\n---\norganizations: []":                                                   {"more than one document"},
		`organizations: [{name: a, trunks: [{name: x, headers: [a]}]}]`:                               {"organizations[0].trunks[0].headers", "keys and values"},
		`organizations: [{name: a, trunks: [{name: x, headers: {X-A: 1, X-A: 2}}]}]`:                  {"organizations[0].trunks[0].headers.X-A", "twice"},
		`organizations: [{name: a, trunks: [{name: x, headers: {X-A: [b]}}]}]`:                        {"organizations[0].trunks[0].headers.X-A", "a text"},
		`organizations: [{name: a, trunks: [{name: x, headers: {[X]: b}}]}]`:                          {"organizations[0].trunks[0].headers", "a key must be a string"},
		`organizations: [{name: a, trunks: [{name: x, register: often}]}]`:                            {"organizations[0].trunks[0].register", "true or false"},
		`organizations: [{name: a, grants: [{trunk: t}]}]`:                                            {"organizations[0].grants[0]"},
	} {
		_, err := apply.Parse(strings.NewReader(text))
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v, want %q in it", text, err, w)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("organizations: [{name: a, agents: [{name: x, analysis: {fields: [{a: [1, 2.5, null, .inf]}]}}]}]")
	f.Add("organizations: &a [*a]")
	f.Add("organizations: [{name: a, trunks: [{name: x, headers: {[a]: b, *c : d, ? e}}]}]")
	f.Add("? [a]\n: b")
	f.Add("organizations: !!binary aGk=")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := apply.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, o := range s.Organizations {
			if strings.TrimSpace(o.Name) == "" {
				t.Errorf("%q: an organization without a name", text)
			}
		}
	})
}

// TestTools checks that tools are stored completely. If the host of a tool is not allowed, the error must contain the
// path of the tool.
func TestTools(t *testing.T) {
	const file = `organizations:
- name: a
  agents:
  - name: x
    speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}
    pronunciation: {Acme: "ack me"}
    limits: {turns: 3}
    analysis: {fields: [{name: topic, type: enum, values: [a, b]}]}
    tools:
    - {type: transfer_call, destinations: [{label: sales, number: "+12025550111"}]}
    - {type: http, name: f, description: d, url: "%s", headers: {X-Key: canary}, timeout_s: 1.5, parameters: {type: object, required: [a]}}
`
	d := dbtest.New(t)
	spec := func(url string) apply.Spec {
		s, err := apply.Parse(strings.NewReader(fmt.Sprintf(file, url)))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	err := apply.Apply(t.Context(), d.Pool, spec("http://crm.internal:80/f"), apply.Options{})
	if err == nil || !strings.Contains(err.Error(), `agent "x": tools[1]: f: url: use https://`) || strings.Contains(err.Error(), "canary") {
		t.Errorf("an inner host: %v", err)
	}
	if err = apply.Apply(t.Context(), d.Pool, spec("http://crm.internal:80/f"), apply.Options{Egress: safedial.Rules{Hosts: []string{"crm.internal"}}}); err != nil {
		t.Fatal(err)
	}
	var org string
	if err = d.Pool.QueryRow(t.Context(), "SELECT id FROM organizations WHERE name = 'a'").Scan(&org); err != nil {
		t.Fatal(err)
	}
	a, err := agents.Find(t.Context(), d.Pool, org, "x")
	if err != nil {
		t.Fatal(err)
	}
	got := a.Draft.ToolDefinitions()
	if len(got) != 2 || got[1].Headers["X-Key"] != "canary" || got[1].TimeoutS != 1.5 || !strings.Contains(string(got[1].Parameters), "required") ||
		got[0].Destinations[0].Label != "sales" || a.Draft.Limits.Turns != 3 || a.Draft.Pronunciation["Acme"] != "ack me" || len(a.Draft.Analysis.Fields) != 1 {
		t.Errorf("%+v", a.Draft)
	}
}

// TestRealmIsAdvised checks that Apply warns about a trunk with a username and without a realm.
func TestRealmIsAdvised(t *testing.T) {
	d := dbtest.New(t)
	if _, err := d.Pool.Exec(t.Context(), "INSERT INTO trunk_realms (proxy, realm) VALUES ('sip:b', 'b.example')"); err != nil {
		t.Fatal(err)
	}
	spec, err := apply.Parse(strings.NewReader(`organizations: [{name: a, trunks: [
		{name: one, proxy: "sip:a", username: u}, {name: two, proxy: "sip:b", username: u},
		{name: three, proxy: "sip:a", username: u, realm: x}, {name: four, proxy: "sip:a"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	if err := apply.Apply(t.Context(), d.Pool, spec, apply.Options{Warn: func(text string) { warned = append(warned, text) }}); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 2 || !strings.HasPrefix(warned[0], `trunk "one" has a username and no realm`) || !strings.Contains(warned[1], `the carrier's realm seems to be "b.example"`) {
		t.Errorf("warned of %q", warned)
	}
}

// TestMergeKeys checks that YAML merge keys (<<) work, and that the keys of merged mappings are validated.
func TestMergeKeys(t *testing.T) {
	s, err := apply.Parse(strings.NewReader(`
organizations:
- name: acme
  trunks:
  - &main {name: one, proxy: "sip:a", limits: &few {calls_per_second: 2, concurrent_calls: 7}, headers: &extra {X-A: a, X-B: b}}
  - {<<: *main, name: two, limits: {<<: *few, concurrent_calls: 9}, headers: {<<: [*extra, {X-C: c}], X-B: other}}
`))
	if err != nil {
		t.Fatal(err)
	}
	two := s.Organizations[0].Trunks[1]
	if two.Name != "two" || *two.Proxy != "sip:a" || *two.Limits.CallsPerSecond != 2 || *two.Limits.ConcurrentCalls != 9 ||
		!reflect.DeepEqual(*two.Headers, map[string]string{"X-A": "a", "X-B": "other", "X-C": "c"}) {
		t.Errorf("%+v, headers %v", two, *two.Headers)
	}
	for text, want := range map[string]string{
		"organizations: [&o {name: a, <<: {nme: b}}]":                                "organizations[0].nme (line 1): unknown key",
		"organizations: [{name: a, trunks: [{name: x, <<: {limits: 5}}]}]":           "trunks[0].limits (line 1): expected keys and values",
		"organizations: [{name: a, <<: b}]":                                          "expected keys and values",
		"organizations: [&o {name: a, <<: *o}]":                                      "merges itself",
		"organizations: [{name: a, <<: {name: b}, <<: {name: c}}]":                   "given twice",
		"organizations: [{name: a, trunks: [&t {name: x, headers: &h {<<: [*h]}}]}]": "merges itself",
	} {
		if _, err := apply.Parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestPlaceholders checks that each value to enter is found, also in secrets, and that comments are not.
func TestPlaceholders(t *testing.T) {
	s, err := apply.Parse(strings.NewReader(`
providers: [{name: llm, kind: openai, key: change-me}]
organizations:
- name: main   # change-me is only a comment
  agents:
  - name: one
    greeting: "This is CHANGE-ME."
    tools: [{type: http, name: look, description: d, url: "https://x.example/", headers: {Authorization: Bearer change-me}}, {type: end_call}]
  trunks:
  - {name: carrier, carrier: twilio, proxy: "sip:change-me.pstn.twilio.com", password: change-me, caller_numbers: ["+12025550100", change-me]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"organizations[main].agents[one].greeting", "organizations[main].agents[one].tools[0].headers.Authorization",
		"organizations[main].trunks[carrier].caller_numbers[1]", "organizations[main].trunks[carrier].password",
		"organizations[main].trunks[carrier].proxy", "providers[llm].key",
	}
	if got := apply.Placeholders(s); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCostlyDestinationsAreAdvised checks that the destination prefix "1" is accepted with a warning.
func TestCostlyDestinationsAreAdvised(t *testing.T) {
	d := dbtest.New(t)
	spec, err := apply.Parse(strings.NewReader(`organizations: [{name: a, trunks: [{name: one, proxy: "sip:a", subgroups: [
		{name: all, allowed_destinations: ["1", "44"]}, {name: safe, allowed_destinations: [US, CA, "1809", "1202", "7"]}, {name: some, allowed_destinations: ["180"]}]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	if err := apply.Apply(t.Context(), d.Pool, spec, apply.Options{Warn: func(text string) { warned = append(warned, text) }}); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 2 || !strings.HasPrefix(warned[0], `subgroup "all": allowed destination "1" also reaches`) || !strings.HasPrefix(warned[1], `subgroup "some": allowed destination "180"`) {
		t.Errorf("warned of %q", warned)
	}
}

// TestProvidersAreChecked checks that errors about invalid endpoints contain the path and no secrets, and that an
// organization's endpoint requires TLS.
func TestProvidersAreChecked(t *testing.T) {
	d := dbtest.New(t)
	for want, text := range map[string]string{
		"":                                                  `providers: [{name: a, kind: chat, url: "http://127.0.0.1/v1", headers: {X-Key: k}}, {name: b, kind: azure, key: k, region: eu}]`,
		`providers[0].name: "Groq": accepted`:               "providers: [{name: Groq, kind: chat}]",
		`providers[1].name: "a" is used twice`:              `providers: [{name: a, kind: deepgram, key: canary}, {name: a}]`,
		"providers[0].name is missing":                      "providers: [{kind: chat}]",
		`providers[0] (a): kind "x": accepted`:              "providers: [{name: a, kind: x, key: canary}]",
		"providers[0] (a): url is missing":                  "providers: [{name: a, kind: chat, key: canary}]",
		"providers[0] (a): key: contains":                   `providers: [{name: a, kind: deepgram, key: "canary\n"}]`,
		`providers[0] (a): headers: two names differ`:       `providers: [{name: a, kind: chat, url: "http://a", headers: {X-Y: canary, x-y: canary}}]`,
		`providers[0] (a): url: a query is not accepted`:    `providers: [{name: a, kind: chat, url: "http://a?key=canary"}]`,
		`providers[0].name: "a-flux": names that end in`:    `providers: [{name: a-flux, kind: chat, url: "http://a"}]`,
		`providers[0] (a): headers: "X Y" is not`:           `providers: [{name: a, kind: chat, url: "http://a", headers: {X Y: canary}}]`,
		"providers[0] (a): concurrency: -1":                 `providers: [{name: a, kind: chat, url: "http://a", concurrency: -1}]`,
		"region: \"eu.example/\": accepted":                 "providers: [{name: a, kind: azure, key: canary, region: eu.example/}]",
		"providers[0].tenant (line 1): unknown":             "providers: [{name: a, tenant: x}]",
		"organizations[0].providers[0] (a): url is missing": "organizations: [{name: acme, providers: [{name: a, kind: chat}]}]",
		`organization "acme": providers[0] (a): url: an organization may use http and ws only for hosts in PARLEY_TOOL_HOSTS: use https or wss, or add 10.0.0.1:80 to it`: `organizations: [{name: acme, providers: [{name: a, kind: chat, url: "http://10.0.0.1/v1", key: canary}]}]`,
		"201 endpoints; at most 200": "providers: [" + strings.Repeat("{name: a}, ", 201) + "]",
	} {
		s, err := apply.Parse(strings.NewReader(text))
		if err == nil {
			err = apply.Apply(t.Context(), d.Pool, s, apply.Options{})
		}
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
