package api

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A result is how long answers took.
type result struct {
	took   time.Duration
	each   []time.Duration // sorted
	failed int             // asked, and not answered as it should be
	err    error           // of one of them
}

func (r result) perSecond() float64 { return float64(len(r.each)) / r.took.Seconds() }

// at is a quantile in milliseconds, 0 where there is none.
func (r result) at(q float64) float64 {
	if len(r.each) == 0 {
		return 0
	}
	i := min(int(q*float64(len(r.each))), len(r.each)-1)
	return float64(r.each[i]) / float64(time.Millisecond)
}

// A tally is a result in the making.
type tally struct {
	mu     sync.Mutex
	result result
}

// ask does, and counts from the time at which it was to be done.
func (t *tally) ask(ctx context.Context, due time.Time, n int, do func(context.Context, int) error) {
	err := do(ctx, n)
	took := time.Since(due)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.result.failed++
		t.result.err = err
		return
	}
	t.result.each = append(t.result.each, took)
}

func (t *tally) over(began time.Time) result {
	t.result.took = time.Since(began)
	slices.Sort(t.result.each)
	return t.result
}

// open asks so many times a second, whether or not what went before is
// answered: a service that falls behind is seen to.
func open(ctx context.Context, rate int, length time.Duration, do func(context.Context, int) error) result {
	var t tally
	var asking sync.WaitGroup
	began := time.Now()
	for n := range int(length.Seconds() * float64(rate)) {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		asking.Go(func() { t.ask(ctx, due, n, do) })
	}
	asking.Wait()
	return t.over(began)
}

// closed has clients ask, each the next as soon as it has the last answer.
func closed(ctx context.Context, clients int, length time.Duration, do func(context.Context, int) error) result {
	var t tally
	var asking sync.WaitGroup
	began := time.Now()
	for c := range clients {
		asking.Go(func() {
			for n := c; time.Since(began) < length && ctx.Err() == nil; n += clients {
				t.ask(ctx, time.Now(), n, do)
			}
		})
	}
	asking.Wait()
	return t.over(began)
}
