package store_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
)

const (
	claimTime = 10 * time.Second // how long each row of TestSoakClaims claims
	claimRate = 300              // claims per second that a trunk must allow with 10,000 live calls
)

// addCalls copies a call n times. The state of the copies' attempts is "scheduled", or "answered" with a lease.
func (b *fixture) addCalls(id, prefix string, n int, answered bool) {
	b.t.Helper()
	status, state, lease := "queued", "scheduled", "NULL"
	if answered {
		status, state, lease = "ongoing", "answered", "now() + interval '1 hour'"
	}
	columns := func(table, of string) string {
		return dbtest.Value[string](b.t, b.db, `SELECT string_agg($2 || column_name, ', ') FROM information_schema.columns
			WHERE table_name = $1 AND is_generated = 'NEVER'`, table, of)
	}
	b.exec(`INSERT INTO calls (`+columns("calls", "")+`) SELECT `+columns("calls", "x.")+` FROM calls c, generate_series(1, $4::int) g,
		json_populate_record(c, json_build_object('id', $2 || g, 'status', $3::text)) x WHERE c.id = $1`, id, prefix, status, n)
	b.exec(`INSERT INTO attempts SELECT x.* FROM attempts a, generate_series(1, $4::int) g,
		json_populate_record(a, json_build_object('id', 'att_' || $2 || g, 'call_id', $2 || g, 'state', $3::text,
			'lease_until', `+lease+`, 'owner', 'other', 'created_at', now() - make_interval(secs => 1 + g / 1e4))) x
		WHERE a.call_id = $1`, id, prefix, state, n)
}

// claimAndEnd claims calls and ends them at once, so that the number of live calls stays the same. It returns how
// long each claim took that found a call.
func (b *fixture) claimAndEnd(node string, until time.Time) (took []time.Duration, calls int) {
	var ends sync.WaitGroup
	defer ends.Wait()
	for time.Now().Before(until) {
		began := time.Now()
		claims, err := b.store.Claim(b.t.Context(), control.NodeID{Owner: node, Home: node}, time.Minute, 32)
		if err != nil {
			b.t.Error(err)
			return took, calls
		}
		if len(claims) == 0 { // another node claims
			<-time.After(20 * time.Millisecond)
			continue
		}
		took, calls = append(took, time.Since(began)), calls+len(claims)
		for _, c := range claims {
			ends.Go(func() {
				busy := control.CallResult{Status: control.Failed, Reason: "busy", HangupBy: control.SideCallee, EndedAt: time.Now(), Recording: control.RecordingNone}
				if err := b.store.Finish(b.t.Context(), c.Lease, busy); err != nil {
					b.t.Error(err)
				}
			})
		}
	}
	return took, calls
}

// TestSoakClaims logs how many calls nodes claim per second through one trunk, and how long a claim takes, while
// calls are live on the trunk.
func TestSoakClaims(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	for _, nodes := range []int{1, 4} {
		for _, live := range []int{100, 1_000, 10_000} {
			b := newFixture(t, 1<<20, 1<<20, "sales")
			b.store.Dial = b.db.DialPool
			id := b.order("sales", 1)[0]
			b.addCalls(id, "live_", live, true)
			b.addCalls(id, "waiting_", 20_000, false)
			b.exec("UPDATE trunks SET concurrent_calls = 100000")
			b.exec("ANALYZE calls, attempts")
			until := time.Now().Add(claimTime)
			var mu sync.Mutex
			var all []time.Duration
			calls := 0
			var claimers sync.WaitGroup
			for n := range nodes {
				claimers.Go(func() {
					took, got := b.claimAndEnd(fmt.Sprint("node", n), until)
					mu.Lock()
					defer mu.Unlock()
					all, calls = append(all, took...), calls+got
				})
			}
			claimers.Wait()
			slices.Sort(all)
			rate := float64(calls) / claimTime.Seconds()
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			t.Logf("%d nodes, %6d live calls: %5.0f claims/s; a claim takes p50 %.2f ms, p99 %.2f ms (%d claims of %d calls)",
				nodes, live, rate, ms(all[len(all)/2]), ms(all[len(all)*99/100]), len(all), calls)
			counter, began := b.counter(), time.Now()
			if wrong := b.check(counter); wrong > 0 {
				t.Errorf("%d wrong counts of channels", wrong)
			}
			t.Logf("the check of the counts took %.1f ms", ms(time.Since(began)))
			if rate < claimRate {
				t.Errorf("%.0f claims/s with %d live calls, want %d", rate, live, claimRate)
			}
			if now := dbtest.Value[int](t, b.db, "SELECT count(*) FROM attempts WHERE state = 'answered'"); now != live {
				t.Errorf("%d live calls, want %d", now, live)
			}
		}
	}
}
