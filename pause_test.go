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
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// pausingCarrier answers some INVITEs with 503 and Retry-After, and accepts the others.
type pausingCarrier struct {
	after time.Duration
	is    func(n int, i siptest.Invite) bool // selects the INVITEs that get 503; n counts from 0

	mu      sync.Mutex
	n       int
	refused []time.Time
}

func (p *pausingCarrier) answer(i siptest.Invite) siptest.Script {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	if p.is(p.n-1, i) {
		p.refused = append(p.refused, time.Now())
		return siptest.Script{Ring: -1, Status: http.StatusServiceUnavailable, Headers: map[string]string{"Retry-After": strconv.Itoa(int(p.after / time.Second))}}
	}
	return siptest.Script{Status: http.StatusOK, Talk: listenFor(300 * time.Millisecond)}
}

func (p *pausingCarrier) refusals() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

func (srv *server) raiseLimits(t *testing.T) {
	t.Helper()
	if _, err := srv.db.Pool.Exec(t.Context(), "UPDATE subgroups SET concurrent_calls = 50, calls_per_minute = 600"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the trunk is loaded", func() bool { return len(srv.trunkReconciler.Trunks()) == 1 })
}

// TestPauseHoldsSingleCalls checks that a 503 with Retry-After ends one call, and that other calls wait until the pause
// is over.
func TestPauseHoldsSingleCalls(t *testing.T) {
	t.Parallel()
	p := &pausingCarrier{after: 4 * time.Second, is: func(n int, _ siptest.Invite) bool { return n == 0 }}
	c := carrier(t, &siptest.Carrier{Answer: p.answer})
	srv, api := startServer(t, c.Addr().String())
	srv.raiseLimits(t)

	if c := callAndWait(t, api); c.Status != "failed" || c.Reason != "congestion" {
		t.Fatalf("the call that received the 503 is %s, %s", c.Status, c.Reason)
	}
	var ids []string
	for range 6 {
		ids = append(ids, requestCall(t, api, demo.Number))
	}
	eventually(t, "the pause is stored", func() (paused bool) {
		err := srv.db.Pool.QueryRow(t.Context(), "SELECT EXISTS "+store.PausedTrunks).Scan(&paused)
		return err == nil && paused
	})
	for _, id := range ids {
		if c := readCall(t, api, id); c.Status != "queued" {
			t.Errorf("in the pause a call is %s, %s", c.Status, c.Reason)
		}
	}
	for _, id := range ids {
		waitEnded(t, api, id)
		if c := readCall(t, api, id); c.Status != "ended" || c.Reason != "callee_hangup" {
			t.Errorf("after the pause a call is %s, %s", c.Status, c.Reason)
		}
	}
	refused, invites := p.refusals(), c.Journal()
	if len(refused) != 1 || len(invites) != 1+len(ids) {
		t.Fatalf("%d INVITEs, %d answered with 503", len(invites), len(refused))
	}
	if apart := invites[1].At.Sub(refused[0]); apart < p.after {
		t.Errorf("the next INVITE came %v after the 503, want %v", apart, p.after)
	}
}

// TestPauseOfOneNode checks that a pause applies to one server only. Another server places the calls.
func TestPauseOfOneNode(t *testing.T) {
	t.Parallel()
	var paused *server
	p := &pausingCarrier{after: 30 * time.Second}
	c := carrier(t, &siptest.Carrier{Answer: p.answer})
	url := dbtest.URL(t)
	shared := func(c *config.Config) { c.DatabaseURL = media.Secret(url) }
	paused, api := startServer(t, c.Addr().String(), shared)
	p.is = func(_ int, i siptest.Invite) bool { return i.Source == paused.ua.Addr().String() }
	paused.raiseLimits(t)
	if c := callAndWait(t, api); c.Reason != "congestion" {
		t.Fatalf("the call that received the 503 is %s, %s", c.Status, c.Reason)
	}
	other, _ := startServer(t, c.Addr().String(), shared)
	for range 8 {
		id := requestCall(t, api, demo.Number)
		waitEnded(t, api, id)
		if c := readCall(t, api, id); c.Status != "ended" {
			t.Errorf("a call is %s, %s", c.Status, c.Reason)
		}
	}
	if n := len(p.refusals()); n != 1 {
		t.Errorf("the paused server sent %d INVITEs", n)
	}
	for _, at := range c.Journal()[1:] {
		if at.Source != other.ua.Addr().String() {
			t.Errorf("an INVITE came from %s", at.Source)
		}
	}
}

// TestPauseHoldsCampaign checks that contacts wait during their carrier's pause, and that each contact is called once
// after the pause.
func TestPauseHoldsCampaign(t *testing.T) {
	t.Parallel()
	p := &pausingCarrier{after: 6 * time.Second, is: func(n int, _ siptest.Invite) bool { return n == 0 }}
	c := carrier(t, &siptest.Carrier{Answer: p.answer})
	srv, api := startServer(t, c.Addr().String())
	srv.allowAnyHour(t)
	const contacts = 6
	id := campaign(t, api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	eventually(t, "contacts are held for the pause", func() bool {
		p := readProgress(t, api, id)
		return p.HeldReasons["carrier_paused"] == contacts-1 && p.Ready == 0
	})
	eventuallyWithin(t, 60*time.Second, "the campaign is completed", func() bool { return readProgress(t, api, id).Status == "completed" })
	if last := readProgress(t, api, id); last.Counters.Attempts != contacts {
		t.Errorf("%d attempts for %d contacts: %+v", last.Counters.Attempts, contacts, last)
	}
	refused, invites, to := p.refusals(), c.Journal(), map[string]int{}
	for _, at := range invites {
		to[at.To]++
	}
	if len(refused) != 1 || len(invites) != contacts || len(to) != contacts {
		t.Fatalf("%d INVITEs to %d numbers, %d answered with 503", len(invites), len(to), len(refused))
	}
	if apart := invites[1].At.Sub(refused[0]); apart < p.after {
		t.Errorf("the next INVITE came %v after the 503, want %v", apart, p.after)
	}
	if got := fmt.Sprint(readProgress(t, api, id).ByState); got != fmt.Sprintf("map[done:%d exhausted:1]", contacts-1) {
		t.Errorf("at the end: %s", got)
	}
}
