package admission_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/pricing"
)

func TestExpectedCost(t *testing.T) {
	none := admission.RecentCosts{}
	for _, row := range []struct {
		name   string
		recent admission.RecentCosts
		others admission.RecentCosts
		budget pricing.Amount
		want   pricing.Amount
	}{
		{"no calls: a twentieth of the budget", none, none, 2000, 100},
		{"few cheap calls", admission.RecentCosts{Calls: 10, Sum: 100, Largest: 20}, none, 2000, 5 + 5*10},
		{"few dear calls: the largest for each missing one", admission.RecentCosts{Calls: 10, Sum: 1000, Largest: 400}, none, 2000, 50 + 20*10},
		{"no calls, dear ones of other campaigns", none, admission.RecentCosts{Calls: 20, Sum: 4000}, 2000, 200},
		{"no calls, few of other campaigns", none, admission.RecentCosts{Calls: 19, Sum: 3800}, 2000, 100},
		{"enough: the mean", admission.RecentCosts{Calls: 20, Sum: 1000, Largest: 900}, admission.RecentCosts{Calls: 20, Sum: 4000}, 2000, 50},
		{"rounded up", admission.RecentCosts{Calls: 100, Sum: 1}, none, 2000, 1},
		{"free calls", admission.RecentCosts{Calls: 100}, none, 2000, 0},
	} {
		if got := row.recent.Expected(row.budget, row.others); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestSpending(t *testing.T) {
	for _, row := range []struct {
		name           string
		s              admission.Spending
		reserved, left pricing.Amount
		allows         bool
	}{
		{"no budget", admission.Spending{Spent: 9, Expected: 9, Calls: 9}, 81, 0, true},
		{"unused", admission.Spending{Budget: 10, Expected: 10}, 0, 10, true},
		{"the next call would exceed it", admission.Spending{Budget: 10, Spent: 1, Expected: 10}, 0, 9, false},
		{"with the calls in progress", admission.Spending{Budget: 10, Spent: 1, Expected: 3, Calls: 2}, 6, 3, true},
		{"one too many", admission.Spending{Budget: 10, Spent: 1, Expected: 3, Calls: 3}, 9, 0, false},
		{"free calls", admission.Spending{Budget: 10, Spent: 9, Calls: 1000}, 0, 1, true},
		{"used up, free calls", admission.Spending{Budget: 10, Spent: 10}, 0, 0, false},
		{"overrun", admission.Spending{Budget: 10, Spent: 20, Expected: 1}, 0, 0, false},
		{"more than fits", admission.Spending{Budget: 10, Expected: math.MaxInt64, Calls: 3}, math.MaxInt64, 0, false},
	} {
		if got := row.s; got.Reserved() != row.reserved || got.Left() != row.left || got.Allows() != row.allows {
			t.Errorf("%s: reserved %d, left %d, allows %v", row.name, got.Reserved(), got.Left(), got.Allows())
		}
	}
}

// TestSpendingNeverExceeds checks that the expected cost of admitted calls stays within the budget, that a used-up
// budget admits no call, and that a call is admitted exactly when it fits.
func TestSpendingNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string) pricing.Amount {
			return pricing.Amount(rapid.Int64Range(0, 1_000_000).Draw(t, name))
		}
		r := admission.RecentCosts{Calls: rapid.IntRange(0, 100).Draw(t, "calls")}
		if r.Calls > 0 {
			r.Largest = amount("largest")
			r.Sum = r.Largest + pricing.Amount(r.Calls-1)*r.Largest/2
		}
		s := admission.Spending{Budget: 1 + amount("budget"), Spent: amount("spent")}
		s.Expected = r.Expected(s.Budget, admission.RecentCosts{})
		if s.Expected < 0 || r.Calls == 0 && 20*s.Expected < s.Budget-400 {
			t.Fatalf("expected %d of %d", s.Expected, s.Budget)
		}
		for range 50 {
			after := s.Spent + s.Expected*pricing.Amount(s.Calls+1)
			if fits := s.Spent < s.Budget && after <= s.Budget && s.Left() > 0; s.Allows() != fits {
				t.Fatalf("%+v: allows %v", s, s.Allows())
			}
			if !s.Allows() {
				break
			}
			s.Calls++
		}
	})
}

