package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
)

// TestConcurrencyHoldsAgainstRaces lets nodes claim at once through subgroups
// of one trunk that has lines for one call, and through one subgroup that has.
func TestConcurrencyHoldsAgainstRaces(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, tt := range []struct{ name, sql string }{
		{"trunk", "UPDATE trunks SET concurrent_calls = 1"},
		{"fast trunk", "UPDATE trunks SET concurrent_calls = 1, calls_per_second = 1000000"},
		{"subgroup", "UPDATE subgroups SET concurrent_calls = 1, calls_per_minute = 60000000 WHERE name = 'a'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, 10, 1<<20, names...)
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
						if _, err := b.store.Claim(t.Context(), control.Place{Owner: fmt.Sprint("n", i), Home: "h"}, time.Minute); err != nil {
							t.Error(err)
						}
					})
				}
				nodes.Wait()
				var alive int
				if err := b.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM attempts WHERE state = 'claimed'").Scan(&alive); err != nil {
					t.Fatal(err)
				}
				if alive != 1 {
					t.Fatalf("%d calls on one line", alive)
				}
				b.exec("UPDATE attempts SET state = 'scheduled', owner = '', lease_until = NULL")
				b.exec("UPDATE subgroups SET next_dial_at = now() - interval '1 s'")
				b.exec("UPDATE trunks SET next_dial_at = now() - interval '1 s'")
			}
		})
	}
}
