package webhooks_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/webhook"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestEndpointLifecycle checks that an endpoint is created, tested, changed, its secret rotated, failed deliveries are resent, and it is
// deleted.
func TestEndpointLifecycle(t *testing.T) {
	var secrets []string // each of them must sign
	var received atomic.Int64
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		for _, s := range secrets {
			lib, fault := standardwebhooks.NewWebhook(s)
			if err != nil || fault != nil || lib.Verify(body, r.Header) != nil {
				t.Errorf("%s: %v %v", body, err, fault)
			}
		}
		received.Add(1)
	}))
	defer far.Close()
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Apply.AllowInsecure = true })
	b := h.SignIn(t, "ada")
	endpointButton := regexp.MustCompile(`/webhooks/[^/"]+">Go to endpoint<`)
	secret := func(path string, pairs ...string) string {
		t.Helper()
		a := b.Post(path, pairs...)
		found := regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`).FindString(strings.ReplaceAll(a.Body, "&#43;", "+"))
		if found == "" || !endpointButton.MatchString(a.Body) {
			t.Fatalf("POST %s: %d %s", path, a.Status, a.Text())
		}
		return found
	}
	for _, form := range [][]string{{"url", "ftp://x"}, {"url", far.URL}, {"url", far.URL, "events", "nothing"}, {"url", far.URL, "events", "call_ended", "agents", "unknown"}} {
		if a := b.Post("webhooks/new", form...); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", form, a.Status)
		}
	}
	secrets = append(secrets, secret("webhooks/new", "url", far.URL, "events", "call_ended"))
	if a := b.Post("webhooks/new", "url", far.URL, "events", "call_ended"); !strings.Contains(a.Text(), "An endpoint with this address already exists.") {
		t.Errorf("duplicate: %d %s", a.Status, a.Text())
	}
	all, err := webhook.ListEndpoints(t.Context(), h.DB.Pool, h.Acme, "", 9)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	at := "webhooks/" + all[0].ID
	if a := b.Follow(at + "/test"); !strings.Contains(a.Text(), "Test delivered: 200") || received.Load() != 1 {
		t.Errorf("%s", a.Text())
	}
	secrets = append(secrets, secret(at+"/secret"))
	b.Follow(at + "/test") // both sign
	b.Follow(at + "/old-secret")
	secrets = secrets[1:]
	b.Follow(at + "/test")
	if received.Load() != 3 {
		t.Errorf("%d test events", received.Load())
	}
	b.Follow(at+"/edit", "events", "call_analyzed", "thin", "on")
	e, err := webhook.Read(t.Context(), h.DB.Pool, h.Acme, all[0].ID)
	if err != nil || !e.Thin || len(e.Events) != 1 || e.Events[0] != "call_analyzed" || e.Rotating {
		t.Errorf("%+v, %v", e, err)
	}
	if a := b.Follow(at + "/delete"); !strings.Contains(a.Text(), "Endpoint deleted.") {
		t.Errorf("%s", a.Text())
	}
	if log := h.Text(t, "SELECT string_agg(a::text, ' ') FROM audit_log a"); strings.Contains(log, "whsec_") {
		t.Errorf("the audit log has a secret: %s", log)
	}
}

// TestReplay checks that one or all failed deliveries of the organization become due again.
func TestReplay(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	state := func() string { return h.Text(t, "SELECT state FROM webhook_deliveries WHERE id = 'evt_1'") }
	dead := func() {
		t.Helper()
		h.Exec(t, "UPDATE webhook_deliveries SET state = 'dead'")
	}
	oscar, vera := h.SignIn(t, "oscar"), h.SignIn(t, "vera")
	for _, path := range []string{"deliveries/evt_1/replay", "webhooks/" + ids["webhooks"] + "/replay"} {
		if a := vera.Post(path); a.Status != http.StatusForbidden || state() != "dead" {
			t.Errorf("%s as a viewer: %d", path, a.Status)
		}
		if a := oscar.Follow(path); !strings.Contains(a.Text(), "1 queued for delivery.") || state() != "pending" {
			t.Errorf("%s: %s", path, a.Text())
		}
		dead()
	}
	h.Exec(t, "UPDATE webhook_deliveries SET last_status = 503 WHERE id = 'evt_1'")
	for _, path := range []string{"webhooks/" + ids["webhooks"], "deliveries/evt_1"} {
		if a := oscar.Get(path); !strings.Contains(a.Text(), "503 Service Unavailable") {
			t.Errorf("%s: %s", path, a.Text())
		}
	}
	if a := oscar.Get("webhooks/" + ids["webhooks"] + "?state=delivered"); !strings.Contains(a.Text(), "No delivered deliveries") {
		t.Errorf("%s", a.Text())
	}
}
