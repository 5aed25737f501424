package pgqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/pricing"
)

// A pricedCall is a call of a simulated node.
type pricedCall struct {
	began, ended time.Time // times just before the call was taken and just after its end was stored
	cost         pricing.Amount
}

// A budgetRun lets nodes call the contacts of a campaign with a budget until it allows no further call.
type budgetRun struct {
	*env

	mu    sync.Mutex
	ended []pricedCall
}

// callPrice is the trunk's rate per minute. It is also the cost of the past calls that determine the expected cost of
// the next call.
const callPrice = 0.5

// node makes up to 6 calls at a time. Each ends after a random number of steps and costs up to three times the
// expected cost.
func (r *budgetRun) node(name string, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	q := r.queue(name)
	d := &dialer.Dialer{Store: q, MaxIdle: time.Nanosecond}
	type live struct {
		*control.Claim
		began time.Time
	}
	var all []live
	for idle := 0; idle < 3 || len(all) > 0; {
		if len(all) < 6 && idle < 3 {
			r.resetPace()
			q.readAt = time.Time{} // the test changes the paces
			began := time.Now()
			claim, _, err := d.Take(r.Context())
			if err != nil {
				r.Error(err)
				return
			}
			if claim != nil {
				all, idle = append(all, live{claim, began}), 0
			} else if len(all) == 0 {
				idle++
			}
		}
		if len(all) > 0 && random.IntN(3) == 0 {
			i := random.IntN(len(all))
			cost := r.end(all[i].Claim, time.Duration(3*random.Float64()*float64(time.Minute)))
			r.mu.Lock()
			r.ended = append(r.ended, pricedCall{all[i].began, time.Now(), cost})
			r.mu.Unlock()
			all = slices.Delete(all, i, i+1)
			idle = 0
		}
	}
}

// end ends an answered call that lasted for a time, and returns its cost.
func (r *budgetRun) end(c *control.Claim, lasted time.Duration) pricing.Amount {
	lasted = lasted.Truncate(10 * time.Millisecond)
	now := time.Now()
	f := control.CallResult{
		Status: control.Ended, Reason: "callee_hangup", HangupBy: control.SideCallee, DialedAt: now.Add(-lasted - time.Second),
		AnsweredAt: now.Add(-lasted), EndedAt: now, Recording: control.RecordingNone,
	}
	if err := r.calls.Finish(r.Context(), c.Lease, f); err != nil {
		r.Errorf("a call was cut: %v", err)
	}
	err := r.follower().HandleEvent(r.Context(), control.Event{Kind: control.CallEnded, CallID: c.Call.ID, OrgID: r.org})
	if err != nil {
		r.Error(err)
	}
	return pricing.NewTrunkLeg("callee", lasted, new(callPrice)).Amount
}

// TestBudget checks that nodes that call concurrently exceed a campaign's budget by no more than the cost of the
// calls that were in progress when the budget was reached. No call is cut, contacts stay ready, and the campaign
// continues with a larger budget.
func TestBudget(t *testing.T) {
	r := &budgetRun{env: newEnv(t)}
	r.addContacts(400, 3)
	r.exec(`UPDATE trunks SET settings = settings || '{"rates": {"": 0.5}}'`)
	campaigns := &store.Store{Pool: r.db.Pool}
	for range 25 { // a minute each: the next calls are expected to cost 0.50
		r.addCall("77019999999", "ended", 60, "campaign_id, dialed_at, cost_nano", "'cmp_1', now() - interval '1 hour', 500000000")
	}
	for _, limit := range []float64{25, 40} {
		c, err := campaigns.Get(t.Context(), r.db.Pool, r.org, "cmp_1", false)
		if err != nil {
			t.Fatal(err)
		}
		c.Budget, c.UpdatedAt = pricing.Round(limit), time.Now()
		if err = campaigns.SaveBudget(t.Context(), r.db.Pool, c); err != nil {
			t.Fatal(err)
		}
		before := len(r.ended)
		var nodes sync.WaitGroup
		for n := range 4 {
			nodes.Go(func() { r.node(fmt.Sprint("node", n), uint64(n+before)) })
		}
		nodes.Wait()
		r.check(t, c.Budget, before)
	}
	r.wantQuery("false", "SELECT DISTINCT (end_requested_at IS NOT NULL OR disconnection_reason <> 'callee_hangup')::text FROM calls WHERE contact_id IS NOT NULL")
}

// check checks the calls since an index against the budget.
func (r *budgetRun) check(t *testing.T, budget pricing.Amount, from int) {
	t.Helper()
	slices.SortFunc(r.ended, func(a, b pricedCall) int { return a.ended.Compare(b.ended) })
	spent := pricing.Round(25 * callPrice)
	var reached time.Time
	var last pricing.Amount // cost of the calls that were in progress when the budget was reached
	for _, c := range r.ended {
		if spent += c.cost; spent >= budget {
			if reached.IsZero() {
				reached = c.ended
			}
			last += c.cost
		}
	}
	for _, c := range r.ended {
		if !reached.IsZero() && c.began.After(reached) {
			t.Errorf("a call began %v after the budget was reached", c.began.Sub(reached))
		}
	}
	if spent-budget > last || len(r.ended)-from < 5 {
		t.Errorf("%d calls; overrun by %v, more than the %v of the calls in progress", len(r.ended)-from, spent-budget, last)
	}
	t.Logf("budget %v: %d calls on 4 nodes, spent %v, overrun %v; calls in progress when it was reached: %v",
		budget, len(r.ended)-from, spent, max(0, spent-budget), last)
	r.wantQuery(spent.String(), "SELECT trim_scale(sum(cost_nano) / 1e9)::text FROM cost_tallies WHERE owner = 'cmp_1'")
	if r.query("SELECT count(*)::text FROM contacts WHERE state = 'pending'") == "0" {
		t.Error("no contact is left")
	}
	folder := &store.TallyFolder{Pool: r.db.Pool}
	if err := folder.Fold(t.Context()); err != nil {
		t.Error(err)
	}
	r.wantQuery(spent.String(), "SELECT trim_scale(sum(cost_nano) / 1e9)::text FROM cost_tallies WHERE owner = 'cmp_1'")
	r.exec("TRUNCATE cost_tallies")
	if repaired, err := folder.Repair(t.Context()); err != nil || !slices.Contains(repaired, "cmp_1") {
		t.Error(repaired, err)
	}
	r.wantQuery(spent.String(), "SELECT trim_scale(sum(cost_nano) / 1e9)::text FROM cost_tallies WHERE owner = 'cmp_1'")
}
