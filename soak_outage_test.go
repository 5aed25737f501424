package main

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// Settings of TestSoakProviderOutage.
const (
	outageContacts = 300
	outageLasts    = 90 * time.Second
	// outageInFlight limits the failed calls. These calls were live, or started before the servers detected the outage.
	outageInFlight = 40
	// outageProbes limits the calls during the detected outage.
	outageProbes = 5
)

// TestSoakProviderOutage stops the providers of two servers during a campaign and starts them again. During the outage
// only probes may call contacts. After the outage all contacts must be called.
func TestSoakProviderOutage(t *testing.T) {
	soakOnly(t)
	o := startProviders(t)
	var r inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: r.accept(4 * time.Second)})
	url := dbtest.URL(t)
	shared := func(c *config.Config) {
		c.Endpoints.Fake, c.DatabaseURL = o.addr, media.Secret(url)
	}
	srv, api := startServer(t, c.Addr().String(), shared)
	startServer(t, c.Addr().String(), shared)
	srv.allowAnyHour(t)
	id := campaign(t, api, map[string]any{"calls_per_minute": 200, "retry_config": map[string]any{"attempts": 3, "interval_s": 60}}, many(outageContacts)...)
	eventuallyWithin(t, 2*time.Minute, "a fifth of the contacts was called", func() bool { return r.total() >= outageContacts/5 })
	began, before := time.Now(), r.total()
	o.stop()
	var p progress
	held := func() int { return p.HeldReasons["provider_unavailable"] + p.HeldReasons["too_many_failures"] }
	eventuallyWithin(t, 30*time.Second, "the campaign is held", func() bool { p = readProgress(t, api, id); return held() > 0 && p.Ready == 0 })
	after := time.Since(began)
	eventuallyWithin(t, time.Minute, "no call is active", func() bool { p = readProgress(t, api, id); return p.ByState["in_call"] == 0 })
	broken := r.total() - before
	for time.Since(began) < outageLasts {
		<-time.After(time.Second)
		if p = readProgress(t, api, id); held() == 0 || p.Ready > 0 {
			t.Fatalf("the campaign is not held while its providers are down: %+v", p)
		}
	}
	probes := r.total() - before - broken
	o.start()
	back := time.Now()
	eventuallyWithin(t, 2*time.Minute, "calls are placed again", func() bool { return r.total() > before+broken+probes })
	again := time.Since(back)
	eventuallyWithin(t, 15*time.Minute, "the campaign is completed", func() bool { p = readProgress(t, api, id); return p.Status == "completed" })
	if broken > outageInFlight || probes > outageProbes {
		t.Errorf("%d calls before the outage was detected, want at most %d; %d after, want at most %d", broken, outageInFlight, probes, outageProbes)
	}
	if p.ByState["done"] != outageContacts {
		t.Errorf("of %d contacts: %+v", outageContacts, p)
	}
	if called := len(r.numbers()); called != outageContacts {
		t.Errorf("%d of %d were called", called, outageContacts)
	}
	t.Logf("%d calls before the outage; detected after %v; %d calls until then, %d probes; the first call %v after the return; %d calls in all for %d contacts: %v",
		before, after.Round(10*time.Millisecond), broken, probes, again.Round(10*time.Millisecond), r.total(), outageContacts, p.ByState)
}
