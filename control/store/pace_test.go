package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
)

// passTime simulates the passing of time by making the stored starts older.
func (b *fixture) passTime(d time.Duration) {
	b.t.Helper()
	b.exec("UPDATE subgroup_starts SET at = at - $1::interval", d)
	b.exec("UPDATE grant_starts SET at = at - $1::interval", d)
	for _, table := range []string{"subgroups", "trunks", "grants"} {
		b.exec("UPDATE "+table+" SET next_dial_at = next_dial_at - $1::interval", d)
	}
}

// claimAll claims calls until pacing allows no more, and returns their number.
func (b *fixture) claimAll() (n int) {
	b.t.Helper()
	for b.claim("n") != nil {
		n++
	}
	return n
}

// TestSingleCallsAreNotSpaced checks that single calls start without spacing. A subgroup or grant with a limit of 8
// calls per minute starts 8 calls at once, and the next 8 a minute later.
func TestSingleCallsAreNotSpaced(t *testing.T) {
	for _, tt := range []struct {
		name, sql string
		perMinute int
	}{
		{"subgroup", "SELECT 1", 8},
		{"grant", grantAllSQL + "UPDATE grants SET calls_per_minute = 8", 1 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFixture(t, 100, tt.perMinute, "a", "b")
			b.order("a", 30)
			if tt.name == "grant" {
				b.order("b", 30)
			}
			b.exec(tt.sql)
			if n := b.claimAll(); n != 8 {
				t.Fatalf("%d calls start at once, want 8", n)
			}
			if wait, err := b.store.Due(t.Context(), 2*time.Minute); err != nil || wait < 50*time.Second || wait > 61*time.Second {
				t.Errorf("the next one in %v, want a minute: %v", wait, err)
			}
			b.passTime(55 * time.Second)
			if n := b.claimAll(); n != 0 {
				t.Errorf("%d more calls start within the minute", n)
			}
			b.passTime(6 * time.Second)
			if n := b.claimAll(); n != 8 {
				t.Errorf("%d calls start in the second minute, want 8", n)
			}
		})
	}
}

// TestTrunkSpacesSingleCalls checks that a trunk's calls_per_second applies to single calls too.
func TestTrunkSpacesSingleCalls(t *testing.T) {
	b := newFixture(t, 100, 60, "a")
	b.order("a", 3)
	b.exec("UPDATE trunks SET calls_per_second = 0.1")
	if n := b.claimAll(); n != 1 {
		t.Fatalf("%d calls start at once, want 1", n)
	}
	b.passTime(11 * time.Second)
	if n := b.claimAll(); n != 1 {
		t.Errorf("%d calls start 11 s later, want 1", n)
	}
}

// TestRateInAnyMinute starts single and campaign calls at random times and checks the rate in every window of 60 s.
func TestRateInAnyMinute(t *testing.T) {
	const rate = 7
	b := newFixture(t, 1<<20, rate, "a")
	b.order("a", 60)
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	var passed time.Duration
	now := func() time.Duration { return passed + time.Since(began) }
	var starts []time.Duration
	campaigns := 0
	for range 150 {
		step := time.Duration(random.IntN(12_000)) * time.Millisecond
		b.passTime(step)
		passed += step
		if b.campaignCall() {
			starts = append(starts, now())
			campaigns++
		}
		for range random.IntN(4) {
			if b.claim("n") != nil {
				starts = append(starts, now())
			}
		}
	}
	for i := rate; i < len(starts); i++ {
		if apart := starts[i] - starts[i-rate]; apart < time.Minute {
			t.Fatalf("%d starts within %v", rate+1, apart)
		}
	}
	if full := int(passed/time.Minute) * rate; campaigns < 10 || len(starts) < full*3/4 {
		t.Errorf("%d starts, %d of them of campaigns, in %v: the limit is hardly reached", len(starts), campaigns, passed)
	}
	var kept int
	if err := b.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM subgroup_starts").Scan(&kept); err != nil || kept > 4*rate {
		t.Errorf("%d starts are kept: %v", kept, err)
	}
}

