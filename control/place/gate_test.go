package place

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/control"
)

// TestGateTellsWhenToComeAgain: once it is known how fast the line moves, nobody
// waits in it who would wait for too long, and what is told comes true.
func TestGateTellsWhenToComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate{most: 1}
		order := func(ctx context.Context) error {
			leave, err := g.enter(ctx)
			if err == nil {
				<-time.After(100 * time.Millisecond)
				leave()
			}
			return err
		}
		var line sync.WaitGroup
		for range 100 { // ten seconds of work
			line.Go(func() {
				if err := order(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		<-time.After(4 * time.Second) // 60 are left
		var full *control.Error
		if err := order(t.Context()); !errors.As(err, &full) || full.Code != control.CodeVoiceBackend || full.RetryAfter < 5*time.Second || full.RetryAfter > 7*time.Second {
			t.Fatalf("%v, again in %v", err, full)
		}
		<-time.After(full.RetryAfter)
		began := time.Now()
		if err := order(t.Context()); err != nil || time.Since(began) > 500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		line.Wait()
	})
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		var mu sync.Mutex
		in, most, done, late := 0, 0, 0, 0
		var orders sync.WaitGroup
		for range 10 * mostAtOnce {
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
		if most != mostAtOnce || done != 5*mostAtOnce || late != 5*mostAtOnce {
			t.Errorf("at most %d at a time, %d done, %d too late", most, done, late)
		}
	})
}
