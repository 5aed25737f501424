package main

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/config"
)

// status returns the response status of a URL. The request has the given host name, unless host is "".
func status(t *testing.T, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
		req.Header.Set("Origin", "http://"+host)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestTalkPageOff checks that without PARLEY_TALK_AGENTS /talk does not exist and issues no tokens. The client module
// is still served.
func TestTalkPageOff(t *testing.T) {
	t.Parallel()
	srv, _ := startServer(t, "127.0.0.1:9")
	for path, want := range map[string]int{"/talk": 404, "/talk/token": 404, "/talk/talk.js": 404, "/rtc/parley.js": 200, "/rtc/parley.d.ts": 200} {
		if got := status(t, srv.publicURL+path, ""); got != want {
			t.Errorf("%s returns %d, want %d", path, got, want)
		}
	}
}

// TestListenersCheckHost checks that every listener refuses requests for a foreign host name, to prevent DNS rebinding.
func TestListenersCheckHost(t *testing.T) {
	t.Parallel()
	srv, _ := startServer(t, "127.0.0.1:9")
	metrics := "http://" + srv.http.metricsListener.Addr().String()
	for _, url := range []string{
		srv.publicURL + "/talk/token", srv.publicURL + "/openapi.json", srv.publicURL + "/v1/calls", srv.publicURL + "/dashboard", srv.publicURL + "/rtc", srv.publicURL + "/rtc/whip",
		metrics + "/metrics", metrics + "/debug/pprof/goroutine",
	} {
		if got := status(t, url, "rebind.evil.example"); got != http.StatusMisdirectedRequest {
			t.Errorf("%s with another host: %d", url, got)
		}
		if got := status(t, url, ""); got == http.StatusMisdirectedRequest {
			t.Errorf("%s by its address: %d", url, got)
		}
	}
}

func TestTalkSettings(t *testing.T) {
	t.Parallel()
	c, err := config.Load("", []string{"PARLEY_TALK_AGENTS=acme/sales, shop/help desk"})
	if err != nil || len(c.Talk) != 2 || c.Talk[1] != (config.TalkAgent{Org: "shop", Name: "help desk"}) {
		t.Errorf("%v %v", c.Talk, err)
	}
	for _, wrong := range []string{"sales", "acme/", "/sales", "acme/sales,other/sales"} {
		if _, err := config.Load("", []string{"PARLEY_TALK_AGENTS=" + wrong}); err == nil || !strings.Contains(err.Error(), "ORGANIZATION/AGENT") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	c = testConfig(t)
	c.WebRTC.UDP, c.Talk = config.Off, []config.TalkAgent{{Org: "demo", Name: "demo"}}
	if srv, err := newServer(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "PARLEY_TALK_AGENTS") {
		if srv != nil {
			srv.close()
		}
		t.Errorf("a page without web calls: %v", err)
	}
}
