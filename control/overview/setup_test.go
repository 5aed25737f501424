package overview_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/overview"
)

// addCalls adds n calls of an organization, one a second from the time at on. Phone calls use one of three trunks.
func addCalls(t *testing.T, d *db.DB, org, kind string, answered bool, n int, at time.Time) {
	t.Helper()
	_, err := d.Pool.Exec(t.Context(), `
		INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
			ring_seconds, created_at, disconnection_reason, answered_at, ended_at)
		SELECT concat_ws('_', 'call', $1::text, $2::text, $4::int, $5::timestamptz, n), $1, $2, CASE WHEN $3 THEN 'ended' ELSE 'failed' END, 'agt_1', 'sales', 1,
			'12025550123', '12025550100', '12025550123', CASE WHEN $2 = 'phone' THEN 'trk_' || n % 3 ELSE '' END, '', 45, x.at, 'busy',
			CASE WHEN $3 THEN x.at END, x.at + interval '30 seconds'
		FROM generate_series(1, $4::int) n, LATERAL (SELECT $5::timestamptz + n * interval '1 second' AS at) x`, org, kind, answered, n, at)
	if err != nil {
		t.Fatal(err)
	}
}

func addOrganization(t *testing.T, d *db.DB, org string) {
	t.Helper()
	if _, err := d.Pool.Exec(t.Context(), "INSERT INTO organizations (id, name) VALUES ($1, $1)", org); err != nil {
		t.Fatal(err)
	}
}

// TestFirstPhoneCall checks that an answered phone call is found whatever other calls there are, and that no call of a
// browser or of another organization counts.
func TestFirstPhoneCall(t *testing.T) {
	d := dbtest.New(t)
	const many = 3200 // more than is read first, in each of three trunks
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	type batch struct {
		kind     string
		answered bool
		n        int
		after    time.Duration // since start
	}
	for name, tt := range map[string]struct {
		calls  []batch
		newest string // a part of the id
		want   bool
	}{
		"no calls":       {nil, "", false},
		"one web call":   {[]batch{{"web", true, 1, 0}}, "", false},
		"one unanswered": {[]batch{{"phone", false, 1, 0}}, "phone", false},
		"one answered":   {[]batch{{"phone", true, 1, 0}}, "phone", true},
		"answered once, then neither": {
			[]batch{{"phone", true, 1, 0}, {"phone", false, many, time.Hour}, {"web", true, many, -24 * time.Hour}}, "phone_" + strconv.Itoa(many), true,
		},
		"never answered": {[]batch{{"phone", false, many, 0}, {"web", true, many, 0}}, "phone_" + strconv.Itoa(many), false},
	} {
		t.Run(name, func(t *testing.T) {
			addOrganization(t, d, name)
			for _, x := range tt.calls {
				addCalls(t, d, name, x.kind, x.answered, x.n, start.Add(x.after))
			}
			has, err := overview.HasAnsweredPhoneCall(t.Context(), d.Pool, name)
			if err != nil || has != tt.want {
				t.Errorf("answered: %v, %v; want %v", has, err, tt.want)
			}
			newest, err := overview.NewestPhoneCall(t.Context(), d.Pool, name)
			if err != nil || (newest == nil) != (tt.newest == "") {
				t.Fatalf("newest: %+v, %v; want %q", newest, err, tt.newest)
			}
			if newest == nil {
				return
			}
			var last bool
			err = d.Pool.QueryRow(t.Context(), `SELECT strpos(id, $2) > 0 AND created_at = (SELECT max(created_at) FROM calls WHERE org_id = $3 AND call_type = 'phone')
				FROM calls WHERE id = $1`, newest.ID, tt.newest, name).Scan(&last)
			if err != nil || !last || !newest.Over || newest.Reason != "busy" {
				t.Errorf("newest: %+v, %v", newest, err)
			}
		})
	}
}

// TestSoakFirstPhoneCall checks that the set-up path reads the calls of an organization within 10 ms, with a million calls
// of browsers, a million unanswered phone calls, or one answered phone call before a million others.
func TestSoakFirstPhoneCall(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	const million, part = 1_000_000, 50_000
	d := dbtest.New(t)
	if _, err := d.Pool.Exec(t.Context(), "ALTER TABLE calls DISABLE TRIGGER USER"); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	check := func(org, what string, want bool) {
		t.Helper()
		var took []time.Duration
		for range 20 {
			began := time.Now()
			has, err := overview.HasAnsweredPhoneCall(t.Context(), d.Pool, org)
			if err != nil || has != want {
				t.Errorf("%s: %v, %v; want %v", what, has, err, want)
			}
			if _, err = overview.NewestPhoneCall(t.Context(), d.Pool, org); err != nil {
				t.Error(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("%s: best %v, median %v, worst %v", what, took[0], took[10], took[19])
		if took[10] > 10*time.Millisecond {
			t.Errorf("%s: median %v, want at most 10 ms", what, took[10])
		}
	}
	for _, kind := range []string{"web", "phone"} {
		addOrganization(t, d, kind)
		for n := 0; n < million; n += part {
			addCalls(t, d, kind, kind, kind == "web", part, start.Add(time.Duration(n)*time.Second))
		}
		if _, err := d.Pool.Exec(t.Context(), "ANALYZE calls"); err != nil {
			t.Fatal(err)
		}
		check(kind, "a million calls, "+kind, false)
		addCalls(t, d, kind, "phone", true, 1, start.Add(500_000*time.Second))
		check(kind, "after an answered phone call, "+kind, true)
	}
}
