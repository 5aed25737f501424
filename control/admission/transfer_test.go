package admission_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/store"
)

// answered places a call of the borrowing organization and moves it to the state "answered" on a node.
func (w *fixture) answered() control.Lease {
	w.t.Helper()
	s := &store.Store{Pool: w.db.Pool}
	if _, code := w.order("globex", admission.Order{Agent: "helpdesk"}); code != "" {
		w.t.Fatal(code)
	}
	w.exec("UPDATE subgroups SET next_dial_at = now(); UPDATE grants SET next_dial_at = now()")
	all, err := s.Claim(w.t.Context(), control.NodeID{Owner: "n", Home: "h"}, time.Minute, 1)
	if err != nil || len(all) != 1 {
		w.t.Fatal(all, err)
	}
	c := all[0]
	err = s.Intent(w.t.Context(), c.Lease)
	for _, state := range []control.AttemptState{control.Sent, control.Rang, control.Answered} {
		err = errors.Join(err, s.Mark(w.t.Context(), c.Lease, state, time.Now()))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec("UPDATE subgroups SET next_dial_at = now(); UPDATE grants SET next_dial_at = now()")
	return c.Lease
}

const transferTarget = "+1 202 555 0177"

func TestOpenLeg(t *testing.T) {
	w := newFixture(t)
	l := w.answered()
	leg, err := w.controller.OpenLeg(t.Context(), l, transferTarget, time.Minute)
	if err != nil || leg.Number != "12025550177" || leg.Dial != "712025550177" || leg.Wait != 0 || leg.Lease.CallID != l.CallID || leg.Lease.AttemptID == l.AttemptID {
		t.Fatalf("%+v %v", leg, err)
	}
	if got := w.text("SELECT concat_ws(' ', state, owner, home, leg, number, lease_until > now() + interval '50 s') FROM attempts WHERE leg <> 'callee'"); got != "intent n h transfer 12025550177 t" {
		t.Errorf("the attempt of the leg is %s", got)
	}
	if leg.CostPerMinute == nil || *leg.CostPerMinute != 0.6 {
		t.Errorf("no rate of the trunk: %+v", leg)
	}
	// A call can have only one transfer leg at a time.
	if _, err := w.controller.OpenLeg(t.Context(), l, transferTarget, time.Minute); err == nil {
		t.Error("a second leg was opened while the first was alive")
	}
	for _, to := range []control.AttemptState{control.Sent, control.Answered, control.Rang, control.Closed, control.Sent} {
		if err := w.controller.MoveLeg(t.Context(), leg.Lease, to); err != nil {
			t.Fatal(err)
		}
		want := to
		switch to {
		case control.Rang:
			want = control.Answered
		case control.Sent:
			want = control.AttemptState(w.text("SELECT state FROM attempts WHERE leg <> 'callee'")) // the leg was sent, and ended later
		default:
		}
		if got := w.text("SELECT state FROM attempts WHERE leg <> 'callee'"); got != string(want) {
			t.Errorf("after %s it is %s", to, got)
		}
	}
	if got := w.text("SELECT state FROM attempts WHERE leg <> 'callee'"); got != "ended" {
		t.Errorf("the leg moved on after its end: %s", got)
	}
	if got := w.text("SELECT status FROM calls"); got != "ongoing" {
		t.Errorf("the call is %s", got)
	}
	w.exec("UPDATE subgroups SET next_dial_at = now(); UPDATE grants SET next_dial_at = now()")
	if _, err := w.controller.OpenLeg(t.Context(), l, transferTarget, time.Minute); err != nil {
		t.Errorf("a second leg after the end of the first: %v", err)
	}
}

func TestOpenLegObeysRouteLimits(t *testing.T) {
	for _, row := range []struct {
		name, number string
		prepare      string
		want         control.Code
	}{
		{"free", transferTarget, "SELECT 1", ""},
		{"not allowed", "+442071838750", "SELECT 1", control.CodeDestinationNotAllowed},
		{"premium rate", "+1 900 555 0123", "SELECT 1", control.CodeDestinationNotAllowed},
		{"suppressed", transferTarget, "INSERT INTO suppressions SELECT id, '2025550177' FROM organizations", control.CodeDestinationNotAllowed},
		{"no channel of the subgroup", transferTarget, "UPDATE subgroups SET concurrent_calls = 1", control.CodeSubgroupConcurrency},
		{"no channel of the grant", transferTarget, "UPDATE grants SET concurrent_calls = 1", control.CodeSubgroupConcurrency},
		{"no channel of the trunk", transferTarget, "UPDATE trunks SET concurrent_calls = 1", control.CodeSubgroupConcurrency},
		{"no slot of the pace soon", transferTarget, paceExhausted, control.CodeSubgroupConcurrency},
		{"the trunk's pace", transferTarget, "UPDATE trunks SET next_dial_at = now() + interval '10 s'", control.CodeSubgroupConcurrency},
		{"the day's minutes", transferTarget, `UPDATE organizations SET settings = '{"limits": {"daily_minutes": 1}}'; UPDATE calls SET answered_at = now() - interval '61 s'`, control.CodeOrganizationLimit},
		{"the day's calls", transferTarget, `UPDATE organizations SET settings = '{"limits": {"daily_calls": 1}}'`, ""},
		{"the cost of the day", transferTarget, usedUp("daily_cost", 10), control.CodeOrganizationLimit},
		{"the cost of the month", transferTarget, usedUp("monthly_cost", 10), control.CodeOrganizationBudget},
		{"cost left, but not for another call", transferTarget, usedUp("monthly_cost", 10.1), ""},
		{"its node lost it", transferTarget, "UPDATE attempts SET epoch = epoch + 1", control.CodeInternal},
		{"its call is over", transferTarget, "UPDATE attempts SET state = 'ended'", control.CodeInternal},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newFixture(t)
			l := w.answered()
			w.exec(row.prepare)
			_, err := w.controller.OpenLeg(t.Context(), l, row.number, time.Minute)
			if row.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || control.CodeOf(err) != row.want || row.want == control.CodeInternal && !errors.Is(err, control.ErrFenced) {
				t.Errorf("%v, want %s", err, row.want)
			}
			if got := w.text("SELECT count(*)::text FROM attempts WHERE leg <> 'callee'"); got != "0" {
				t.Errorf("%s legs are left", got)
			}
		})
	}
}

