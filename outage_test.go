package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/sip/siptest"
)

// An outage is a set of providers that can be stopped and started.
type outage struct {
	t      testing.TB
	addr   string
	script fakeprovider.Script
	server *fakeprovider.Server
}

func newOutage(t testing.TB) *outage {
	t.Helper()
	o := &outage{t: t, addr: "127.0.0.1:0", script: fakeprovider.Typical()}
	o.start()
	o.addr = o.server.Addr()
	t.Cleanup(o.stop)
	return o
}

func (o *outage) start() {
	o.t.Helper()
	var err error
	if o.server, err = fakeprovider.Start(context.WithoutCancel(o.t.Context()), o.addr, o.script); err != nil {
		o.t.Fatal(err)
	}
}

func (o *outage) stop() {
	if o.server != nil {
		_ = o.server.Close()
		o.server = nil
	}
}

// rung counts the calls to a carrier, by number.
type rung struct {
	mu sync.Mutex
	of map[string]int
	n  int
}

// answer accepts each call; its callee listens for a while and hangs up.
func (r *rung) answer(listens time.Duration) func(siptest.Invite) siptest.Script {
	return func(i siptest.Invite) siptest.Script {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.of == nil {
			r.of = map[string]int{}
		}
		r.of[i.To]++
		r.n++
		return siptest.Script{Status: http.StatusOK, Talk: listening(listens)}
	}
}

