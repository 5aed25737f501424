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
