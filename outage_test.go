package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/sip/siptest"
)

// stoppableProviders is a server of fake providers that can be stopped and started.
type stoppableProviders struct {
	t      testing.TB
	addr   string
	script fakeprovider.Script
	server *fakeprovider.Server
}

func startProviders(t testing.TB) *stoppableProviders {
	t.Helper()
	// While the providers are stopped, a connecting socket could take a port of those that the kernel gives.
	o := &stoppableProviders{t: t, addr: "127.0.0.1:" + freePort(t), script: fakeprovider.Typical()}
	o.start()
	t.Cleanup(o.stop)
	return o
}

func (o *stoppableProviders) start() {
	o.t.Helper()
	var err error
	if o.server, err = fakeprovider.Start(context.WithoutCancel(o.t.Context()), o.addr, o.script); err != nil {
		o.t.Fatal(err)
	}
}

func (o *stoppableProviders) stop() {
	if o.server != nil {
		_ = o.server.Close()
		o.server = nil
	}
}

// TestProviderOutage stops the providers of a running campaign. Few calls may fail, and no other number may ring during
// the outage. When the providers run again, all contacts must be called.
func TestProviderOutage(t *testing.T) {
	t.Parallel()
	o := startProviders(t)
	var r inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: r.accept(300 * time.Millisecond)})
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) { c.Endpoints.Fake = o.addr })
	srv.allowAnyHour(t)
	const contacts = 12
	o.stop()
	id := campaign(t, api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	var p progress
	eventuallyWithin(t, 20*time.Second, "the campaign is held", func() bool {
		p = readProgress(t, api, id)
		return p.HeldReasons["provider_unavailable"]+p.HeldReasons["too_many_failures"] > 0 && p.ByState["in_call"] == 0
	})
	broken := r.total()
	if broken < 1 || broken > 8 {
		t.Errorf("%d calls failed before the campaign was held", broken)
	}
	if p.ByState["exhausted"] != broken || p.ByState["done"] != 0 || p.Ready != 0 {
		t.Errorf("after %d failed calls: %+v", broken, p)
	}
	<-time.After(7 * time.Second) // later than the first probe of the breakers
	if n := r.total(); n != broken {
		t.Errorf("%d calls were placed while the providers were down", n-broken)
	}
	o.start()
	eventuallyWithin(t, 60*time.Second, "the campaign is completed", func() bool { p = readProgress(t, api, id); return p.Status == "completed" })
	if p.ByState["done"] != contacts-broken || p.ByState["exhausted"] != broken || r.total() != contacts {
		t.Errorf("%d calls for %d contacts: %+v", r.total(), contacts, p)
	}
	if code, out, errs := srv.parley(t, "campaign", "reopen", id); code != 0 || !strings.Contains(out, "reopened") {
		t.Fatalf("campaign reopen exits with %d: %s%s", code, out, errs)
	}
	eventuallyWithin(t, 60*time.Second, "the failed contacts were called again", func() bool {
		p = readProgress(t, api, id)
		return p.Status == "completed" && p.ByState["done"] == contacts
	})
	if r.total() != contacts+broken {
		t.Errorf("%d calls for %d contacts, %d of them called again", r.total(), contacts, broken)
	}
	t.Logf("%d calls failed, none was placed while the providers were down", broken)
}

// TestUnknownProvider checks an agent whose provider no server has. It cannot be published or used in a launch, and its
// calls end with a specific reason.
func TestUnknownProvider(t *testing.T) {
	t.Parallel()
	var r inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: r.accept(time.Second)})
	srv, api := startServer(t, c.Addr().String())
	srv.allowAnyHour(t)
	text := `organizations: [{name: demo, agents: [{name: demo, published: true, speech: {asr: {provider: deepgrm}, llm: {provider: fake}, tts: {provider: fake}}}]}]`
	file := writeFile(t, "file.yaml", text)
	want := `agent "demo" cannot be published: speech.asr.provider: "deepgrm" is not a configured provider; accepted: fake`
	if code, _, errs := srv.parley(t, "apply", "-f", file); code == 0 || !strings.Contains(errs, want) {
		t.Errorf("apply exits with %d: %s", code, errs)
	}
	draft := strings.Replace(text, "published: true, ", "", 1)
	srv.applyFile(t, draft)
	if code, _, errs := srv.parley(t, "agent", "publish", "--org", "demo", "demo"); code == 0 || !strings.Contains(errs, want) {
		t.Errorf("agent publish exits with %d: %s", code, errs)
	}
	// Publish a version as if its provider had existed.
	for _, sql := range []string{
		"INSERT INTO agent_versions (agent_id, version, definition, secrets) SELECT id, 99, draft, secrets FROM agents WHERE name = 'demo'",
		"UPDATE agents SET published_version = 99 WHERE name = 'demo'",
	} {
		if _, err := srv.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var k struct {
		Status   string           `json:"status"`
		Blockers []map[string]any `json:"blockers"`
	}
	order := map[string]any{
		"name": t.Name(), "agent_id": "demo", "calls_per_minute": 200, "planned_calls": []map[string]any{{"phone": many(1)[0]}}, "attestation": map[string]any{"confirmed": true},
	}
	post(t, api, "/v1/campaigns", order, &k)
	if len(k.Blockers) != 1 || k.Blockers[0]["code"] != "provider_not_configured" || k.Status != "draft" {
		t.Errorf("the campaign is %s: %v", k.Status, k.Blockers)
	}
	id := requestCall(t, api, "+12025550123")
	var call apiCall
	eventually(t, "the call has failed", func() bool { call = readCall(t, api, id); return call.Status == "failed" })
	if call.Reason != "provider_not_configured" || r.total() != 0 {
		t.Errorf("%+v, %d calls", call, r.total())
	}
}

