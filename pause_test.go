package main

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/sip/siptest"
)

// A pauser answers some INVITEs with 503 and Retry-After, and accepts the others.
type pauser struct {
	after time.Duration
	is    func(n int, i siptest.Invite) bool // n counts from 0

	mu      sync.Mutex
	n       int
	refused []time.Time
}

func (p *pauser) answer(i siptest.Invite) siptest.Script {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	if p.is(p.n-1, i) {
		p.refused = append(p.refused, time.Now())
		return siptest.Script{Ring: -1, Status: http.StatusServiceUnavailable, Headers: map[string]string{"Retry-After": strconv.Itoa(int(p.after / time.Second))}}
	}
	return siptest.Script{Status: http.StatusOK, Talk: listening(300 * time.Millisecond)}
}

func (p *pauser) told() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// order places a call and returns its id.
func order(t *testing.T, api *demo.Client) string {
	t.Helper()
	var c asked
	if err := api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": demo.Number}, &c); err != nil {
		t.Fatal(err)
	}
	return c.CallID
}

// shown returns a call as the API shows it.
func shown(t *testing.T, api *demo.Client, id string) (c asked) {
	t.Helper()
	if err := api.Do(t.Context(), http.MethodGet, "/v1/calls/"+id, nil, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// manyLines allows the demo 50 concurrent calls and 600 per minute.
func (srv *server) manyLines(t *testing.T) {
	t.Helper()
	if _, err := srv.db.Pool.Exec(t.Context(), "UPDATE subgroups SET concurrent_calls = 50, calls_per_minute = 600"); err != nil {
		t.Fatal(err)
	}
	soon(t, "the trunk is known", func() bool { return len(srv.trunkReconciler.Trunks()) == 1 })
}

// TestPauseHoldsSingleCalls: a 503 with Retry-After ends one call. The others wait for the end of the pause.
func TestPauseHoldsSingleCalls(t *testing.T) {
	t.Parallel()
	p := &pauser{after: 4 * time.Second, is: func(n int, _ siptest.Invite) bool { return n == 0 }}
	c := carrier(t, &siptest.Carrier{Answer: p.answer})
	srv, api := startServer(t, c.Addr().String())
	srv.manyLines(t)

	if c := dial(t, api); c.Status != "failed" || c.Reason != "congestion" {
		t.Fatalf("the call that got the answer is %s, %s", c.Status, c.Reason)
	}
	var ids []string
	for range 6 {
		ids = append(ids, order(t, api))
	}
	soon(t, "the database knows of the pause", func() (paused bool) {
		err := srv.db.Pool.QueryRow(t.Context(), "SELECT EXISTS "+store.PausedTrunks).Scan(&paused)
		return err == nil && paused
	})
	for _, id := range ids {
		if c := shown(t, api, id); c.Status != "queued" {
			t.Errorf("in the pause a call is %s, %s", c.Status, c.Reason)
		}
	}
	for _, id := range ids {
		finished(t, api, id)
		if c := shown(t, api, id); c.Status != "ended" || c.Reason != "callee_hangup" {
			t.Errorf("after the pause a call is %s, %s", c.Status, c.Reason)
		}
	}
	told, took := p.told(), c.Journal()
	if len(told) != 1 || len(took) != 1+len(ids) {
		t.Fatalf("%d INVITEs, %d answered with a pause", len(took), len(told))
	}
	if apart := took[1].At.Sub(told[0]); apart < p.after {
		t.Errorf("the next INVITE came %v after the answer, want %v", apart, p.after)
	}
}

// TestPauseOfOneNode: a pause of one server does not apply to another, which places the calls.
func TestPauseOfOneNode(t *testing.T) {
	t.Parallel()
	var paused *server
	p := &pauser{after: 30 * time.Second}
	c := carrier(t, &siptest.Carrier{Answer: p.answer})
	url := dbtest.URL(t)
	shared := func(c *config.Config) {
		if err := config.Settings()["PARLEY_DATABASE_URL"].Set(c, url); err != nil {
			t.Fatal(err)
		}
	}
	paused, api := startServer(t, c.Addr().String(), shared)
	p.is = func(_ int, i siptest.Invite) bool { return i.Source == paused.ua.Addr().String() }
	paused.manyLines(t)
	if c := dial(t, api); c.Reason != "congestion" {
		t.Fatalf("the call that got the answer is %s, %s", c.Status, c.Reason)
	}
	other, _ := startServer(t, c.Addr().String(), shared)
	for range 8 {
		id := order(t, api)
		finished(t, api, id)
		if c := shown(t, api, id); c.Status != "ended" {
			t.Errorf("a call is %s, %s", c.Status, c.Reason)
		}
	}
	if n := len(p.told()); n != 1 {
		t.Errorf("the server in its pause sent %d INVITEs", n)
	}
	for _, at := range c.Journal()[1:] {
		if at.Source != other.ua.Addr().String() {
			t.Errorf("an INVITE came from %s", at.Source)
		}
	}
}

// TestPauseHoldsCampaign: contacts wait during their carrier's pause and are called once each after it.
func TestPauseHoldsCampaign(t *testing.T) {
	t.Parallel()
	p := &pauser{after: 6 * time.Second, is: func(n int, _ siptest.Invite) bool { return n == 0 }}
	c := carrier(t, &siptest.Carrier{Answer: p.answer})
	srv, api := startServer(t, c.Addr().String())
	srv.openAllDay(t)
	const contacts = 6
	id := campaign(t, api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	look := func() (p progress) {
		if err := api.Do(t.Context(), http.MethodGet, "/v1/campaigns/"+id+"/progress", nil, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	soon(t, "contacts are held for the pause", func() bool { p := look(); return p.HeldReasons["carrier_paused"] == contacts-1 && p.Ready == 0 })
	soonFor(t, 60*time.Second, "it is over", func() bool { return look().Status == "completed" })
	if last := look(); last.Counters.Attempts != contacts {
		t.Errorf("%d attempts for %d contacts: %+v", last.Counters.Attempts, contacts, last)
	}
	told, took, to := p.told(), c.Journal(), map[string]int{}
	for _, at := range took {
		to[at.To]++
	}
	if len(told) != 1 || len(took) != contacts || len(to) != contacts {
		t.Fatalf("%d INVITEs to %d numbers, %d answered with a pause", len(took), len(to), len(told))
	}
	if apart := took[1].At.Sub(told[0]); apart < p.after {
		t.Errorf("the next INVITE came %v after the answer, want %v", apart, p.after)
	}
	if got := fmt.Sprint(look().ByState); got != fmt.Sprintf("map[done:%d exhausted:1]", contacts-1) {
		t.Errorf("at the end: %s", got)
	}
}
