package admincli_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/pipeline"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const secret = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5LWNhbmFyeS0="

// newEnv returns an Env with an empty database, and the buffer that receives its output.
func newEnv(t *testing.T) (*admincli.Env, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	return &admincli.Env{Pool: dbtest.New(t).Pool, AllowInsecure: true, Out: out}, out
}

func exec(t *testing.T, d *admincli.Env, sql string, args ...any) {
	t.Helper()
	if _, err := d.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// organization creates the organization acme with a webhook endpoint, a call, and a delivery in the given state.
func organization(t *testing.T, d *admincli.Env, url, state string) (endpoint string) {
	t.Helper()
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err == nil {
		err = webhook.Replace(t.Context(), d.Pool, org, []webhook.Endpoint{{URL: url, Secret: secret, Events: webhook.Types()}})
	}
	if err == nil {
		err = d.Pool.QueryRow(t.Context(), "SELECT id FROM webhook_endpoints").Scan(&endpoint)
	}
	if err != nil {
		t.Fatal(err)
	}
	exec(t, d, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
		trunk_id, route_id, ring_seconds, created_at) VALUES ('call_1', $1, 'phone', 'ended', 'a', 'a', 1, '1', '1', '1', 't', 'r', 45, now())`, org)
	exec(t, d, `INSERT INTO webhook_deliveries (id, endpoint_id, call_id, type, payload, state, tries, next_at, created_at, last_status, settled_at, org_id)
		VALUES ('evt_1', $1, 'call_1', 'call_ended', '{}', $2, 10, now(), now(), 500, now(), $3)`, endpoint, state, org)
	return endpoint
}

// TestEraseWithoutDataDir checks that a wrong data directory is an error, because the recordings would stay.
func TestEraseWithoutDataDir(t *testing.T) {
	d, out := newEnv(t)
	organization(t, d, "https://example.com", "delivered")
	dir := t.TempDir()
	d.Bucket = &recording.Folder{Dir: filepath.Join(dir, "missing", "bucket")}
	err := admincli.Erase{Org: "acme", Call: "call_1"}.Run(t.Context(), d)
	if err == nil || !strings.Contains(err.Error(), "PARLEY_DATA_DIR") || out.Len() > 0 {
		t.Errorf("%v, %s", err, out)
	}
	d.Bucket = &recording.Folder{Dir: filepath.Join(dir, "bucket")} // no recording was made yet
	if err = (admincli.Erase{Org: "acme", Call: "call_1"}).Run(t.Context(), d); err != nil || out.String() != "1 erased\n" {
		t.Errorf("%v, %s", err, out)
	}
}

func TestListWebhooks(t *testing.T) {
	d, out := newEnv(t)
	endpoint := organization(t, d, "https://hooks.example.com/token-canary?key=canary", "dead")
	if err := (admincli.ListWebhooks{}).Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{endpoint, "acme", "https://hooks.example.com", "call_ended,call_analyzed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if err := (admincli.ListWebhooks{Dead: true, Org: "acme"}).Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"evt_1", "call_1", "500"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "canary") || strings.Contains(out.String(), secret) {
		t.Errorf("the output contains a secret:\n%s", out)
	}
	out.Reset()
	if err := (admincli.ListWebhooks{Org: "globex"}).Run(t.Context(), d); err != nil || strings.Contains(out.String(), endpoint) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReplayWebhooks(t *testing.T) {
	d, out := newEnv(t)
	var received atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Webhook-Id") == "evt_1" {
			received.Add(1)
		}
	}))
	defer receiver.Close()
	endpoint := organization(t, d, receiver.URL, "dead")
	deliver := func() {
		t.Helper()
		if err := (&webhook.Sender{Pool: d.Pool, Owner: "n", AllowInsecure: true}).DeliverDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range []string{endpoint, "evt_1"} { // dead deliveries of the endpoint, then a delivered one
		if err := (admincli.ReplayWebhooks{ID: id}).Run(t.Context(), d); err != nil || !strings.Contains(out.String(), "deliveries to resend: 1") {
			t.Fatalf("%s: %v %s", id, err, out)
		}
		out.Reset()
		deliver()
		if n := received.Load(); n != int64(i+1) {
			t.Errorf("after %s: sent %d times", id, n)
		}
	}
	if err := (admincli.ReplayWebhooks{ID: endpoint}).Run(t.Context(), d); err != nil || out.String() != "deliveries to resend: 0\n" {
		t.Errorf("a delivered event is sent again: %v %s", err, out)
	}
	if err := (admincli.ReplayWebhooks{ID: "evt_9"}).Run(t.Context(), d); err == nil {
		t.Error("an unknown delivery was replayed")
	}
	exec(t, d, "UPDATE webhook_endpoints SET disabled_at = now(), disabled_reason = 'it answered 410 Gone'")
	if err := (admincli.ReplayWebhooks{ID: "evt_1"}).Run(t.Context(), d); err == nil || !strings.Contains(err.Error(), "410") {
		t.Errorf("to a disabled endpoint: %v", err)
	}
	if err := (admincli.ReplayWebhooks{ID: "evt_1", Enable: true}).Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	deliver()
	if n := received.Load(); n != 3 {
		t.Errorf("an enabled endpoint received %d", n)
	}
}

func TestTestWebhook(t *testing.T) {
	d, out := newEnv(t)
	status := http.StatusNoContent
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		lib, err := standardwebhooks.NewWebhook(secret)
		if err != nil || lib.Verify(body, r.Header) != nil || !bytes.Contains(body, []byte(`"type":"test"`)) {
			t.Errorf("%s: %v", body, err)
		}
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	endpoint := organization(t, d, receiver.URL, "dead")
	if err := (admincli.TestWebhook{ID: endpoint}).Run(t.Context(), d); err != nil || !strings.HasPrefix(out.String(), "204 in ") {
		t.Errorf("%v %s", err, out)
	}
	status = http.StatusTeapot
	if err := (admincli.TestWebhook{ID: endpoint}).Run(t.Context(), d); err == nil || !strings.Contains(out.String(), "418 in ") {
		t.Errorf("%v %s", err, out)
	}
	d.AllowInsecure = false
	if err := (admincli.TestWebhook{ID: endpoint}).Run(t.Context(), d); err == nil {
		t.Error("a test reached a private address")
	}
	if err := (admincli.TestWebhook{ID: "whe_9"}).Run(t.Context(), d); err == nil {
		t.Error("an unknown endpoint was tested")
	}
}

func TestPublishAgent(t *testing.T) {
	d, out := newEnv(t)
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	def := agents.Default()
	fake := pipeline.Engine{Provider: "fake"}
	def.Speech = pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
	if _, err = agents.Save(t.Context(), d.Pool, org, "sales", def); err != nil {
		t.Fatal(err)
	}
	name := admincli.AgentName{Org: "acme", Name: "sales"}
	published := func() (is bool) {
		t.Helper()
		if fault := d.Pool.QueryRow(t.Context(), "SELECT published_version IS NOT NULL FROM agents").Scan(&is); fault != nil {
			t.Fatal(fault)
		}
		return is
	}
	if err = (admincli.PublishAgent{AgentName: name}).Run(t.Context(), d); err != nil || out.String() != "sales version 1\n" || !published() {
		t.Errorf("%v %s", err, out)
	}
	if err = (admincli.UnpublishAgent{AgentName: name}).Run(t.Context(), d); err != nil || published() {
		t.Errorf("unpublish: %v", err)
	}
	name.Org = "globex"
	if (admincli.PublishAgent{AgentName: name}).Run(t.Context(), d) == nil || (admincli.UnpublishAgent{AgentName: name}).Run(t.Context(), d) == nil {
		t.Error("an unknown organization was accepted")
	}
	if (admincli.TraceCall{ID: "call_9"}).Run(t.Context(), d) == nil {
		t.Error("an unknown call has signaling")
	}
}
