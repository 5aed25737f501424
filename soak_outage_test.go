package main

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/sip/siptest"
)

// Settings of TestSoakProvidersDown.
const (
	outageContacts = 300
	outageLasts    = 90 * time.Second
	// outageInFlight bounds the failed calls: those that were live, or started before the servers detected the outage.
	outageInFlight = 40
	// outageProbes bounds the calls during the detected outage.
	outageProbes = 5
)

// TestSoakProvidersDown stops the providers of two servers under a running campaign and starts them again: during
// the outage no contact is called except by probes, and afterwards all are called.
func TestSoakProvidersDown(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	o := newOutage(t)
	var r rung
	c := carrier(t, &siptest.Carrier{Answer: r.answer(4 * time.Second)})
	url := dbtest.URL(t)
	shared := func(c *config.Config) {
		c.Endpoints.Fake = o.addr
		if err := config.Settings()["PARLEY_DATABASE_URL"].Set(c, url); err != nil {
			t.Fatal(err)
		}
	}
	srv, api := startServer(t, c.Addr().String(), shared)
	startServer(t, c.Addr().String(), shared)
	srv.openAllDay(t)
	id := campaign(t, api, map[string]any{"calls_per_minute": 200, "retry_config": map[string]any{"attempts": 3, "interval_s": 60}}, many(outageContacts)...)
	look := func() (p progress) {
		if err := api.Do(t.Context(), http.MethodGet, "/v1/campaigns/"+id+"/progress", nil, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	soonFor(t, 2*time.Minute, "a fifth is called", func() bool { return r.count() >= outageContacts/5 })
	began, before := time.Now(), r.count()
	o.stop()
	var p progress
	held := func() int { return p.HeldReasons["provider_unavailable"] + p.HeldReasons["too_many_failures"] }
	soonFor(t, 30*time.Second, "the campaign is held", func() bool { p = look(); return held() > 0 && p.Ready == 0 })
	after := time.Since(began)
	soonFor(t, time.Minute, "the calls that were on are over", func() bool { p = look(); return p.ByState["in_call"] == 0 })
	broken := r.count() - before
	for time.Since(began) < outageLasts {
		<-time.After(time.Second)
		if p = look(); held() == 0 || p.Ready > 0 {
			t.Fatalf("it calls while its providers are down: %+v", p)
		}
	}
	probes := r.count() - before - broken
	o.start()
	back := time.Now()
	soonFor(t, 2*time.Minute, "it calls again", func() bool { return r.count() > before+broken+probes })
	again := time.Since(back)
	soonFor(t, 15*time.Minute, "it is over", func() bool { p = look(); return p.Status == "completed" })
	if broken > outageInFlight || probes > outageProbes {
		t.Errorf("%d calls began before the servers knew, at most %d; %d after, at most %d", broken, outageInFlight, probes, outageProbes)
	}
	if p.ByState["done"] != outageContacts {
		t.Errorf("of %d contacts: %+v", outageContacts, p)
	}
	r.mu.Lock()
	called := len(r.of)
	r.mu.Unlock()
	if called != outageContacts {
		t.Errorf("%d of %d were called", called, outageContacts)
	}
	t.Logf("%d calls before the outage; it was known after %v, %d began meanwhile, %d while it was known; the first %v after the return; %d calls in all for %d contacts: %v",
		before, after.Round(10*time.Millisecond), broken, probes, again.Round(10*time.Millisecond), r.count(), outageContacts, p.ByState)
}
