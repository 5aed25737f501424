package live_test

import (
	"net/http"
	"regexp"
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
				{Kind: "asr", Name: "deepgram", Active: 311, Limit: 977}, {Kind: "tts", Name: "canary", OrgID: "org_other"},
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

// TestPanel checks that the panel shows the last lines of a call, whether active or ended, and none of another organization.
func TestPanel(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.Exec(t, `INSERT INTO call_lines (call_id, n, item) SELECT 'call_2', 1000 + g, jsonb_build_object('role', 'caller', 'text', 'Sentence ' || g || '.', 'start', 0, 'end', 0, 'turn', 1)
		FROM generate_series(1, 150) g WHERE EXISTS (SELECT FROM calls WHERE id = 'call_2' AND status = 'ongoing')`)
	b := h.SignIn(t, "vera")
	text := b.Get("live?call=call_2").Text()
	if !strings.Contains(text, "Sentence 150.") || !strings.Contains(text, "Sentence 51.") || strings.Contains(text, "Sentence 50.") || !strings.Contains(text, "Earlier lines") {
		t.Errorf("the active call: %s", text)
	}
	if strings.Contains(text, "Hang up") {
		t.Error("a viewer may hang up")
	}
	if text = b.Get("live?call=call_1").Text(); !strings.Contains(text, "Open the page of this call") || strings.Contains(text, "Hang up") {
		t.Errorf("the ended call: %s", text)
	}
	for name, path := range map[string]string{"vera": "live?call=call_unknown", "gus": "live?call=call_1"} {
		if a := h.SignIn(t, name).Get(path); a.Status != http.StatusOK || strings.Contains(a.Text(), "Open the page of this call") {
			t.Errorf("%s at %s: %d %s", name, path, a.Status, a.Text())
		}
	}
}

// TestClock checks that the clock of an active call counts from the answer, or else from the dialing or the creation.
func TestClock(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	b := h.SignIn(t, "vera")
	for _, c := range []struct{ set, since string }{
		{"status = 'queued', dialed_at = NULL, answered_at = NULL", "1795222500"},
		{"status = 'ringing', dialed_at = to_timestamp(1795222560), answered_at = NULL", "1795222560"},
		{"status = 'ongoing', dialed_at = to_timestamp(1795222560), answered_at = to_timestamp(1795222570)", "1795222570"},
	} {
		h.Exec(t, "UPDATE calls SET created_at = to_timestamp(1795222500), "+c.set+" WHERE id = 'call_2'")
		for path, clocks := range map[string]int{"live?call=call_2": 2, "calls/call_2": 1} {
			if body := b.Get(path).Body; strings.Count(body, `data-since="`+c.since+`"`) != clocks {
				t.Errorf("%s, %s: %q", path, c.set, regexp.MustCompile(`data-since="\d+"`).FindAllString(body, -1))
			}
		}
	}
}
