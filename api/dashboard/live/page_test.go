package live_test

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/api/dashboard/live"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestLoads: how much providers have to do is that of all organizations, and the root's
// to see.
func TestLoads(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Dashboard.Root = "globex"
		h.Dashboard.Providers = func() []live.Provider {
			return []live.Provider{{Does: "speech-to-text", Name: "deepgram", Asked: 311, Most: 977}}
		}
	})
	for name, sees := range map[string]bool{"gus": true, "ada": false} {
		text := h.SignIn(t, name).Get("live").Text()
		if !strings.Contains(text, "deepgram speech-to-text up") || strings.Contains(text, "311 of 977") != sees || strings.Contains(text, "Active requests") != sees {
			t.Errorf("%s sees %s", name, text)
		}
	}
}

// TestStreamKnowsTheLines: the parts that change fast know as well as the page that
// calls can be made.
func TestStreamKnowsTheLines(t *testing.T) {
	const hint, button = "To place a call you need", "New campaign"
	pollInterval := 0
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Dashboard.Stopping = func() bool { pollInterval++; return pollInterval > 3 }
	})
	b := h.SignIn(t, "ada")
	if text := b.Get("live").Text(); !strings.Contains(text, hint) || strings.Contains(text, button) {
		t.Errorf("without a line: %s", text)
	}
	h.AddSales(t, "us", true)
	for _, path := range []string{"live", "live/events"} {
		if text := b.Get(path).Text(); strings.Contains(text, hint) || !strings.Contains(text, button) {
			t.Errorf("%s with a line: %s", path, text)
		}
	}
	if pollInterval < 3 {
		t.Errorf("the stream looked %d times", pollInterval)
	}
}
