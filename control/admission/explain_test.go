package admission

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
)

// TestExplain checks that the refusal distinguishes an unknown agent from an agent without a subgroup, and that it
// names no agents of other organizations.
func TestExplain(t *testing.T) {
	d := newDatabase(t, `
organizations:
- name: acme
  agents:
  - {name: one, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  - {name: none, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  trunks:
  - name: main
    proxy: "sip:127.0.0.1:5080"
    caller_numbers: ["+12025550100"]
    subgroups:
    - {name: a, allowed_destinations: ["1"], agents: [one], concurrent_calls: 9, calls_per_minute: 9}
- name: globex
  agents:
  - {name: theirs, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
- name: empty
`)
	controller := &Controller{Pool: d.Pool, Store: &store.Store{Pool: d.Pool}}
	refused := func(org string, o Order) string {
		t.Helper()
		id, err := apikeys.FindOrganization(t.Context(), d.Pool, org)
		if err != nil {
			t.Fatal(err)
		}
		o.To = "+12025550123"
		_, err = controller.Place(t.Context(), id, o, nil)
		if control.CodeOf(err) != control.CodeAgentNotInSubgroup {
			t.Errorf("%+v: %v", o, err)
		}
		return err.Error()
	}
	route := dbtest.Value[string](t, d, "SELECT id FROM subgroups")
	for _, row := range []struct {
		org   string
		order Order
		want  string
	}{
		{"acme", Order{Agent: "theirs"}, `no agent "theirs" in this organization (agents: none, one)`},
		{"acme", Order{Agent: "none"}, `agent "none" is not attached to any subgroup`},
		{"acme", Order{Agent: "none", RouteID: route}, `agent "none" is not attached to this subgroup`},
		{"empty", Order{Agent: "theirs"}, `no agent "theirs": this organization has no agents`},
	} {
		if got := refused(row.org, row.order); !strings.HasSuffix(got, row.want) {
			t.Errorf("%s, %+v: %q, want %q", row.org, row.order, got, row.want)
		}
	}
	dbtest.Exec(t, d, "INSERT INTO agents (id, org_id, name, draft) SELECT 'agt_' || n, org_id, 'two' || n, draft FROM agents, generate_series(10, 99) n WHERE name = 'one'")
	if got := refused("acme", Order{Agent: "gone"}); !strings.HasSuffix(got, "two16, two17, …)") {
		t.Errorf("of many agents: %q", got)
	}
}