// usedUp returns SQL that gives all organizations a limit, and calls that have cost 10.
func usedUp(limit string, units float64) string {
	return fmt.Sprintf(`UPDATE organizations SET settings = '{"limits": {"%s": %v}}';
		INSERT INTO cost_tallies (owner, slot, cost_nano) SELECT id, date_bin('15 minutes', now(), '2000-01-01 00:00:00+00'), 10000000000 FROM organizations`, limit, units)
}

// paceExhausted delays the next start of every subgroup by 10 s.
const paceExhausted = "UPDATE subgroups SET calls_per_minute = 1; UPDATE subgroup_starts SET at = now() - interval '50 s'"

// TestOpenLegObeysPacing checks that a transfer leg obeys the pacing of trunk and grant.
func TestOpenLegObeysPacing(t *testing.T) {
	w := newFixture(t)
	l := w.answered() // the grant allows 5 calls per minute
	w.exec("INSERT INTO grant_starts SELECT id, started - 4, now() - interval '57.6 s' FROM grants")
	w.exec("UPDATE trunks SET next_dial_at = now() + interval '1 s', calls_per_second = 0.5")
	leg, err := w.controller.OpenLeg(t.Context(), l, transferTarget, time.Minute)
	if err != nil || leg.Wait < 2*time.Second || leg.Wait > 3*time.Second {
		t.Fatalf("waits %v, %v", leg.Wait, err)
	}
	if got := w.text("SELECT concat_ws(' ', round(extract(epoch FROM g.next_dial_at - t.next_dial_at))) FROM grants g, trunks t"); got != "10" {
		t.Errorf("the next of the grant comes %s s after the trunk's, want 12 - 2", got)
	}
}

