package store_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
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

// claimAndEnd is a node that claims calls and ends them at once, so that the number of live calls stays the same. It
// claims at most perSecond calls per second. It returns how long each claim took that found a call.
func (b *fixture) claimAndEnd(node string, until time.Time, perSecond int) (took []time.Duration, calls int) {
	s := &store.Store{Pool: b.db.Pool, Dial: b.db.DialPool}
	var ends sync.WaitGroup
	defer ends.Wait()
	for due := time.Now(); time.Now().Before(until); {
		<-time.After(time.Until(due))
		began := time.Now()
		claims, err := s.Claim(b.t.Context(), control.NodeID{Owner: node, Home: node}, time.Minute, 32)
		if err != nil {
			b.t.Error(err)
			return took, calls
		}
		if len(claims) == 0 { // another node claims
			<-time.After(20 * time.Millisecond)
			continue
		}
		took, calls = append(took, time.Since(began)), calls+len(claims)
		due = due.Add(time.Second * time.Duration(len(claims)) / time.Duration(perSecond))
		for _, c := range claims {
			ends.Go(func() {
				busy := control.CallResult{Status: control.Failed, Reason: "busy", HangupBy: control.SideCallee, EndedAt: time.Now(), Recording: control.RecordingNone}
				if err := s.Finish(b.t.Context(), c.Lease, busy); err != nil {
					b.t.Error(err)
				}
			})
		}
	}
	return took, calls
}

// measureClaims lets nodes claim and end calls for claimTime, at most perSecond together. It logs and returns the number
// of claims per second.
func (b *fixture) measureClaims(what string, nodes, perSecond int) (rate float64) {
	b.t.Helper()
	until := time.Now().Add(claimTime)
	var mu sync.Mutex
	var all []time.Duration
	calls := 0
	var claimers sync.WaitGroup
	for n := range nodes {
		claimers.Go(func() {
			took, got := b.claimAndEnd(fmt.Sprint("node", n), until, perSecond/nodes)
			mu.Lock()
			defer mu.Unlock()
			all, calls = append(all, took...), calls+got
		})
	}
	claimers.Wait()
	if len(all) == 0 {
		b.t.Fatal("nothing was claimed")
	}
	slices.Sort(all)
	rate = float64(calls) / claimTime.Seconds()
	b.t.Logf("%d nodes, %s: %5.0f claims/s; a claim takes p50 %.2f ms, p99 %.2f ms (%d claims of %d calls)",
		nodes, what, rate, milliseconds(all[len(all)/2]), milliseconds(all[len(all)*99/100]), len(all), calls)
	return rate
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// addLoad adds live and waiting calls to a trunk with limits.
func (b *fixture) addLoad(live, waiting int) {
	b.t.Helper()
	b.store.Dial = b.db.DialPool
	id := b.order("sales", 1)[0]
	b.addCalls(id, "live_", live, true)
	b.addCalls(id, "waiting_", waiting, false)
	b.exec("UPDATE trunks SET concurrent_calls = 100000")
	b.exec("ANALYZE calls, attempts")
}

// checkLive checks that the counts are right and that as many calls are live as before.
func (b *fixture) checkLive(live int) {
	b.t.Helper()
	counter, began := b.counter(), time.Now()
	if wrong := b.check(counter); wrong > 0 {
		b.t.Errorf("%d wrong counts of channels", wrong)
	}
	b.t.Logf("the check of the counts took %.1f ms", milliseconds(time.Since(began)))
	if now := dbtest.Value[int](b.t, b.db, "SELECT count(*) FROM attempts WHERE state = 'answered'"); now != live {
		b.t.Errorf("%d live calls, want %d", now, live)
	}
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
			b.addLoad(live, 60_000)
			rate := b.measureClaims(fmt.Sprintf("%6d live calls", live), nodes, 1<<20)
			if rate < claimRate {
				t.Errorf("%.0f claims/s with %d live calls, want %d", rate, live, claimRate)
			}
			b.checkLive(live)
		}
	}
}

const (
	snapshotTime = time.Minute // how long claims go on beside an open snapshot
	snapshotRate = 400         // claims per second that nodes attempt
)

// TestSoakClaimsBesideSnapshot checks that nodes claim calls as fast beside a transaction that keeps its snapshot, as a
// long report or pg_dump does, as without it. Dead versions of rows stay meanwhile.
func TestSoakClaimsBesideSnapshot(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	const nodes, live = 4, 1_000
	b := newFixture(t, 1<<20, 1<<20, "sales")
	b.addLoad(live, int(2*snapshotRate*snapshotTime.Seconds()))
	without := b.measureClaims("no snapshot", nodes, snapshotRate)
	tx, err := b.db.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // cleanup
	if _, err = tx.Exec(t.Context(), "SELECT count(*) FROM attempts"); err != nil {
		t.Fatal(err)
	}
	var beside float64
	for since := time.Duration(0); since < snapshotTime; since += claimTime {
		beside = b.measureClaims(fmt.Sprintf("%v after the snapshot", since+claimTime), nodes, snapshotRate)
	}
	if beside < claimRate || beside < 0.75*without {
		t.Errorf("%.0f claims/s while a snapshot was open for %v, %.0f claims/s without it; want at least %d claims/s and 75 %% of the rate without it",
			beside, snapshotTime, without, claimRate)
	}
	b.checkLive(live)
}
