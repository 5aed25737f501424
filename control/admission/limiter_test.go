package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/groupcommit"
)

// TestLimiterRetryAfter checks that orders that would wait too long are refused at once when the rate is known. Their
// Retry-After is close to the real wait.
func TestLimiterRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Limiter{Max: 1}
		order := func(ctx context.Context) error {
			leave, err := g.Enter(ctx)
			if err == nil {
				<-time.After(100 * time.Millisecond)
				leave()
			}
			return err
		}
		var line sync.WaitGroup
		for range 100 { // 100 ms each: 10 s in total
			line.Go(func() {
				if err := order(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		<-time.After(4 * time.Second) // 60 orders still wait
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

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Limiter
		var mu sync.Mutex
		in, most, done, late := 0, 0, 0, 0
		var orders sync.WaitGroup
		for range 10 * defaultLimit {
			orders.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
				defer cancel()
				leave, err := g.Enter(ctx)
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
		if most != defaultLimit || done != 5*defaultLimit || late != 5*defaultLimit {
			t.Errorf("at most %d at a time, %d done, %d too late", most, done, late)
		}
	})
}

// TestLimiterWithGroupedReleases checks that the limiter refuses exactly the orders that would wait too long, even if
// many orders finish at the same moment.
func TestLimiterWithGroupedReleases(t *testing.T) {
	for _, tt := range []struct {
		name         string
		takes        time.Duration // processing time of one group
		perSecond    int           // arriving orders per second
		most, groups int
	}{
		{"slow", time.Second, 500, 192, 64},
		{"half as fast as they come", 200 * time.Millisecond, 500, 192, 64},
		{"much too slow", 500 * time.Millisecond, 1000, 256, 64},
		{"as fast as they come", 100 * time.Millisecond, 500, 256, 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := Limiter{Max: tt.most}
				write := groupcommit.Group[int]{MaxItems: tt.groups, MinInterval: 4 * time.Millisecond, Write: func(_ context.Context, all []int) ([]error, error) {
					<-time.After(tt.takes)
					return make([]error, len(all)), nil
				}}
				var served, refused, late, told atomic.Int32
				const seconds = 20
				known := time.Now().Add(minWaited + tt.takes) // the rate is unknown before this time
				var orders sync.WaitGroup
				for range tt.perSecond * seconds {
					<-time.After(time.Second / time.Duration(tt.perSecond))
					orders.Go(func() {
						began := time.Now()
						leave, err := g.Enter(t.Context())
						if err != nil {
							refused.Add(1)
							if time.Since(began) > 0 {
								told.Add(1)
							}
							return
						}
						defer leave()
						if began.After(known) && time.Since(began) > maxQueueTime*5/4+tt.takes {
							late.Add(1)
						}
						if write.Do(t.Context(), 1) == nil {
							served.Add(1)
						}
					})
				}
				orders.Wait()
				could := min(int(seconds*time.Second/tt.takes)*tt.groups, tt.perSecond*seconds)
				if late.Load() > 0 || told.Load() > 0 || int(served.Load()) < could*9/10 || could == tt.perSecond*seconds && refused.Load() > 0 {
					t.Errorf("%v for %d, %d/s: served %d of %d that could be, refused %d, of them %d not at once; %d waited for too long",
						tt.takes, tt.groups, tt.perSecond, served.Load(), could, refused.Load(), told.Load(), late.Load())
				}
			})
		})
	}
}
