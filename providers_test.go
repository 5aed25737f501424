package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/sip/siptest"
)

// keyedModel forwards a request to a fake model if the request has an accepted key. It counts requests by key.
type keyedModel struct {
	mu       sync.Mutex
	accepted map[string]bool
	counts   map[string]int
}

func (k *keyedModel) serve(t testing.TB, target string) string {
	k.counts = map[string]int{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		k.mu.Lock()
		k.counts[key]++
		ok := k.accepted[key]
		k.mu.Unlock()
		if !ok {
			http.Error(w, `{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}`, http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

// take returns the number of requests by key since the last call of take.
func (k *keyedModel) take() map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := maps.Clone(k.counts)
	clear(k.counts)
	return all
}

// TestToolHostsOnPublishing checks that an agent is not published if this server does not accept the address of a tool,
// and that there is a warning if only the requests of the tool would fail.
func TestToolHostsOnPublishing(t *testing.T) {
	t.Parallel()
	registry := endpoints.Set{Fake: "127.0.0.1:9"}.Open(safedial.Rules{})
	t.Cleanup(func() { _ = registry.Close() }) // no connections
	fake := pipeline.Engine{Provider: "fake"}
	for _, tt := range []struct {
		url   string
		hosts []string
		fault string // of Check
		warns string // of Warnings
	}{
		{"https://crm.example.com/lookup", nil, "", ""},
		{"http://crm.internal:8080/lookup", []string{"crm.internal:8080"}, "", ""},
		{"http://crm.internal:8080/lookup", nil, "tools[0]: lookup: url: use https:// (http:// only for hosts in PARLEY_TOOL_HOSTS)", "crm.internal is not public"},
		{"http://crm.internal/lookup", []string{"crm.internal:8080"}, "only for hosts in PARLEY_TOOL_HOSTS", "crm.internal is not public"},
		{"https://crm.internal/lookup", []string{"crm.internal:443"}, "", ""},
		{"https://crm.internal/lookup", nil, "", "tools[0]: lookup: crm.internal is not public, so requests fail: add it to PARLEY_TOOL_HOSTS"},
		{"https://10.0.0.5/lookup", nil, "", "10.0.0.5 is not public"},
		{"https://10.0.0.5/lookup", []string{"10.0.0.5"}, "", ""},
	} {
		d := agents.Default()
		d.Speech = pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
		d.Tools = []agents.Tool{{Definition: tools.Definition{
			Type: tools.HTTP, Name: "lookup", Description: "Looks up.", URL: tt.url, Parameters: json.RawMessage(`{"type": "object", "properties": {}}`),
		}}}
		p := &agentProviders{registry, &provider.Checker{Guards: &provider.Guards{}, Clients: registry}, safedial.Rules{Hosts: tt.hosts}, slog.New(slog.DiscardHandler)}
		err := p.Check(t.Context(), nil, "org_1", d)
		if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%s with %q: %v, want %q", tt.url, tt.hosts, err, tt.fault)
		}
		if got := strings.Join(p.Warnings("org_1", d), "; "); !strings.Contains(got, tt.warns) || (got == "") != (tt.warns == "") {
			t.Errorf("%s with %q: warnings %q, want %q", tt.url, tt.hosts, got, tt.warns)
		}
	}
}

// TestFileProviders checks that all servers use the endpoints of the operator's file without a restart. Agents use the
// operator's endpoint, unless their organization has an endpoint with the same name. A wrong key is refused before it
// is stored.
func TestFileProviders(t *testing.T) {
	t.Parallel()
	inTime(t, testFileProviders)
}

func testFileProviders(t testing.TB) {
	fakes, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", fakeprovider.Typical())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fakes.Close() })
	model := &keyedModel{accepted: map[string]bool{"first": true, "second": true, "own": true}}
	at := model.serve(t, fakes.Addr())
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, Talk: func(ctx context.Context, leg media.Leg) {
			siptest.Person{Lines: []string{"where is my order"}}.Talk(ctx, leg)
		}}
	}})
	database := dbtest.URL(t)
	change := func(c *config.Config) {
		c.ToolHosts, c.DatabaseURL, c.SealKey = []string{"127.0.0.1"}, media.Secret(database), dbtest.SealKey
	}
	srv, api := startServer(t, c.Addr().String(), change)
	settings := testConfig(t)
	change(&settings)
	command := func(args ...string) (code int, out, errs string) {
		return srv.parleyAs(t, []string{"PARLEY_TOOL_HOSTS=127.0.0.1", "PARLEY_DATABASE_URL=" + database, "PARLEY_SEAL_KEY=" + dbtest.SealKey}, args...)
	}
	apply := func(text string) (code int, errs string) {
		code, _, errs = command("apply", "-f", writeFile(t, "file.yaml", text))
		return code, errs
	}
	mustApply := func(text string) {
		t.Helper()
		if code, errs := apply(text); code != 0 {
			t.Fatal(errs)
		}
	}
	other := runServer(t, settings, slog.New(slog.DiscardHandler))

	file := func(operators, own string) string {
		return fmt.Sprintf(`
providers: [{name: gate, kind: chat, url: %q, key: %s, model: m}]
organizations:
- name: demo
  providers: [%s]
  agents:
  - {name: keyed, published: true, greeting: Hello., speech: {asr: {provider: fake}, llm: {provider: gate}, tts: {provider: fake}}}
  trunks: [{name: demo, subgroups: [{name: default, agents: [keyed], calls_per_minute: 100}]}]
`, at, operators, own)
	}
	ownEndpoint := fmt.Sprintf("{name: gate, kind: chat, url: %q, key: own, model: m}", at)
	uses := func(key string) {
		t.Helper()
		for _, s := range []*server{srv, other} {
			eventuallyWithin(t, 10*time.Second, "both servers use the key "+key, func() bool {
				org := ""
				if key == "own" {
					org = orgID(t, srv, "demo")
				}
				set := s.providers.set()
				if org != "" {
					return string(set.Organizations[org]["gate"].Key) == key
				}
				return string(set.Named["gate"].Key) == key && len(set.Organizations) == 0
			})
		}
	}
	call := func(key string) {
		t.Helper()
		model.take()
		var placed apiCall
		post(t, api, "/v1/calls/phone", map[string]any{"agent_id": "keyed", "to_number": demo.Number}, &placed)
		checkEcho(t, api, key, placed.CallID, "where is my order")
		if got := model.take(); got[key] == 0 || len(got) != 1 {
			t.Errorf("requests by key: %v, want only %s", got, key)
		}
	}

	mustApply(file("first", ""))
	uses("first")
	call("first")
	mustApply(file("second", ""))
	uses("second")
	call("second")

	code, errs := apply(file("canary", ""))
	if code == 0 || !strings.Contains(errs, "Incorrect API key") || strings.Contains(errs, "canary") {
		t.Errorf("a wrong key: exit code %d: %s", code, errs)
	}
	uses("second")
	if n := refusals(t, srv); n != 0 {
		t.Errorf("a refused file left %d refusals of endpoints that work", n)
	}

	mustApply(file("second", ownEndpoint))
	uses("own")
	call("own")
	var cost struct {
		Usage []struct {
			Serves string `json:"serves"`
			OrgID  string `json:"organization_id"`
		} `json:"usage"`
	}
	var list struct {
		Calls []apiCall `json:"calls"`
	}
	get(t, api, "/v1/calls?limit=1", &list)
	get(t, api, "/v1/calls/"+list.Calls[0].CallID, &cost)
	for _, u := range cost.Usage {
		if (u.OrgID != "") != (u.Serves == "llm") {
			t.Errorf("usage: %+v", u)
		}
	}
	_, out, _ := command("providers", "list")
	for _, want := range []string{"gate ", "chat", "set", "file, organization demo"} {
		if !strings.Contains(out, want) || strings.Contains(out, "second") {
			t.Errorf("no %q in\n%s", want, out)
		}
	}

	if _, out, _ = command("providers", "check", "gate", "demo/gate"); strings.Count(out, " ms  ") != 2 || !strings.Contains(out, "demo/gate ") || strings.Contains(out, "failed") {
		t.Errorf("providers check: %s", out)
	}

	noAgent := fmt.Sprintf("providers: []\norganizations: [{name: demo, providers: [%s]}]", ownEndpoint)
	if code, errs = apply(noAgent); code != 0 || strings.Contains(errs, "can make no calls") || !strings.Contains(errs, "providers: 0") {
		t.Errorf("the operator's endpoint is removed, but not the organization's: exit code %d: %s", code, errs)
	}
	if code, errs = apply("organizations: [{name: demo, providers: []}]"); code != 0 || !strings.Contains(errs, `agent "keyed" can make no calls`) {
		t.Errorf("both are removed: exit code %d: %s", code, errs)
	}

	code, errs = apply(strings.Replace(file("second", ""), "providers: [{name: gate", "providers: [{name: other", 1))
	if code == 0 || !strings.Contains(errs, `"gate" is not a configured provider; accepted:`) {
		t.Errorf("an endpoint that an agent of the file needs is removed: exit code %d: %s", code, errs)
	}
}

func orgID(t testing.TB, srv *server, name string) string {
	t.Helper()
	var id string
	if err := srv.db.Pool.QueryRow(t.Context(), "SELECT id FROM organizations WHERE name = $1", name).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// refusals counts the stored test results in which a provider refuses its settings.
func refusals(t testing.TB, srv *server) (n int) {
	t.Helper()
	err := srv.db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM provider_checks WHERE report::text LIKE '%misconfigured%'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
