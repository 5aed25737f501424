package main

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestRouteFailure makes a carrier fail for a while, with two servers on one database. The campaign must report why it
// does not dial. Few calls may test the route, and they must not count as attempts. When the route works again, all
// contacts must be dialed once.
func TestRouteFailure(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	var mu sync.Mutex
	var failed []time.Time
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		if !failing.Load() {
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
		c.DatabaseURL = media.Secret(url)
	}
	srv, api := startServer(t, c.Addr().String(), shared)
	other, _ := startServer(t, c.Addr().String(), shared)
	srv.allowAnyHour(t)
	failing.Store(true)
	const contacts = 60
	id := campaign(t, api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	var p progress
	eventually(t, "the route is held", func() bool { p = readProgress(t, api, id); return p.HeldReasons["route_unavailable"] > 0 })
	// A claim reads the breaker without a lock. A claim that read it before it opened may therefore place a call
	// afterwards. The lock of the campaign's pace allows one such claim, for at most 3 s. Only later figures are final.
	<-time.After(4 * time.Second)
	eventually(t, "no call is active", func() bool { p = readProgress(t, api, id); return p.ByState["in_call"] == 0 })
	before, spent := failures(), p.Counters.Attempts
	if spent < 10 || spent > 25 {
		t.Errorf("%d attempts were spent before the route was held, want 10 to 25", spent)
	}
	<-time.After(12 * time.Second)
	p = readProgress(t, api, id)
	probes := failures() - before
	if probes < 1 || probes > 8 {
		t.Errorf("%d probes in 12 s, want 1 to 8", probes)
	}
	if p.HeldReasons["route_unavailable"] == 0 || p.Ready != 0 {
		t.Errorf("while the route fails: %+v", p)
	}
	reporting := 0
	for _, x := range []*server{srv, other} {
		text := fetch(t, x.http.metricsURL())
		reporting += strings.Count(text, `state="open"} 1`) + strings.Count(text, `state="probing"} 1`)
	}
	if reporting != 1 {
		t.Errorf("%d servers export the state of the route, want 1", reporting)
	}
	failing.Store(false)
	eventuallyWithin(t, 60*time.Second, "the campaign is completed", func() bool { p = readProgress(t, api, id); return p.Status == "completed" })
	if p.Counters.Attempts != contacts || p.Counters.Busy != contacts-spent || p.ByState["exhausted"] != contacts {
		t.Errorf("%d attempts had been spent; at the end: %+v", spent, p)
	}
	mu.Lock()
	defer mu.Unlock()
	gaps := make([]string, 0, len(failed))
	for i := max(1, before); i < len(failed); i++ {
		gaps = append(gaps, failed[i].Sub(failed[i-1]).Round(100*time.Millisecond).String())
	}
	t.Logf("%d attempts spent, %d probes, intervals %s", spent, probes, strings.Join(slices.Clip(gaps), " "))
}
