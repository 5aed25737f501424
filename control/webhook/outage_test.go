package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
)

const (
	firstSecret  = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	secondSecret = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

// verifier is a receiver that checks signatures with the Standard Webhooks library.
type verifier struct {
	*httptest.Server

	down    atomic.Bool
	refused atomic.Int64 // number of requests refused while down was true

	mu    sync.Mutex
	times map[string]int // number of accepted requests by delivery id
	bad   int
}

func newVerifier(t *testing.T, secret string) *verifier {
	t.Helper()
	lib, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	v := &verifier{times: map[string]int{}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if v.down.Load() {
			v.refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if err != nil || lib.VerifyIgnoringTimestamp(body, r.Header) != nil {
			v.bad++
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		v.times[r.Header.Get("Webhook-Id")]++
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *verifier) received() (ids, doubles, bad int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range v.times {
		doubles += n - 1
	}
	return len(v.times), doubles, v.bad
}

// TestThousandEventsSurviveOutage ends a thousand calls while a receiver is down for eight hours. Each delivery must
// arrive once and with a valid signature.
func TestThousandEventsSurviveOutage(t *testing.T) {
	const events, hours = 1000, 8
	p, target, healthy := newFixture(t), newVerifier(t, firstSecret), newVerifier(t, firstSecret)
	p.endpoints(target.URL, healthy.URL)
	target.down.Store(true)
	for range hours {
		p.insertEndedAtOnce(events / hours)
		for range 4 {
			p.passTime(15 * time.Minute)
		}
	}
	if n, _, _ := healthy.received(); n != events {
		t.Errorf("the healthy receiver has %d of %d deliveries", n, events)
	}
	if n, _, _ := target.received(); n != 0 || target.refused.Load() == 0 {
		t.Fatalf("%d taken while down, %d refused", n, target.refused.Load())
	}
	target.down.Store(false)
	for range 24 {
		p.passTime(time.Hour)
	}
	for name, v := range map[string]*verifier{"was down": target, "was up": healthy} {
		if n, doubles, bad := v.received(); n != events || doubles != 0 || bad != 0 {
			t.Errorf("receiver that %s: got %d deliveries, want %d; %d duplicates, %d invalid signatures", name, n, events, doubles, bad)
		}
	}
	if s := p.value("SELECT count(*)::text FROM webhook_deliveries WHERE state <> 'delivered'"); s != "0" {
		t.Errorf("%s events are not delivered", s)
	}
}

// insertEndedAtOnce inserts n calls that have ended, and their deliveries, with one statement each.
func (p *fixture) insertEndedAtOnce(n int) {
	p.t.Helper()
	p.exec(`WITH c AS (INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
			trunk_id, route_id, ring_seconds, created_at) SELECT 'call_' || gen_random_uuid(), $1, 'phone', 'ended', 'a', 'a', 1, '1', '1', '1', 't', 'r', 45, now()
			FROM generate_series(1, $2) RETURNING id, org_id)
		INSERT INTO webhook_deliveries (id, endpoint_id, call_id, type, payload, next_at, created_at, org_id)
		SELECT 'evt_' || gen_random_uuid(), e.id, c.id, 'call_ended', convert_to('{"call_id":"' || c.id || '"}', 'UTF8'), $3, $3, c.org_id
		FROM c CROSS JOIN webhook_endpoints e`, p.org, n, p.clock())
}

// TestSlowReceiverDelaysNoOther checks that a receiver that hangs does not delay another receiver. It only logs the
// durations.
func TestSlowReceiverDelaysNoOther(t *testing.T) {
	p := newFixture(t)
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	const calls = 200
	var mu sync.Mutex
	came := 0
	quick := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		came++
		mu.Unlock()
	}))
	t.Cleanup(quick.Close)
	p.endpoints(slow.URL, quick.URL)
	wake := make(chan struct{}, 1)
	p.sender.Wake, p.sender.Poll = wake, 100*time.Millisecond
	p.insertEndedAtOnce(50) // fills the queue of the slow receiver
	p.run()
	var worst time.Duration
	for n := 50; n <= calls; n += 50 {
		began := time.Now()
		p.until("all deliveries", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return came == n
		})
		worst = max(worst, time.Since(began))
		if n < calls {
			p.insertEndedAtOnce(50)
			wake <- struct{}{}
		}
	}
	t.Logf("%d deliveries took at most %v while another receiver hangs", calls, worst)
	if s := p.value("SELECT count(*)::text FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id WHERE e.url LIKE '" + slow.URL + "%' AND d.state = 'delivered'"); s != "0" {
		t.Errorf("the slow receiver has taken %s: it was not slow", s)
	}
}

