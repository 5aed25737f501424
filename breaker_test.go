package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestCampaignRoute makes a carrier fail for a while, with two servers on one database. The campaign states why
// it does not dial, few calls test the route, none of them costs an attempt, and all contacts are dialed once
// the route works again.
func TestCampaignRoute(t *testing.T) {
	t.Parallel()
	var ill atomic.Bool
	var mu sync.Mutex
	var failed []time.Time
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		if !ill.Load() {
			return siptest.Script{Status: 486}
		}
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, time.Now())
		return siptest.Script{Status: http.StatusServiceUnavailable, Ring: -1}
	}})
	failures := func() int { mu.Lock(); defer mu.Unlock(); return len(failed) }
	url := dbtest.URL(t)
	shared := func(c *config.Config) {
		c.Breaker.First, c.Breaker.Longest, c.Breaker.Window = time.Second, 3*time.Second, time.Minute
		if err := config.Settings()["PARLEY_DATABASE_URL"].Set(c, url); err != nil {
			t.Fatal(err)
		}
	}
	srv, api := startServer(t, c.Addr().String(), shared)
	other, _ := startServer(t, c.Addr().String(), shared)
	srv.openAllDay(t)
	ill.Store(true)
	const contacts = 60
	id := campaign(t, api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	look := func() (p progress) {
		if err := api.Do(t.Context(), http.MethodGet, "/v1/campaigns/"+id+"/progress", nil, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var p progress
	soon(t, "the route is left alone", func() bool { p = look(); return p.HeldReasons["route_unavailable"] > 0 })
	soon(t, "the calls that are on are over", func() bool { p = look(); return p.ByState["in_call"] == 0 })
	before, spent := failures(), p.Counters.Attempts
	if spent < 10 || spent > 25 {
		t.Errorf("%d attempts are spent before the route is left alone", spent)
	}
	<-time.After(12 * time.Second)
	p = look()
	probes := failures() - before
	if probes < 1 || probes > 8 {
		t.Errorf("%d calls try the route in 12 s", probes)
	}
	if p.HeldReasons["route_unavailable"] == 0 || p.Ready != 0 {
		t.Errorf("while the route fails: %+v", p)
	}
	told := 0
	for _, x := range []*server{srv, other} {
		text := scrape(t, x)
		told += strings.Count(text, `state="open"} 1`) + strings.Count(text, `state="probing"} 1`)
	}
	if told != 1 {
		t.Errorf("%d servers tell Prometheus of the route, want one", told)
	}
	ill.Store(false)
	soonFor(t, 60*time.Second, "it is over", func() bool { p = look(); return p.Status == "completed" })
	// One call that was claimed while the breaker opened may fail after the count above.
	unanswered := p.Counters.Attempts - p.Counters.Busy
	if p.Counters.Attempts != contacts || unanswered < spent || unanswered > spent+1 || p.ByState["exhausted"] != contacts {
		t.Errorf("%d attempts had been spent; at the end: %+v", spent, p)
	}
	mu.Lock()
	defer mu.Unlock()
	gaps := make([]string, 0, len(failed))
	for i := max(1, before); i < len(failed); i++ {
		gaps = append(gaps, failed[i].Sub(failed[i-1]).Round(100*time.Millisecond).String())
	}
	t.Logf("%d attempts spent, %d probes, apart %s", spent, probes, strings.Join(slices.Clip(gaps), " "))
}

// scrape reads the metrics of a server.
func scrape(t *testing.T, srv *server) string {
	t.Helper()
	resp, err := http.Get(srv.http.metricsURL())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
