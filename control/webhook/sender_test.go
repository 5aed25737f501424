package webhook_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/webhook"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a database, a clock and a sender.
type fixture struct {
	t      *testing.T
	db     *db.DB
	org    string
	sender *webhook.Sender

	mu  sync.Mutex
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	p := &fixture{t: t, db: dbtest.New(t), now: time.Now().Truncate(time.Second)}
	p.sender = &webhook.Sender{Pool: p.db.Pool, Owner: "n", AllowInsecure: true, Now: p.clock, Random: func() float64 { return 0.5 }}
	var err error
	if p.org, err = apikeys.EnsureOrganization(t.Context(), p.db.Pool, "acme"); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *fixture) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// passTime moves the clock forward and sends the deliveries that are then due.
func (p *fixture) passTime(after time.Duration) {
	p.t.Helper()
	p.mu.Lock()
	p.now = p.now.Add(after)
	p.mu.Unlock()
	if err := p.sender.DeliverDue(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fixture) endpoints(urls ...string) {
	p.t.Helper()
	var all []webhook.Endpoint
	for _, u := range urls {
		all = append(all, webhook.Endpoint{URL: u, Secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", Events: []string{webhook.CallEnded}})
	}
	if err := webhook.Replace(p.t.Context(), p.db.Pool, p.org, all); err != nil {
		p.t.Fatal(err)
	}
	p.exec("UPDATE webhook_endpoints SET created_at = $1", p.clock())
}

func (p *fixture) exec(sql string, args ...any) {
	p.t.Helper()
	dbtest.Exec(p.t, p.db, sql, args...)
}

func (p *fixture) value(sql string) string {
	p.t.Helper()
	return dbtest.Value[string](p.t, p.db, sql)
}

// insertEnded inserts n calls that have ended, and their deliveries.
func (p *fixture) insertEnded(n int) {
	p.t.Helper()
	for range n {
		id := control.NewID("call_", p.clock())
		p.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
			trunk_id, route_id, ring_seconds, created_at) VALUES ($1, $2, 'phone', 'ended', 'a', 'a', 1, '1', '1', '1', 't', 'r', 45, now())`, id, p.org)
		s := &store.Store{Pool: p.db.Pool}
		follower := &webhook.Notifier{Type: webhook.CallEnded, Pool: p.db.Pool, Calls: s, Now: p.clock}
		for range 2 { // twice, because events are handled at least once
			if err := follower.HandleEvent(p.t.Context(), control.Event{CallID: id, OrgID: p.org, Kind: control.CallEnded, At: p.clock()}); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// receiver is an HTTP server that responds with a fixed status and counts requests.
type receiver struct {
	*httptest.Server

	status atomic.Int32
	header atomic.Value
	mu     sync.Mutex
	ids    []string
}

func newReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	f := &receiver{}
	f.status.Store(int32(status))
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.ids = append(f.ids, r.Header.Get("Webhook-Id"))
		f.mu.Unlock()
		if h, ok := f.header.Load().([2]string); ok {
			w.Header().Set(h[0], h[1])
		}
		w.WriteHeader(int(f.status.Load()))
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *receiver) received() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.ids...)
}

func TestRetrySchedule(t *testing.T) {
	p, f := newFixture(t), newReceiver(t, 500)
	p.endpoints(f.URL)
	p.insertEnded(1)
	p.passTime(0)
	waits := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for i, w := range waits {
		p.passTime(w - time.Second)
		if n := len(f.received()); n != i+1 {
			t.Fatalf("%d attempts a second before the %d. retry", n, i+1)
		}
		p.passTime(time.Second)
		if n := len(f.received()); n != i+2 {
			t.Fatalf("%d attempts at the %d. retry", n, i+1)
		}
	}
	p.passTime(1000 * time.Hour)
	ids := f.received()
	if len(ids) != 12 {
		t.Fatalf("%d attempts", len(ids))
	}
	for _, id := range ids {
		if id != ids[0] {
			t.Error("the id changes between attempts")
		}
	}
	if s := p.value("SELECT state FROM webhook_deliveries"); s != "dead" {
		t.Errorf("the delivery is %s", s)
	}
}

func TestDeliversAfterOutage(t *testing.T) {
	p, f := newFixture(t), newReceiver(t, 503)
	p.endpoints(f.URL)
	p.insertEnded(20)
	p.passTime(0)
	p.passTime(5 * time.Second)
	f.status.Store(204)
	for range 10 {
		p.passTime(time.Hour)
	}
	if n := p.value("SELECT count(*)::text FROM webhook_deliveries WHERE state = 'delivered'"); n != "20" {
		t.Errorf("%s of 20 delivered", n)
	}
	per := map[string]int{}
	for _, id := range f.received() {
		per[id]++
	}
	if len(per) != 20 {
		t.Errorf("%d deliveries", len(per))
	}
	before := len(f.received())
	p.passTime(1000 * time.Hour)
	if len(f.received()) != before {
		t.Error("a delivered event is sent again")
	}
}

func TestGoneDisablesEndpoint(t *testing.T) {
	p, f := newFixture(t), newReceiver(t, 410)
	p.endpoints(f.URL)
	p.insertEnded(2)
	p.passTime(0)
	p.passTime(1000 * time.Hour)
	if n := len(f.received()); n != 1 {
		t.Errorf("%d attempts", n)
	}
	p.insertEnded(1)
	if n := p.value("SELECT count(*)::text FROM webhook_deliveries"); n != "2" {
		t.Errorf("%s deliveries: a disabled endpoint gets more", n)
	}
}

func TestRetryAfterDelaysEndpoint(t *testing.T) {
	p, f := newFixture(t), newReceiver(t, 429)
	f.header.Store([2]string{"Retry-After", "600"})
	p.endpoints(f.URL)
	p.insertEnded(3)
	p.passTime(0)
	p.passTime(599 * time.Second)
	if n := len(f.received()); n != 1 {
		t.Errorf("%d attempts within Retry-After", n)
	}
	f.status.Store(200)
	p.passTime(2 * time.Second)
	if n := p.value("SELECT count(*)::text FROM webhook_deliveries WHERE state = 'delivered'"); n != "3" {
		t.Errorf("%s delivered after Retry-After", n)
	}
}

func TestDisabledAfterLongFailure(t *testing.T) {
	p, f := newFixture(t), newReceiver(t, 500)
	p.endpoints(f.URL)
	p.insertEnded(10)
	for range 400 { // eight days; all retries together take 76 hours
		p.passTime(30 * time.Minute)
	}
	if s := p.value("SELECT disabled_reason FROM webhook_endpoints"); s != "" {
		t.Errorf("disabled after 76 hours: %s", s)
	}
	p.insertEnded(1)
	for range 200 {
		p.passTime(30 * time.Minute)
	}
	if s := p.value("SELECT coalesce(disabled_reason, '') FROM webhook_endpoints"); s == "" {
		t.Error("eleven dead deliveries and eight days without success: still enabled")
	}
	p.endpoints(f.URL) // applies the same configuration again
	if n := p.value("SELECT count(*)::text FROM webhook_endpoints WHERE disabled_at IS NULL AND failed_in_a_row = 0"); n != "1" {
		t.Error("the operator cannot enable it again")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	p, inner := newFixture(t), newReceiver(t, 200)
	outer := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusTemporaryRedirect))
	t.Cleanup(outer.Close)
	p.endpoints(outer.URL)
	p.insertEnded(1)
	p.passTime(0)
	if len(inner.received()) != 0 || p.value("SELECT last_status::text FROM webhook_deliveries") != "307" {
		t.Error("the redirect was followed")
	}
}

// TestThinAndAgents checks that a thin delivery has no transcript, and that an endpoint with agents gets only the
// calls of these agents.
func TestThinAndAgents(t *testing.T) {
	p := newFixture(t)
	one := func(path string, thin bool, agents ...string) webhook.Endpoint {
		return webhook.Endpoint{URL: "http://127.0.0.1/" + path, Secret: firstSecret, Events: webhook.Types(), Thin: thin, Agents: agents}
	}
	all := []webhook.Endpoint{one("full", false), one("thin", true), one("own", true, "b", "a"), one("others", false, "b")}
	if err := webhook.Replace(t.Context(), p.db.Pool, p.org, all); err != nil {
		t.Fatal(err)
	}
	p.insertEnded(1) // this call is of agent a
	payloads := func(path string) string {
		return p.value("SELECT coalesce(string_agg(convert_from(payload, 'UTF8'), ' '), '') FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id WHERE e.url LIKE '%/" + path + "'")
	}
	for path, want := range map[string]struct{ sent, transcript bool }{"full": {true, true}, "thin": {true, false}, "own": {true, false}, "others": {false, false}} {
		text := payloads(path)
		if (text != "") != want.sent || strings.Contains(text, `"transcript":`) != want.transcript || want.sent && !strings.Contains(text, `"status":"ended"`) {
			t.Errorf("%s received %s", path, text)
		}
	}
}

func TestPayload(t *testing.T) {
	p := newFixture(t)
	got := make(chan []byte, 1)
	f := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- text
	}))
	t.Cleanup(f.Close)
	p.endpoints(f.URL)
	p.insertEnded(1)
	p.exec("UPDATE calls SET contact_id = 'con_1', campaign_id = 'cmp_1', attempt = 2")
	p.exec("DELETE FROM webhook_deliveries")
	s := &store.Store{Pool: p.db.Pool}
	e := control.Event{CallID: p.value("SELECT id FROM calls"), Kind: control.CallEnded, At: p.clock()}
	if err := (&webhook.Notifier{Type: webhook.CallEnded, Pool: p.db.Pool, Calls: s, Now: p.clock}).HandleEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	p.passTime(0)
	var n map[string]any
	if err := json.Unmarshal(<-got, &n); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"type", "event", "event_id", "timestamp", "organization_id", "call_id", "metadata", "call"} {
		if n[k] == nil {
			t.Errorf("no %s", k)
		}
	}
	if m := n["metadata"].(map[string]any); m["contact_id"] != "con_1" || m["campaign_id"] != "cmp_1" || m["attempt"] != 2.0 {
		t.Errorf("metadata %v", m)
	}
}