func (p *fixture) run() {
	p.t.Helper()
	over := make(chan struct{})
	go func() { p.sender.Run(p.t.Context()); close(over) }()
	p.t.Cleanup(func() { <-over })
}

// until waits until is returns true. After 20 s, the test fails with the text what.
func (p *fixture) until(what string, is func() bool) {
	p.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// TestAnalysisFollowsEnd checks that call_analyzed is sent only after call_ended was delivered or has failed twice.
func TestAnalysisFollowsEnd(t *testing.T) {
	for _, tt := range []struct {
		fails int
		want  []string
	}{
		{0, []string{"call_ended", "call_analyzed"}},
		{1, []string{"call_ended", "call_ended", "call_analyzed"}},
		{2, []string{"call_ended", "call_ended", "call_analyzed", "call_ended"}},
	} {
		p := newFixture(t)
		var order []string
		fails := tt.fails
		target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			kind := "call_ended"
			if slices.Contains(body, 'z') { // only "call_analyzed" contains a z
				kind = "call_analyzed"
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			order = append(order, kind)
			if kind == "call_ended" && fails > 0 {
				fails--
				w.WriteHeader(http.StatusInternalServerError)
			}
		}))
		t.Cleanup(target.Close)
		all := []webhook.Endpoint{{URL: target.URL, Secret: firstSecret, Events: webhook.Types()}}
		if err := webhook.Replace(t.Context(), p.db.Pool, p.org, all); err != nil {
			t.Fatal(err)
		}
		p.insertEnded(1)
		s := &store.Store{Pool: p.db.Pool}
		e := control.Event{CallID: p.value("SELECT id FROM calls"), Kind: control.CallEnded, Status: control.Ended, At: p.clock()}
		if err := (&webhook.Notifier{Type: webhook.CallAnalyzed, Pool: p.db.Pool, Calls: s, Now: p.clock}).HandleEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		p.exec("UPDATE webhook_deliveries SET payload = $1 WHERE type = 'call_analyzed'", []byte("z"))
		p.exec("UPDATE webhook_deliveries SET payload = $1 WHERE type = 'call_ended'", []byte("e"))
		for range 4 {
			p.passTime(6 * time.Second)
		}
		p.passTime(5 * time.Minute)
		if !slices.Equal(order, tt.want) {
			t.Errorf("call_ended fails %d times: %v, want %v", tt.fails, order, tt.want)
		}
	}
}

// TestSecretRotation checks that receivers with the old or the new secret accept deliveries during a rotation.
// Afterwards only receivers with the new secret accept deliveries.
func TestSecretRotation(t *testing.T) {
	p, old, fresh := newFixture(t), newVerifier(t, firstSecret), newVerifier(t, secondSecret)
	set := func(secret, previous string) {
		t.Helper()
		var all []webhook.Endpoint
		for _, u := range []string{old.URL, fresh.URL} {
			e := webhook.Endpoint{URL: u, Secret: media.Secret(secret), Previous: media.Secret(previous), Events: webhook.Types()}
			if err := e.Check(true); err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		if err := webhook.Replace(t.Context(), p.db.Pool, p.org, all); err != nil {
			t.Fatal(err)
		}
		p.insertEndedAtOnce(1)
		p.passTime(0)
	}
	for _, tt := range []struct {
		secret, previous string
		old, fresh       int // number of deliveries that each receiver accepted
	}{{firstSecret, "", 1, 0}, {secondSecret, firstSecret, 2, 1}, {secondSecret, "", 2, 2}} {
		set(tt.secret, tt.previous)
		o, _, _ := old.received()
		f, _, _ := fresh.received()
		if o != tt.old || f != tt.fresh {
			t.Errorf("the receiver with the old secret has %d, want %d; the one with the new secret %d, want %d", o, tt.old, f, tt.fresh)
		}
	}
	bad := webhook.Endpoint{URL: "https://example.com", Secret: firstSecret, Previous: "whsec_canary"}
	if err := bad.Check(false); err == nil {
		t.Error("an invalid previous secret was accepted")
	}
}