func (r *rung) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// TestProvidersDown stops the providers of a running campaign: few calls fail, no other number rings until the
// providers are back, and then all are called.
func TestProvidersDown(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	var r rung
	c := carrier(t, &siptest.Carrier{Answer: r.answer(300 * time.Millisecond)})
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) { c.Endpoints.Fake = o.addr })
	srv.openAllDay(t)
	const contacts = 12
	o.stop()
	id := campaign(t, api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	look := func() (p progress) {
		if err := api.Do(t.Context(), http.MethodGet, "/v1/campaigns/"+id+"/progress", nil, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var p progress
	soonFor(t, 20*time.Second, "the campaign is held", func() bool {
		p = look()
		return p.HeldReasons["provider_unavailable"]+p.HeldReasons["too_many_failures"] > 0 && p.ByState["in_call"] == 0
	})
	broken := r.count()
	if broken < 1 || broken > 8 {
		t.Errorf("%d calls broke before the campaign was held", broken)
	}
	if p.ByState["exhausted"] != broken || p.ByState["done"] != 0 || p.Ready != 0 {
		t.Errorf("after %d calls that broke: %+v", broken, p)
	}
	<-time.After(7 * time.Second) // past the first probe of the breakers
	if n := r.count(); n != broken {
		t.Errorf("%d calls were made while the providers were down", n-broken)
	}
	o.start()
	soonFor(t, 60*time.Second, "it is over", func() bool { p = look(); return p.Status == "completed" })
	if p.ByState["done"] != contacts-broken || p.ByState["exhausted"] != broken || r.count() != contacts {
		t.Errorf("%d calls for %d contacts: %+v", r.count(), contacts, p)
	}
	if code, out, errs := srv.parley(t, "campaign", "reopen", id); code != 0 || !strings.Contains(out, "reopened") {
		t.Fatalf("campaign reopen exits with %d: %s%s", code, out, errs)
	}
	soonFor(t, 60*time.Second, "they are called again", func() bool { p = look(); return p.Status == "completed" && p.ByState["done"] == contacts })
	if r.count() != contacts+broken {
		t.Errorf("%d calls for %d contacts, of whom %d were called again", r.count(), contacts, broken)
	}
	t.Logf("%d calls broke, none was made while the providers were down", broken)
}

// TestUnknownProvider: an agent with a provider that no server has cannot be published or launched, and its calls
// end with their own reason.
func TestUnknownProvider(t *testing.T) {
	t.Parallel()
	var r rung
	c := carrier(t, &siptest.Carrier{Answer: r.answer(time.Second)})
	srv, api := startServer(t, c.Addr().String())
	srv.openAllDay(t)
	file := filepath.Join(t.TempDir(), "file.yaml")
	text := `organizations: [{name: demo, agents: [{name: demo, published: true, speech: {asr: {provider: deepgrm}, llm: {provider: fake}, tts: {provider: fake}}}]}]`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `agent "demo" cannot be published: speech.asr.provider: "deepgrm" is not a configured provider; accepted: fake`
	if code, _, errs := srv.parley(t, "apply", "-f", file); code == 0 || !strings.Contains(errs, want) {
		t.Errorf("apply exits with %d: %s", code, errs)
	}
	draft := strings.Replace(text, "published: true, ", "", 1)
	srv.applyFile(t, draft)
	if code, _, errs := srv.parley(t, "agent", "publish", "--org", "demo", "demo"); code == 0 || !strings.Contains(errs, want) {
		t.Errorf("agent publish exits with %d: %s", code, errs)
	}
	// It was published while its provider existed.
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
	if err := api.Do(t.Context(), http.MethodPost, "/v1/campaigns", order, &k); err != nil {
		t.Fatal(err)
	}
	if len(k.Blockers) != 1 || k.Blockers[0]["code"] != "provider_not_configured" || k.Status != "draft" {
		t.Errorf("the campaign is %s: %v", k.Status, k.Blockers)
	}
	var call struct {
		CallID string `json:"call_id"`
		Status string `json:"status"`
		Reason string `json:"disconnection_reason"`
	}
	if err := api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": "+12025550123"}, &call); err != nil {
		t.Fatal(err)
	}
	id := call.CallID
	soon(t, "the call is over", func() bool {
		if err := api.Do(t.Context(), http.MethodGet, "/v1/calls/"+id, nil, &call); err != nil {
			t.Fatal(err)
		}
		return call.Status == "failed"
	})
	if call.Reason != "provider_not_configured" || r.count() != 0 {
		t.Errorf("%+v, %d calls", call, r.count())
	}
}

// TestCallWaitsForProviders: a single call whose agent's providers are down waits in the dial queue and is placed
// when they are back.
func TestCallWaitsForProviders(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	var r rung
	c := carrier(t, &siptest.Carrier{Answer: r.answer(300 * time.Millisecond)})
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) { c.Endpoints.Fake = o.addr })
	srv.openAllDay(t)
	o.stop()
	place := func() (id string) {
		var call struct {
			CallID string `json:"call_id"`
		}
		if err := api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": "+12025550123"}, &call); err != nil {
			t.Fatal(err)
		}
		return call.CallID
	}
	look := func(id string) (call struct {
		Status string `json:"status"`
		Reason string `json:"disconnection_reason"`
	},
	) {
		if err := api.Do(t.Context(), http.MethodGet, "/v1/calls/"+id, nil, &call); err != nil {
			t.Fatal(err)
		}
		return call
	}
	// Calls fail until the server detects the outage.
	var id string
	soonFor(t, 20*time.Second, "a call waits", func() bool {
		id = place()
		over := false
		for until := time.Now().Add(2 * time.Second); !over && time.Now().Before(until); {
			over = look(id).Status != "queued" && look(id).Status != "ongoing" && look(id).Status != "ringing"
		}
		return !over && look(id).Status == "queued"
	})
	broken := r.count()
	<-time.After(3 * time.Second)
	if got := look(id); got.Status != "queued" || r.count() != broken {
		t.Errorf("while the providers are down it is %s, %d calls were made", got.Status, r.count()-broken)
	}
	o.start()
	soonFor(t, 30*time.Second, "the call is made", func() bool { return look(id).Status == "ended" })
	if got := look(id); got.Reason != "callee_hangup" || r.count() != broken+1 {
		t.Errorf("%+v, %d calls", got, r.count()-broken)
	}
	t.Logf("%d calls broke", broken)
}
