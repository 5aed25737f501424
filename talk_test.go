package main

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/config"
)

func status(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestTalkIsOff: where no agent is named there is no such page, and nobody gets a
// token; the client is there for pages of others.
func TestTalkIsOff(t *testing.T) {
	h, _ := startHouse(t, "127.0.0.1:9")
	for path, want := range map[string]int{"/talk": 404, "/talk/token": 404, "/talk/talk.js": 404, "/rtc/parley.js": 200, "/rtc/parley.d.ts": 200} {
		if got := status(t, h.publicURL+path); got != want {
			t.Errorf("%s answers %d, want %d", path, got, want)
		}
	}
}

func TestTalkSettings(t *testing.T) {
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
	if h, err := build(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "PARLEY_TALK_AGENTS") {
		if h != nil {
			h.close()
		}
		t.Errorf("a page without web calls: %v", err)
	}
}
