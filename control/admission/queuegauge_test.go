package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestQueueGaugeDuringCount checks that a slow count delays an order only if the previous count shows no room.
func TestQueueGaugeDuringCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g queueGauge
		depth, counts := 5, 0
		count := func(ctx context.Context) (map[string]int, error) {
			counts++
			before := depth
			<-time.After(100 * time.Millisecond)
			return map[string]int{"org": before}, ctx.Err()
		}
		admit := func(want bool, wait time.Duration) {
			t.Helper()
			began := time.Now()
			if room, err := g.admit(t.Context(), "org", 8, count); room != want || err != nil || time.Since(began) != wait {
				t.Errorf("%v after %v, %v; want %v after %v", room, time.Since(began), err, want, wait)
			}
		}
		admit(true, 100*time.Millisecond) // 6 calls; waits for the first count
		admit(true, 0)                    // 7 calls
		<-time.After(2 * time.Second)
		depth = 4 // one call was dialed
		var others sync.WaitGroup
		others.Go(func() { admit(true, 100*time.Millisecond) }) // this order runs the count
		synctest.Wait()
		admit(true, 0) // 8 calls, by the previous count
		<-time.After(50 * time.Millisecond)
		others.Go(func() { admit(false, 50*time.Millisecond) }) // the queue seems full, so this order waits for the count
		others.Wait()
		if counts != 2 {
			t.Errorf("counted %d times", counts)
		}
	})
}

// TestQueueGaugeCountFails checks that a failed count refuses only the order that ran the count.
func TestQueueGaugeCountFails(t *testing.T) {
	var g queueGauge
	broken := errors.New("broken")
	if room, err := g.admit(t.Context(), "org", 8, func(context.Context) (map[string]int, error) { return nil, broken }); room || !errors.Is(err, broken) {
		t.Errorf("%v, %v", room, err)
	}
	if room, err := g.admit(t.Context(), "org", 8, func(context.Context) (map[string]int, error) { return map[string]int{"org": 7}, nil }); !room || err != nil {
		t.Errorf("%v, %v", room, err)
	}
}

// TestQueueGaugeDrainCount checks that counting the calls that left the queue blocks no reservation, and that one
// count serves all refused orders.
func TestQueueGaugeDrainCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := queueGauge{depth: orgCounts{n: 30}}
		counts := 0
		count := func(ctx context.Context) (int, error) {
			counts++
			<-time.After(100 * time.Millisecond)
			return 60 * counts, ctx.Err()
		}
		refused := func(want, wait time.Duration) {
			t.Helper()
			began := time.Now()
			if again, err := g.retryAfter(t.Context(), count); again != want || err != nil || time.Since(began) != wait {
				t.Errorf("in %v after %v, %v; want %v after %v", again, time.Since(began), err, want, wait)
			}
		}
		var others sync.WaitGroup
		for range 3 { // there is no count yet, so they wait
			others.Go(func() { refused(30*time.Second, 100*time.Millisecond) })
		}
		synctest.Wait()
		began := time.Now()
		g.leave("org")
		if took := time.Since(began); took != 0 {
			t.Errorf("a place was given back after %v", took)
		}
		others.Wait()
		<-time.After(2 * time.Second)
		others.Go(func() { refused(15*time.Second, 100*time.Millisecond) })
		synctest.Wait()
		refused(30*time.Second, 0) // uses the previous count
		others.Wait()
		if counts != 2 {
			t.Errorf("counted %d times", counts)
		}
		// A canceled order does not wait. A failed count returns its error to the order that ran it.
		<-time.After(2 * time.Second)
		broken := errors.New("broken")
		if _, err := g.retryAfter(t.Context(), func(context.Context) (int, error) { return 0, broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
		refused(10*time.Second, 100*time.Millisecond)
	})
}

// TestQueueShare checks that one organization may fill the queue alone, and that every other organization then still
// gets its share.
func TestQueueShare(t *testing.T) {
	for _, c := range []struct {
		name  string
		depth map[string]int
		org   string
		room  bool
	}{
		{"below the ceiling", map[string]int{"a": 11}, "a", true},
		{"one alone at the ceiling", map[string]int{"a": 12}, "a", false},
		{"another, with none", map[string]int{"a": 12}, "b", true},
		{"another, below its half", map[string]int{"a": 12, "b": 5}, "b", true},
		{"another, at its half", map[string]int{"a": 12, "b": 6}, "b", false},
		{"the first, above its half", map[string]int{"a": 12, "b": 1}, "a", false},
		{"a third", map[string]int{"a": 12, "b": 6, "c": 3}, "c", true},
		{"a third, at its share", map[string]int{"a": 12, "b": 6, "c": 4}, "c", false},
		{"more organizations than places", map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1, "j": 1, "k": 1, "l": 1}, "m", true},
	} {
		g := queueGauge{depth: newCounts(c.depth)}
		if got := g.hasRoom(c.org, 12); got != c.room {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
