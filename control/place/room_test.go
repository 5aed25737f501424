package place

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestGaugeIsReadWhileItIsCounted: a count of a deep queue holds nobody up who has
// room by the one before; who has none waits for it.
func TestGaugeIsReadWhileItIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		depth, counts := 5, 0
		count := func(ctx context.Context) (int, error) {
			counts++
			before := depth
			<-time.After(100 * time.Millisecond)
			return before, ctx.Err()
		}
		admit := func(want bool, wait time.Duration) {
			t.Helper()
			began := time.Now()
			if room, err := g.admit(t.Context(), 8, count); room != want || err != nil || time.Since(began) != wait {
				t.Errorf("%v after %v, %v; want %v after %v", room, time.Since(began), err, want, wait)
			}
		}
		admit(true, 100*time.Millisecond) // nothing is known yet: 6
		admit(true, 0)                    // 7
		<-time.After(2 * time.Second)
		depth = 4 // one was dialled
		var others sync.WaitGroup
		others.Go(func() { admit(true, 100*time.Millisecond) }) // it counts
		synctest.Wait()
		admit(true, 0) // 8, by what was known
		<-time.After(50 * time.Millisecond)
		others.Go(func() { admit(false, 50*time.Millisecond) }) // full: it waits for the count
		others.Wait()
		if counts != 2 {
			t.Errorf("counted %d times", counts)
		}
	})
}

// TestGaugeThatCannotBeCounted refuses who asked, and nobody after it.
func TestGaugeThatCannotBeCounted(t *testing.T) {
	var g gauge
	broken := errors.New("broken")
	if room, err := g.admit(t.Context(), 8, func(context.Context) (int, error) { return 0, broken }); room || !errors.Is(err, broken) {
		t.Errorf("%v, %v", room, err)
	}
	if room, err := g.admit(t.Context(), 8, func(context.Context) (int, error) { return 7, nil }); !room || err != nil {
		t.Errorf("%v, %v", room, err)
	}
}

// TestWhatDrainedIsCountedApart: while it is, places are taken and given back, and
// it is counted once for all who are refused.
func TestWhatDrainedIsCountedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gauge{depth: 30}
		counts := 0
		count := func(ctx context.Context) (int, error) {
			counts++
			<-time.After(100 * time.Millisecond)
			return 60 * counts, ctx.Err()
		}
		refused := func(want, wait time.Duration) {
			t.Helper()
			began := time.Now()
			if again, err := g.again(t.Context(), count); again != want || err != nil || time.Since(began) != wait {
				t.Errorf("in %v after %v, %v; want %v after %v", again, time.Since(began), err, want, wait)
			}
		}
		var others sync.WaitGroup
		for range 3 { // nothing is known yet: they wait
			others.Go(func() { refused(30*time.Second, 100*time.Millisecond) })
		}
		synctest.Wait()
		began := time.Now()
		g.leave()
		if took := time.Since(began); took != 0 {
			t.Errorf("a place was given back after %v", took)
		}
		others.Wait()
		<-time.After(2 * time.Second)
		others.Go(func() { refused(15*time.Second, 100*time.Millisecond) })
		synctest.Wait()
		refused(30*time.Second, 0) // by what was known
		others.Wait()
		if counts != 2 {
			t.Errorf("counted %d times", counts)
		}
		// Who gives up does not wait, and an error is of who counted.
		<-time.After(2 * time.Second)
		broken := errors.New("broken")
		if _, err := g.again(t.Context(), func(context.Context) (int, error) { return 0, broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
		refused(10*time.Second, 100*time.Millisecond)
	})
}
