package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
)

// threeOrganizations is a configuration file with three organizations that have agents of the same name.
const threeOrganizations = `
organizations:
- name: acme
  agents: [{name: sales, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks:
  - name: main
    proxy: "sip:127.0.0.1:5080"
    caller_numbers: ["+12025550100"]
    subgroups:
    - {name: default, allowed_destinations: ["1"], agents: [sales], concurrent_calls: 9, calls_per_minute: 9}
    - {name: idle, allowed_destinations: ["1"], agents: [], concurrent_calls: 9, calls_per_minute: 9}
- name: globex
  agents: [{name: sales, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks:
  - name: main
    proxy: "sip:127.0.0.1:5080"
    caller_numbers: ["+12025550200"]
    subgroups: [{name: default, allowed_destinations: ["1"], agents: [sales], concurrent_calls: 9, calls_per_minute: 9}]
- name: initech
  agents: [{name: sales, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks:
  - name: main
    proxy: "sip:127.0.0.1:5080"
    caller_numbers: ["+12025550300"]
    subgroups: [{name: default, allowed_destinations: ["1"], agents: [sales], concurrent_calls: 9, calls_per_minute: 9}]
`

// newDatabase returns a database to which a configuration file was applied.
func newDatabase(t *testing.T, file string) *db.DB {
	t.Helper()
	d := dbtest.New(t)
	s, err := apply.Parse(strings.NewReader(file))
	if err == nil {
		err = apply.Apply(t.Context(), d.Pool, s, apply.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFindReadsFewSubgroups checks how many subgroups find reads for an order that names none: only those of the
// agent, and at most two.
func TestFindReadsFewSubgroups(t *testing.T) {
	d := newDatabase(t, `
organizations:
- name: acme
  agents:
  - {name: one, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  - {name: many, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  - {name: none, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  trunks:
  - name: main
    proxy: "sip:127.0.0.1:5080"
    caller_numbers: ["+12025550100"]
    subgroups:
    - {name: a, allowed_destinations: ["1"], agents: [many], concurrent_calls: 9, calls_per_minute: 9}
    - {name: b, allowed_destinations: ["1"], agents: [many], concurrent_calls: 9, calls_per_minute: 9}
    - {name: c, allowed_destinations: ["1"], agents: [many, one], concurrent_calls: 9, calls_per_minute: 9}
`)
	org, err := apikeys.FindOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]struct {
		rows int
		code control.Code
	}{"one": {1, ""}, "many": {2, control.CodeAgentSubgroupAmbig}, "none": {0, control.CodeAgentNotInSubgroup}} {
		l := &lookup{org: org, order: Order{Agent: agent}}
		q, batch := newLookupBatch([]*lookup{l}), &pgx.Batch{}
		q.queueRoutes(batch)
		if err := d.Pool.SendBatch(t.Context(), batch).Close(); err != nil {
			t.Fatal(err)
		}
		all := q.routes[l.routeKey()]
		if _, err := choose(all, false); len(all) != want.rows || (err != nil) != (want.code != "") || err != nil && control.CodeOf(err) != want.code {
			t.Errorf("%s: %d subgroups, %v; want %d, %q", agent, len(all), err, want.rows, want.code)
		}
	}
}

// TestFindSeparatesOrganizations checks that orders that are checked together see only rows of their own organization.
// An invalid row affects only its organization.
func TestFindSeparatesOrganizations(t *testing.T) {
	d := newDatabase(t, threeOrganizations)
	var err error
	org, trunk, route, agent := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	for _, name := range []string{"acme", "globex", "initech"} {
		if org[name], err = apikeys.FindOrganization(t.Context(), d.Pool, name); err != nil {
			t.Fatal(err)
		}
		var tr, ro, ag string
		if err = d.Pool.QueryRow(t.Context(), `SELECT t.id, s.id, a.id FROM trunks t JOIN subgroups s ON s.trunk_id = t.id AND s.name = 'default'
			JOIN agents a ON a.org_id = t.org_id WHERE t.org_id = $1`, org[name]).Scan(&tr, &ro, &ag); err != nil {
			t.Fatal(err)
		}
		trunk[name], route[name], agent[name] = tr, ro, ag
	}
	dbtest.Exec(t, d, "INSERT INTO suppressions (org_id, number) VALUES ($1, '12025550123')", org["acme"])
	controller := &Controller{Pool: d.Pool, Store: &store.Store{Pool: d.Pool}}
	bad := errors.New("what is stored")
	for _, stored := range []struct {
		name, sql string
		bad       bool // initech's row is invalid
	}{
		{"well", "", false},
		{"trunk badly", "UPDATE trunks SET settings = '[1]' WHERE org_id = $1", true},
		{"limits badly", `UPDATE organizations SET settings = '{"limits": {"daily_calls": "many"}}' WHERE id = $1`, true},
	} {
		dbtest.Exec(t, d, "UPDATE trunks SET settings = '{}' WHERE org_id = $1", org["initech"])
		if stored.sql != "" {
			dbtest.Exec(t, d, stored.sql, org["initech"])
		}
		var asked []*lookup
		want := []struct {
			org, trunk, route, to string
			err                   error
			code                  control.Code
			listed                bool
		}{
			{org: "acme", to: "+12025550124"},
			{org: "globex", to: "+12025550123"},
			{org: "acme", to: "+12025550123", listed: true},
			{org: "globex", trunk: "acme", code: control.CodeTrunkNotFound},
			{org: "acme", trunk: "globex", code: control.CodeTrunkNotFound},
			{org: "acme", route: "globex", code: control.CodeSubgroupNotFound},
			{org: "globex", route: "acme", code: control.CodeSubgroupNotFound},
			{org: "globex", trunk: "globex", route: "globex"},
			{org: "initech"},
			{org: "acme", trunk: "acme", route: "acme"},
			{org: "initech", trunk: "acme", code: control.CodeTrunkNotFound},
		}
		if stored.bad {
			want[8].err = bad
		}
		for _, x := range want {
			asked = append(asked, &lookup{org: org[x.org], order: Order{Agent: "sales", To: x.to, TrunkID: trunk[x.trunk], RouteID: route[x.route]}})
		}
		each, err := controller.find(t.Context(), asked)
		if err != nil {
			t.Errorf("stored %s: %v fails all", stored.name, err)
			continue
		}
		for n, x := range want {
			f, err := asked[n].found, each[n]
			switch {
			case x.err != nil:
				if err == nil || control.CodeOf(err) != control.CodeInternal {
					t.Errorf("stored %s: order %d: %v, %q", stored.name, n, err, control.CodeOf(err))
				}
			case x.code != "":
				if control.CodeOf(err) != x.code {
					t.Errorf("stored %s: order %d: %v, want %s", stored.name, n, err, x.code)
				}
			case err != nil || f.agentErr != nil || f.route.id != route[x.org] || f.route.trunkID != trunk[x.org] || f.agent.id != agent[x.org] || (f.screened.List != "") != x.listed:
				t.Errorf("stored %s: order %d of %s: %+v, %v", stored.name, n, x.org, f, err)
			}
		}
	}
}