// TestProviderChecks checks that an agent is tested when it is published. If the provider refuses the settings,
// publication and launch fail with the provider's message. If the provider does not respond, there is only a warning.
// Reading a campaign sends nothing to the provider.
func TestProviderChecks(t *testing.T) {
	t.Parallel()
	var fault atomic.Value
	fault.Store(fakeprovider.Absent)
	var requests atomic.Int64
	model, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", fakeprovider.Script{
		Fault: func(fakeprovider.Provider, int) fakeprovider.Fault {
			requests.Add(1)
			return fault.Load().(fakeprovider.Fault)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = model.Close() }()
	var r inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: r.accept(time.Second)})
	endpoint := map[string]endpoints.Endpoint{"main": {Kind: "chat", URL: "http://" + model.Addr() + "/v1"}}
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) { c.Endpoints.Named = endpoint })
	srv.allowAnyHour(t)
	environ := []string{"PARLEY_PROVIDER_MAIN_KIND=chat", "PARLEY_PROVIDER_MAIN_URL=" + endpoint["main"].URL}
	file := writeFile(t, "file.yaml", `organizations: [{name: demo, agents: [{name: demo, published: true, speech: {llm: {provider: main, model: m}}}]}]`)
	command := func(wantCode int, want string, args ...string) {
		t.Helper()
		if code, out, errs := srv.parleyAs(t, environ, args...); code != wantCode || !strings.Contains(errs, want) {
			t.Errorf("%v exits with %d: %s%s", args, code, out, errs)
		}
	}
	const refusal = "model main (m): openai: 404 Not Found: no such model"
	command(1, `agent "demo" cannot be published: `+refusal, "apply", "-f", file)
	fault.Store(fakeprovider.Hang)
	command(0, "warning: agent \"demo\": model main (m): ", "apply", "-f", file)
	fault.Store(fakeprovider.Absent)
	command(1, `agent "demo" cannot be published: `+refusal, "agent", "publish", "--org", "demo", "demo")
	command(1, "agents whose calls would fail: 1", "providers", "check", "--agents")

	asked := requests.Load()
	var k struct {
		ID       string           `json:"campaign_id"`
		Status   string           `json:"status"`
		Blockers []map[string]any `json:"blockers"`
	}
	order := map[string]any{
		"name": t.Name(), "agent_id": "demo", "calls_per_minute": 200, "planned_calls": []map[string]any{{"phone": many(1)[0]}},
		"attestation": map[string]any{"confirmed": true}, "starts_at": time.Now().Add(24 * time.Hour).Unix(),
	}
	fault.Store(fakeprovider.Fault(""))
	post(t, api, "/v1/campaigns", order, &k)
	if len(k.Blockers) != 1 || k.Blockers[0]["code"] != "provider_misconfigured" || !strings.Contains(k.Blockers[0]["message"].(string), refusal) || k.Status != "draft" {
		t.Fatalf("the campaign is %s: %v", k.Status, k.Blockers)
	}
	eventually(t, "the launch has caused a probe, which succeeds", func() bool {
		get(t, api, "/v1/campaigns/"+k.ID+"/launch-check", &k)
		return len(k.Blockers) == 1 && k.Blockers[0]["code"] == "attestation_required"
	})
	if n := requests.Load() - asked; n != 1 {
		t.Errorf("%d requests to the provider, want 1", n)
	}
}

// TestCallWaitsForProviders checks that a single call waits in the dial queue while the agent's providers are down, and
// is placed when the providers run again.
func TestCallWaitsForProviders(t *testing.T) {
	t.Parallel()
	o := startProviders(t)
	var r inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: r.accept(300 * time.Millisecond)})
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) { c.Endpoints.Fake = o.addr })
	srv.allowAnyHour(t)
	o.stop()
	// Calls fail until the server detects the outage.
	var id string
	eventuallyWithin(t, 20*time.Second, "a call is queued", func() bool {
		id = requestCall(t, api, "+12025550123")
		over := false
		for until := time.Now().Add(2 * time.Second); !over && time.Now().Before(until); {
			over = !slices.Contains([]string{"queued", "ongoing", "ringing"}, readCall(t, api, id).Status)
		}
		return !over && readCall(t, api, id).Status == "queued"
	})
	broken := r.total()
	<-time.After(3 * time.Second)
	if got := readCall(t, api, id); got.Status != "queued" || r.total() != broken {
		t.Errorf("while the providers are down the call is %s, %d calls were placed", got.Status, r.total()-broken)
	}
	o.start()
	eventuallyWithin(t, 30*time.Second, "the call has ended", func() bool { return readCall(t, api, id).Status == "ended" })
	if got := readCall(t, api, id); got.Reason != "callee_hangup" || r.total() != broken+1 {
		t.Errorf("%+v, %d calls", got, r.total()-broken)
	}
	t.Logf("%d calls failed", broken)
}
