package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
)

func testConfig(t testing.TB) config.Config {
	t.Helper()
	c := config.Default()
	c.DataDir, c.HTTPAddr, c.MetricsAddr, c.SIPAddr = openDir(t), "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.AllowInsecureWebhooks, c.WebRTC.UDP, c.DatabaseWait = true, 0, 0
	c.LimitLoad = false // other tests use the CPU at the same time
	return c
}

// TestStopLeaksNothing starts a complete server and closes it. No goroutine may be left.
func TestStopLeaksNothing(t *testing.T) {
	c := testConfig(t)
	c.DatabaseURL = media.Secret(dbtest.URL(t))
	before := goleak.IgnoreCurrent()
	srv, err := newServer(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		srv.publicURL + "/healthz":      "ok",
		srv.publicURL + "/readyz":       `"status":"ready","room":`,
		srv.publicURL + "/openapi.json": `"openapi":"3.1`,
		srv.publicURL + "/docs":         "<html",
		srv.publicURL + "/dashboard":    "Sign in",
		srv.http.metricsURL():           "parley_media_clock_late_ticks_total",
	} {
		if got := fetch(t, path); !strings.Contains(got, want) {
			t.Errorf("%s says %.200q, want %q in it", path, got, want)
		}
	}
	for accept, want := range map[string]string{"text/html,*/*;q=0.8": "Sign in", "*/*": "path not found"} {
		if got := fetch(t, srv.publicURL+"/", "Accept", accept); !strings.Contains(got, want) {
			t.Errorf("/ for %s says %.200q, want %q in it", accept, got, want)
		}
	}
	srv.drain()
	if got := fetch(t, srv.publicURL+"/readyz"); strings.Contains(got, `"ready"`) {
		t.Errorf("a draining service is ready: %s", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	srv.stop(ctx)
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

// TestDashboardOff checks that without the dashboard its pages do not exist, and all other pages do.
func TestDashboardOff(t *testing.T) {
	c := testConfig(t)
	c.DatabaseURL = media.Secret(dbtest.URL(t))
	if err := config.Settings()["PARLEY_DASHBOARD"].Set(&c, "off"); err != nil {
		t.Fatal(err)
	}
	srv, err := newServer(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.stop(context.WithoutCancel(t.Context()))
	for path, want := range map[string]string{"/healthz": "ok", "/dashboard": "path not found", "/dashboard/sign-in": "path not found", "/dashboard/assets/x": "path not found", "/": "path not found"} {
		if got := fetch(t, srv.publicURL+path); !strings.Contains(got, want) {
			t.Errorf("%s says %.200q, want %q in it", path, got, want)
		}
	}
}

// fetch gets a URL with additional headers.
func fetch(t testing.TB, url string, headers ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestInvalidSettingsAreNamed checks that the error names the invalid setting, and that no goroutine is left.
func TestInvalidSettingsAreNamed(t *testing.T) {
	c := testConfig(t)
	c.DatabaseURL = media.Secret(dbtest.URL(t))
	prices := writeFile(t, "prices.yaml", "prices:\n- {kind: openai, serves: asr}\n")
	before := goleak.IgnoreCurrent()
	for want, change := range map[string]func(*config.Config){
		"PARLEY_MEDIA_IP":     func(c *config.Config) { c.SIPAddr = "0.0.0.0:0" },
		"PARLEY_SIP_ADDR":     func(c *config.Config) { c.SIPAddr = "sip.example:0" },
		"PARLEY_HTTP_ADDR":    func(c *config.Config) { c.HTTPAddr = "192.0.2.1:80" },
		"PARLEY_METRICS_ADDR": func(c *config.Config) { c.MetricsAddr = "192.0.2.1:80" },
		"line 2":              func(c *config.Config) { c.PricesFile = prices },
		"database":            func(c *config.Config) { c.DatabaseURL = "host=/nonexistent user=parley" },
	} {
		changed := c
		change(&changed)
		srv, err := newServer(t.Context(), changed, slog.New(slog.DiscardHandler))
		if err == nil {
			srv.stop(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s in it", err, want)
		}
	}
	goleak.VerifyNone(t, before)
}

// TestCallMetrics places a call that is not answered, and checks that the metrics count it.
func TestCallMetrics(t *testing.T) {
	t.Parallel()
	srv, api := startServer(t, "127.0.0.1:9") // nothing listens at this address
	var placed demo.Call
	body := map[string]any{"agent_id": "demo", "to_number": demo.Number, "ring_duration": 5}
	post(t, api, "/v1/calls/phone", body, &placed)
	post(t, api, "/v1/calls/"+placed.CallID+"/end", nil, &placed)
	call, _ := waitEnded(t, api, placed.CallID)
	if call.Status != "failed" {
		t.Errorf("the call is %s", call.Status)
	}
	eventually(t, "the call is counted", func() bool {
		return strings.Contains(fetch(t, srv.http.metricsURL()), `parley_calls_total{reason="`+call.Reason+`",status="failed"} 1`)
	})
}
