package live_test

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/api/dashboard/live"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestProviderLoad checks that only the root organization sees the load of providers, which is of all organizations.
func TestProviderLoad(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Dashboard.Root = "globex"
		h.Dashboard.Providers = func() []live.Provider {
			return []live.Provider{
				{Does: "speech-to-text", Name: "deepgram", Asked: 311, Most: 977}, {Does: "voice", Name: "canary", OrgID: "org_other"},
			}
		}
	})
	for name, sees := range map[string]bool{"gus": true, "ada": false} {
		text := h.SignIn(t, name).Get("live").Text()
		if !strings.Contains(text, "deepgram speech-to-text up") || strings.Contains(text, "311 of 977") != sees || strings.Contains(text, "Active requests") != sees ||
			strings.Contains(text, "canary") {
			t.Errorf("%s sees %s", name, text)
		}
	}
}

// TestStreamHint checks that the stream drops the hint about missing trunks as the page does.
func TestStreamHint(t *testing.T) {
	const hint, button = "To place a call you need", "New campaign"
	polls := 0
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Dashboard.Stopping = func() bool { polls++; return polls > 3 }
	})
	b := h.SignIn(t, "ada")
	if text := b.Get("live").Text(); !strings.Contains(text, hint) || strings.Contains(text, button) {
		t.Errorf("without a trunk: %s", text)
	}
	h.AddSales(t, "us", true)
	for _, path := range []string{"live", "live/events"} {
		if text := b.Get(path).Text(); strings.Contains(text, hint) || !strings.Contains(text, button) {
			t.Errorf("%s with a trunk: %s", path, text)
		}
	}
	if polls < 3 {
		t.Errorf("%d polls", polls)
	}
}
