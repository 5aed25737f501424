package place

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		var mu sync.Mutex
		in, most, done, late := 0, 0, 0, 0
		var orders sync.WaitGroup
		for range 10 * mostOrders {
			orders.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
				defer cancel()
				leave, err := g.enter(ctx)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, context.DeadlineExceeded) {
					late++
					return
				}
				in++
				most = max(most, in)
				mu.Unlock()
				<-time.After(time.Second)
				mu.Lock()
				in--
				done++
				leave()
			})
		}
		orders.Wait()
		if most != mostOrders || done != 5*mostOrders || late != 5*mostOrders {
			t.Errorf("at most %d at a time, %d done, %d too late", most, done, late)
		}
	})
}
