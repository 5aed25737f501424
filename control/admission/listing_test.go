package admission_test

import (
	"testing"

	"github.com/parley-voice/parley/control"
)

func TestRoutes(t *testing.T) {
	w := newFixture(t)
	w.placeMany("globex", "helpdesk", 2)
	w.endAll()
	w.placeMany("globex", "helpdesk", 1)
	w.exec("UPDATE calls SET created_at = now() - interval '61 s' WHERE id = (SELECT min(id) FROM calls)")
	all, err := w.controller.Routes(t.Context(), w.org["globex"], "helpdesk")
	if err != nil || len(all) != 1 || len(all[0].Subgroups) != 1 {
		t.Fatalf("%+v %v", all, err)
	}
	trunk, s := all[0], all[0].Subgroups[0]
	if !trunk.Lent || trunk.Name != "main" || trunk.Line.MediaTrunk().Proxy != "sip:127.0.0.1:5080" || s.Name != "default" || s.DialPrefix != "7" ||
		len(s.CallerNumbers) != 2 || s.ConcurrentCalls != 3 || s.CallsPerMinute != 5 || s.InUse != 1 || s.Started != 2 {
		t.Errorf("%+v", all)
	}
	if all, err := w.controller.Routes(t.Context(), w.org["acme"], "sales"); err != nil || len(all) != 1 || all[0].Lent || all[0].Subgroups[0].ConcurrentCalls != 1000 {
		t.Errorf("%+v %v", all, err)
	}
	if _, err := w.controller.Routes(t.Context(), w.org["acme"], "helpdesk"); control.CodeOf(err) != control.CodeCampaignAgentUnknown {
		t.Errorf("another organization's agent: %v", err)
	}
}
