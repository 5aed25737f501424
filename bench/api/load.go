package api

import (
	"context"
	"slices"
	"sync"
	"time"
)

// answers holds response times.
type answers struct {
	took   time.Duration
	each   []time.Duration // response times, sorted
	late   []float64       // lateness of each request in ms; empty for closedLoop
	failed int             // number of unexpected responses
	err    error           // one of the errors
}

func (r answers) perSecond() float64 { return float64(len(r.each)) / r.took.Seconds() }

// millis returns the response times in ms.
func (r answers) millis() []float64 {
	var all []float64
	for _, d := range r.each {
		all = append(all, float64(d)/float64(time.Millisecond))
	}
	return all
}

// at returns the q-quantile of the response times in ms; 0 without responses.
func (r answers) at(q float64) float64 {
	if len(r.each) == 0 {
		return 0
	}
	i := min(int(q*float64(len(r.each))), len(r.each)-1)
	return float64(r.each[i]) / float64(time.Millisecond)
}

// A tally collects answers.
type tally struct {
	mu      sync.Mutex
	answers answers
}

// ask calls do with n and records the time from due to the response.
func (t *tally) ask(ctx context.Context, due time.Time, n int, do func(context.Context, int) error) {
	err := do(ctx, n)
	took := time.Since(due)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.answers.failed++
		t.answers.err = err
		return
	}
	t.answers.each = append(t.answers.each, took)
}

// left records how late a request was sent.
func (t *tally) left(late time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers.late = append(t.answers.late, float64(late)/float64(time.Millisecond))
}

func (t *tally) over(began time.Time) answers {
	t.answers.took = time.Since(began)
	slices.Sort(t.answers.each)
	return t.answers
}

// openLoop sends rate requests per second and does not wait for earlier responses. A slow service
// then shows in the response times.
func openLoop(ctx context.Context, rate int, length time.Duration, do func(context.Context, int) error) answers {
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
		asking.Go(func() {
			t.left(time.Since(due))
			t.ask(ctx, due, n, do)
		})
	}
	asking.Wait()
	return t.over(began)
}

// closedLoop runs clients concurrently. Each sends its next request after the response to its last one.
func closedLoop(ctx context.Context, clients int, length time.Duration, do func(context.Context, int) error) answers {
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