// TestMonthlyBudget places orders on several nodes at the same time. It checks that the overrun is at most the cost of
// the calls in progress when the budget was reached, and that a larger budget admits calls again.
func TestMonthlyBudget(t *testing.T) {
	w := newFixture(t)
	random := rand.New(rand.NewPCG(1, 2))
	const expected = 0.5
	w.placeMany("acme", "sales", 30)
	w.exec("UPDATE calls SET status = 'ended', dialed_at = now(), cost_nano = $1", int64(expected*1e9))
	spent := 30 * expected
	end := func(id string) float64 {
		nano := int64(3 * expected * random.Float64() * 1e9)
		w.exec("UPDATE calls SET status = 'ended', dialed_at = now(), cost_nano = $2 WHERE id = $1", id, nano)
		spent += float64(nano) / 1e9
		return float64(nano) / 1e9
	}
	for _, limit := range []float64{25, 45} {
		w.apply(fmt.Sprintf("organizations: [{name: acme, limits: {monthly_cost: %v}}]", limit))
		var live []string
		calls, refused, last := 0, 0, 0.0 // last: cost of the calls in progress when the budget was reached
		for {
			placed, n := w.placeOnNodes(3, 4)
			if spent >= limit && len(placed) > 0 {
				t.Fatalf("%d calls after the budget was reached", len(placed))
			}
			live, refused, calls = append(live, placed...), refused+n, calls+len(placed)
			if len(live) == 0 {
				break
			}
			for _, id := range live[:min(len(live), 5)] {
				cost := end(id)
				if spent >= limit {
					last += cost
				}
			}
			live = live[min(len(live), 5):]
		}
		if spent-limit > last {
			t.Errorf("overrun by %.3f, more than the %.3f of the calls in progress", spent-limit, last)
		}
		if calls < 10 || refused == 0 {
			t.Errorf("%d calls, %d refusals", calls, refused)
		}
		t.Logf("budget %.2f: %d calls, %d refused, spent %.3f, overrun %.3f; calls in progress when it was reached: %.3f",
			limit, calls, refused, spent, max(0, spent-limit), last)
	}
	sum := dbtest.Value[int64](t, w.db, "SELECT sum(cost_nano)::bigint FROM cost_tallies WHERE slot > '-infinity'")
	if math.Abs(float64(sum)/1e9-spent) > 1e-6 {
		t.Errorf("the tallies have %d, want %v", sum, spent)
	}
	_, err := w.controller.Place(t.Context(), w.org["acme"], admission.Order{Agent: "sales", To: "+12025550123"}, nil)
	refusal, ok := errors.AsType[*control.Error](err)
	if !ok || refusal.Code != control.CodeOrganizationBudget || refusal.RetryAfter <= 0 || refusal.RetryAfter > 31*24*time.Hour {
		t.Errorf("%v", err)
	}
	if _, code := w.order("globex", admission.Order{Agent: "helpdesk"}); code != "" {
		t.Errorf("another organization: %s", code)
	}
}

// TestExpectedCostBehindQueue checks that the expected cost comes from ended calls, even if many newer calls are
// queued.
func TestExpectedCostBehindQueue(t *testing.T) {
	w := newFixture(t)
	w.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, trunk_id, route_id, dial_number,
			ring_seconds, created_at, dialed_at, cost_nano)
		SELECT 'call_' || i, $1, 'phone', CASE WHEN i <= 30 THEN 'ended' ELSE 'queued' END, 'agt', 'sales', 1, '1', '7', 'trk', 'rte', '1', 30,
			now() - interval '2 hours' + i * interval '1 second', CASE WHEN i <= 30 THEN now() END, CASE WHEN i <= 30 THEN 500000000 END
		FROM generate_series(1, 1200) i`, w.org["acme"])
	w.apply("organizations: [{name: acme, limits: {monthly_cost: 1000}}]")
	if _, code := w.order("acme", admission.Order{Agent: "sales"}); code != "" {
		t.Errorf("%s: 0.50 for each of 1,171 calls would fit", code)
	}
	w.apply("organizations: [{name: acme, limits: {monthly_cost: 600}}]")
	if _, code := w.order("acme", admission.Order{Agent: "sales"}); code != control.CodeOrganizationBudget {
		t.Errorf("%q: 15 and 0.50 for each of 1,172 calls do not fit", code)
	}
}

// placeOnNodes places orders on several nodes at the same time. It returns the ids of the calls, and how many orders
// were refused because of the budget.
func (w *fixture) placeOnNodes(nodes, orders int) (placed []string, refused int) {
	w.t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range nodes {
		node := &admission.Controller{Pool: w.db.Pool, Store: w.controller.Store}
		for range orders {
			all.Go(func() {
				c, err := node.Place(w.t.Context(), w.org["acme"], admission.Order{Agent: "sales", To: "+12025550123"}, nil)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					placed = append(placed, c.ID)
				case control.CodeOf(err) == control.CodeOrganizationBudget:
					refused++
				default:
					w.t.Error(err)
				}
			})
		}
	}
	all.Wait()
	return placed, refused
}