// campaignCall starts a campaign call through subgroup a, if its pacing allows.
func (b *fixture) campaignCall() bool {
	b.t.Helper()
	ctx := b.t.Context()
	o := admission.CampaignCall{
		OrgID: b.org, RouteID: b.route["a"], TrunkID: b.trunk, AgentName: "a", AgentVersion: 1, To: "+12025550123", From: "+12025550100", Attempt: 1,
	}
	if err := b.db.Pool.QueryRow(ctx, "SELECT id FROM agents WHERE name = 'a'").Scan(&o.AgentID); err != nil {
		b.t.Fatal(err)
	}
	err := db.Tx(ctx, b.db.Pool, func(tx pgx.Tx) error {
		_, err := admission.StartCampaignCall(ctx, tx, o, control.NodeID{Owner: "n", Home: "h"}, time.Minute)
		return err
	})
	if err != nil && control.CodeOf(err) != control.CodeSubgroupConcurrency {
		b.t.Fatal(err)
	}
	return err == nil
}

// TestCampaignCallsAreSpaced uses a subgroup with 60 calls per minute. It checks that single calls start at once, and
// that a campaign call starts one second after the call before it.
func TestCampaignCallsAreSpaced(t *testing.T) {
	b := newFixture(t, 100, 60, "a")
	if !b.campaignCall() || b.campaignCall() {
		t.Error("want one call of a campaign at first")
	}
	b.passTime(1100 * time.Millisecond)
	b.order("a", 1)
	if b.claim("n") == nil || b.campaignCall() {
		t.Error("want a single call, and none of a campaign right after it")
	}
	b.passTime(1100 * time.Millisecond)
	if !b.campaignCall() {
		t.Error("no call of a campaign a second later")
	}
}

// TestRateUnderConcurrency checks that concurrent claims start no more calls per minute than a subgroup or grant
// allows.
func TestRateUnderConcurrency(t *testing.T) {
	for _, tt := range []struct{ name, sql string }{
		{"subgroup", "UPDATE subgroups SET calls_per_minute = 20 WHERE name = 'a'"},
		{"grant", grantAllSQL + "UPDATE grants SET calls_per_minute = 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFixture(t, 100, 1<<20, "a", "b")
			b.order("a", 30)
			if tt.name == "grant" {
				b.order("b", 30)
			}
			b.exec(tt.sql)
			var claimed atomic.Int64
			var nodes sync.WaitGroup
			for i := range 6 {
				nodes.Go(func() {
					for idle := 0; idle < 20; {
						some, err := b.store.Claim(t.Context(), control.NodeID{Owner: fmt.Sprint("n", i), Home: "h"}, time.Minute, 5)
						if err != nil {
							t.Error(err)
							return
						}
						if claimed.Add(int64(len(some))); len(some) == 0 {
							idle++
						}
					}
				})
			}
			nodes.Wait()
			if n := claimed.Load(); n != 20 {
				t.Errorf("%d calls started, want 20", n)
			}
		})
	}
}

// TestStartsWithClockAhead simulates starts that were recorded before the clock was set back, so that their time is in
// the future. It checks that they delay no call and are deleted.
func TestStartsWithClockAhead(t *testing.T) {
	b := newFixture(t, 100, 100, "a")
	b.order("a", 10)
	b.exec("INSERT INTO subgroup_starts SELECT id, n, now() + interval '1 year' FROM subgroups, generate_series(1, 6) n")
	b.exec("UPDATE subgroups SET started = 6")
	if n := b.claimAll(); n != 10 {
		t.Fatalf("%d calls start, want 10", n)
	}
	var left int
	if err := b.store.Pool.QueryRow(t.Context(), "SELECT count(*) FROM subgroup_starts WHERE at > now() + interval '1 day'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d starts of the future are left: %v", left, err)
	}
}