// TestLegsOfLostNodes checks that a transfer leg on a lost node does not end its call, and that the end of a call
// ends its transfer legs.
func TestLegsOfLostNodes(t *testing.T) {
	w := newFixture(t)
	s := &store.Store{Pool: w.db.Pool}
	l := w.answered()
	open := func() control.Lease {
		t.Helper()
		w.exec("UPDATE subgroups SET next_dial_at = now(); UPDATE grants SET next_dial_at = now()")
		leg, err := w.controller.OpenLeg(t.Context(), l, transferTarget, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return leg.Lease
	}
	first := open()
	w.exec("UPDATE attempts SET lease_until = now() + interval '1 s'")
	if held, err := s.Renew(t.Context(), "n", []string{l.AttemptID}, time.Minute); err != nil || len(held) != 2 {
		t.Errorf("renewed %+v, %v", held, err)
	}
	w.exec("UPDATE attempts SET lease_until = now() - interval '1 s' WHERE id = $1", first.AttemptID)
	if n, err := s.Settle(t.Context(), nil); n != 1 || err != nil {
		t.Errorf("settled %d, %v", n, err)
	}
	if got := w.text("SELECT concat_ws(' ', c.status, a.state) FROM calls c JOIN attempts a ON a.call_id = c.id WHERE a.leg <> 'callee'"); got != "ongoing unknown" {
		t.Errorf("%s", got)
	}
	second := open()
	if err := w.controller.MoveLeg(t.Context(), second, control.Answered); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(t.Context(), l, control.CallResult{Status: control.Ended, Reason: "transferred", EndedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := w.text("SELECT concat_ws(' ', c.status, a.state) FROM calls c JOIN attempts a ON a.call_id = c.id WHERE a.id = '" + second.AttemptID + "'"); got != "ended ended" {
		t.Errorf("%s", got)
	}
	if got := w.text("SELECT count(*)::text FROM events"); got != "1" {
		t.Errorf("%s events", got)
	}
}

// TestDialBlockers checks that DialBlockers reports the reason that blocks the next call of a subgroup.
func TestDialBlockers(t *testing.T) {
	w := newFixture(t)
	w.answered()
	route := w.text("SELECT route_id FROM calls")
	for _, row := range []struct {
		name, prepare, want string
	}{
		{"nothing", "SELECT 1", "[]"},
		{"the grant's channels", "UPDATE grants SET concurrent_calls = 1", "[subgroup_concurrency_limit]"},
		{"the trunk's channels", "UPDATE grants SET concurrent_calls = 0; UPDATE trunks SET concurrent_calls = 1", "[subgroup_concurrency_limit]"},
		{"the grant's pace", "UPDATE trunks SET concurrent_calls = 0; UPDATE grants SET next_dial_at = now() + interval '1 minute'", "[subgroup_rate_limit]"},
		{"the day", `UPDATE grants SET next_dial_at = now(); UPDATE organizations SET settings = '{"limits": {"daily_calls": 1}}'`, "[organization_daily_limit]"},
		{"the month", usedUp("monthly_cost", 10.1), "[organization_budget_exceeded]"},
		{"the day again", `UPDATE organizations SET settings = '{"limits": {"daily_calls": 1}}'`, "[organization_daily_limit]"},
		{"the subgroup's channels and the day", "UPDATE subgroups SET concurrent_calls = 1", "[subgroup_concurrency_limit organization_daily_limit]"},
	} {
		w.exec(row.prepare)
		got, err := admission.DialBlockers(t.Context(), w.db.Pool, w.org["globex"], route)
		if err != nil || fmt.Sprint(got) != row.want {
			t.Errorf("%s: %v %v, want %s", row.name, got, err, row.want)
		}
	}
	if got, err := admission.DialBlockers(t.Context(), w.db.Pool, w.org["acme"], route); err != nil || len(got) > 0 {
		t.Errorf("another organization's subgroup: %v %v", got, err)
	}
}
