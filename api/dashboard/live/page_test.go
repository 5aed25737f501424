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
	h := dashtest.New(t, func(h *dashtest.House) {
		h.Dashboard.Root = "globex"
		h.Dashboard.Providers = func() []live.Provider { return []live.Provider{{Does: "hears", Name: "ear", Asked: 311, Most: 977}} }
	})
	for name, sees := range map[string]bool{"gus": true, "ada": false} {
		text := h.SignIn(t, name).Get("live").Text()
		if !strings.Contains(text, "ear hears up") || strings.Contains(text, "311 of 977") != sees || strings.Contains(text, "At work now") != sees {
			t.Errorf("%s sees %s", name, text)
		}
	}
}
