package apply_test

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// lent returns all grants as text: trunk, borrower, limits, subgroups.
func lent(t *testing.T, d *db.DB) string {
	t.Helper()
	var text string
	err := d.Pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(concat_ws(' ', t.name, o.name, g.concurrent_calls, g.calls_per_minute,
			(SELECT string_agg(s.name, ',' ORDER BY s.name) FROM subgroups s WHERE s.grant_id = g.id)), '; ' ORDER BY t.name, o.name), '')
		FROM grants g JOIN trunks t ON t.id = g.trunk_id JOIN organizations o ON o.id = g.org_id`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestGrants(t *testing.T) {
	d := dbtest.New(t)
	put(t, d, whole, apply.Options{AllowInsecure: true})
	if got := lent(t, d); got != "main globex 5 10 default" {
		t.Errorf("lent: %s", got)
	}
	for _, step := range []struct{ file, want string }{
		// A file without the key "grants" changes nothing.
		{`organizations: [{name: acme}, {name: globex}]`, "main globex 5 10 default"},
		{`organizations: [{name: acme, grants: [{trunk: main, to: globex}]}]`, "main globex 0 0 default"},
		{`organizations: [{name: globex, granted_trunks: [{trunk: main, of: acme, subgroups: [{name: b}]}]}]`, "main globex 0 0 b,default"},
		// The borrower may precede the lender.
		{`organizations: [{name: initech, granted_trunks: [{trunk: main, of: acme}]}, {name: acme, grants: [{trunk: main, to: globex}, {trunk: main, to: initech, calls_per_minute: 2}]}]`, "main globex 0 0 b,default; main initech 0 2"},
		// A list that omits a grant revokes the grant.
		{`organizations: [{name: acme, grants: [{trunk: main, to: initech}]}]`, "main initech 0 0"},
		{`organizations: [{name: acme, grants: []}]`, ""},
	} {
		put(t, d, step.file, apply.Options{})
		if got := lent(t, d); got != step.want {
			t.Errorf("after %s: %q, want %q", step.file, got, step.want)
		}
	}
}

func TestPruneGrants(t *testing.T) {
	d := dbtest.New(t)
	put(t, d, whole, apply.Options{AllowInsecure: true})
	// Pruning with the lender's file keeps the borrower's subgroups.
	prune := `organizations: [{name: acme, agents: [{name: sales}], trunks: [{name: main, subgroups: [{name: other}]}]}, {name: globex, agents: [{name: helpdesk}]}]`
	put(t, d, prune, apply.Options{Prune: true})
	if got := lent(t, d); got != "main globex 5 10 default" {
		t.Errorf("lent: %s", got)
	}
	put(t, d, strings.TrimSuffix(prune, "}]")+`, granted_trunks: [{trunk: main, of: acme, subgroups: [{name: b}]}]}]`, apply.Options{Prune: true})
	if got := lent(t, d); got != "main globex 5 10 b" {
		t.Errorf("lent: %s", got)
	}
}

func TestGrantsThatCannotBe(t *testing.T) {
	d := dbtest.New(t)
	put(t, d, whole, apply.Options{AllowInsecure: true})
	for _, row := range []struct{ file, want string }{
		{`organizations: [{name: acme, grants: [{trunk: other, to: globex}]}]`, `trunk "other"`},
		{`organizations: [{name: acme, grants: [{trunk: main, to: nobody}]}]`, `organization "nobody"`},
		{`organizations: [{name: acme, grants: [{trunk: main, to: acme}]}]`, "its own organization"},
		{`organizations: [{name: acme, grants: [{trunk: main, to: globex, caller_numbers: ["+12025550177"]}]}]`, "does not belong to the trunk"},
		{`organizations: [{name: acme, grants: [{trunk: main, to: globex, concurrent_calls: -1}]}]`, "limits must not be negative"},
		{`organizations: [{name: acme, granted_trunks: [{trunk: main, of: globex}]}]`, "not lent"},
		{`organizations: [{name: globex, granted_trunks: [{trunk: main, of: acme, subgroups: [{name: x, agents: [sales]}]}]}]`, `agent "sales"`},
		{`organizations: [{name: acme, grants: [{trunk: main, to: globex}, {trunk: main, to: globex}]}]`, "twice"},
		{`organizations: [{name: acme, limits: {daily_calls: -1}}]`, "limits"},
		{`organizations: [{name: acme, trunks: [{name: main, rates: {"+1": 1}}]}]`, "rates"},
		{`organizations: [{name: acme, trunks: [{name: main, rates: {"1": .nan}}]}]`, "rates"},
	} {
		s, err := apply.Parse(strings.NewReader(row.file))
		if err == nil {
			err = apply.Apply(t.Context(), d.Pool, s, apply.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.file, err, row.want)
		}
	}
}
