package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// TestChannelsUnderConcurrency lets nodes claim concurrently through several subgroups of a trunk with one channel,
// and through one subgroup with one channel. It checks that only one call is active at a time.
func TestChannelsUnderConcurrency(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, tt := range []struct{ name, sql string }{
		{"trunk", "UPDATE trunks SET concurrent_calls = 1"},
		{"fast trunk", "UPDATE trunks SET concurrent_calls = 1, calls_per_second = 1000000"},
		{"subgroup", "UPDATE subgroups SET concurrent_calls = 1, calls_per_minute = 60000000 WHERE name = 'a'"},
		{"grant", grantAllSQL + "UPDATE grants SET concurrent_calls = 1; UPDATE subgroups SET calls_per_minute = 60000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFixture(t, 10, 1<<20, names...)
			if tt.name == "subgroup" {
				b.order("a", 8)
			} else {
				for _, n := range names {
					b.order(n, 1)
				}
			}
			b.exec(tt.sql)
			for range 60 {
				var nodes sync.WaitGroup
				for i := range 8 {
					nodes.Go(func() {
						if _, err := b.store.Claim(t.Context(), control.NodeID{Owner: fmt.Sprint("n", i), Home: "h"}, time.Minute, 5); err != nil {
							t.Error(err)
						}
					})
				}
				nodes.Wait()
				alive := dbtest.Value[int](t, b.db, "SELECT count(*) FROM attempts WHERE state = 'claimed'")
				if alive != 1 {
					t.Fatalf("%d calls are alive, want 1", alive)
				}
				b.exec("UPDATE attempts SET state = 'scheduled', owner = '', lease_until = NULL")
				b.exec("UPDATE subgroups SET next_dial_at = now() - interval '1 s'")
				b.exec("UPDATE trunks SET next_dial_at = now() - interval '1 s'")
			}
		})
	}
}

// grantAllSQL grants each trunk to the organizations that have subgroups on it.
const grantAllSQL = `INSERT INTO grants (id, org_id, trunk_id) SELECT DISTINCT 'grt_' || trunk_id, org_id, trunk_id FROM subgroups;
	UPDATE subgroups SET grant_id = 'grt_' || trunk_id;`

// TestPaceUnderConcurrency checks that concurrent claims keep the spacing that the trunk's calls_per_second sets.
func TestPaceUnderConcurrency(t *testing.T) {
	b := newFixture(t, 100, 1<<20, "a", "b")
	b.order("a", 15)
	b.order("b", 15)
	const want = 30
	b.exec("UPDATE trunks SET calls_per_second = 25")
	var claimed atomic.Int64
	var nodes sync.WaitGroup
	for i := range 6 {
		nodes.Go(func() {
			for claimed.Load() < want && t.Context().Err() == nil {
				some, err := b.store.Claim(t.Context(), control.NodeID{Owner: fmt.Sprint("n", i), Home: "h"}, time.Minute, 5)
				if err != nil {
					t.Error(err)
					return
				}
				claimed.Add(int64(len(some)))
			}
		})
	}
	nodes.Wait()
	var least float64
	err := b.db.Pool.QueryRow(t.Context(), `SELECT extract(epoch FROM min(apart))::float8 * 1000
		FROM (SELECT claimed_at - lag(claimed_at) OVER (ORDER BY claimed_at) AS apart FROM attempts) x`).Scan(&least)
	if err != nil || least < 40 || claimed.Load() != want {
		t.Errorf("%d claimed, %v ms apart at least, want 40: %v", claimed.Load(), least, err)
	}
}
