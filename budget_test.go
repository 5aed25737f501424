package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestCampaignBudget runs a campaign whose calls cost 0.50 per second. It must stop before the first call that its
// budget does not cover. Calls in progress must continue until their callees hang up. A larger budget must continue the
// campaign.
func TestCampaignBudget(t *testing.T) {
	t.Parallel()
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200, Talk: listenFor(500*time.Millisecond + rand.N(2500*time.Millisecond))}
	}})
	srv, api := startServer(t, c.Addr().String())
	srv.allowAnyHour(t)
	srv.applyTrunk(t, `rates: {"": 30}`)
	id := campaign(t, api, map[string]any{"budget": 10}, many(60)...)
	type use struct {
		Ready int `json:"ready"`
		Pace  struct {
			LimitedBy []string `json:"limited_by"`
			InFlight  int      `json:"in_flight"`
		} `json:"pace"`
		Budget struct {
			Spent float64 `json:"spent"`
			Left  float64 `json:"left"`
		} `json:"budget"`
	}
	calls := 0
	for _, budget := range []float64{10, 20} {
		if budget > 10 {
			post(t, api, "/v1/campaigns/"+id+"/budget", map[string]any{"budget": budget}, new(any))
		}
		var p use
		eventuallyWithin(t, 40*time.Second, "the budget stops the campaign", func() bool {
			p = use{}
			get(t, api, "/v1/campaigns/"+id+"/progress", &p)
			return p.Pace.InFlight == 0 && slices.Contains(p.Pace.LimitedBy, "campaign_budget_exceeded")
		})
		spent, last, n := srv.spending(t, id, budget)
		if overrun := spent - budget; n <= calls || overrun > last+1e-6 || p.Ready+n != 60 || math.Abs(p.Budget.Spent-spent) > 1e-6 {
			t.Errorf("%d calls spent %v of %v, %v in progress when it was reached; %+v", n, spent, budget, last, p)
		}
		t.Logf("budget %v: %d calls, spent %.2f, overrun %.2f; calls in progress when it was reached: %.2f", budget, n, spent, max(0, spent-budget), last)
		calls = n
	}
}

// spending returns three figures for the calls of a campaign: their cost, the cost of the calls that were in progress
// when the budget was reached, and their number. It fails if a call began later, or was not ended by its callee.
func (srv *server) spending(t *testing.T, campaign string, budget float64) (spent, last float64, n int) {
	t.Helper()
	type call struct {
		Claimed, Ended time.Time
		Cost           float64
		Reason         string
	}
	all, err := db.Collect(t.Context(), srv.db.Pool, "calls", pgx.RowToStructByPos[call], `
		SELECT a.claimed_at, e.created_at, c.cost_nano::float8 / 1e9, c.disconnection_reason
		FROM calls c JOIN attempts a ON a.call_id = c.id JOIN events e ON e.call_id = c.id AND e.kind = $2
		WHERE c.campaign_id = $1 ORDER BY e.created_at`, campaign, control.CallEnded)
	if err != nil {
		t.Fatal(err)
	}
	var reached time.Time
	for _, c := range all {
		if spent += c.Cost; spent >= budget {
			if last += c.Cost; reached.IsZero() {
				reached = c.Ended
			}
		}
		if c.Reason != "callee_hangup" {
			t.Errorf("a call was cut: %s", c.Reason)
		}
	}
	for _, c := range all {
		// The time of the end was taken shortly before its transaction was committed.
		if late := c.Claimed.Sub(reached); !reached.IsZero() && late > time.Second {
			t.Errorf("a call began %v after the budget was reached", late)
		}
	}
	return spent, last, len(all)
}
