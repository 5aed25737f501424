package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOpenLoop checks that response times count from when a request was due. A stall of the
// service then slows all requests that become due during it.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := openLoop(t.Context(), 10, 2*time.Second, func(_ context.Context, n int) error {
			if n == 3 {
				return errors.New("refused")
			}
			if wait := time.Until(began.Add(time.Second)); wait > 0 {
				<-time.After(wait)
			}
			return nil
		})
		if len(r.each) != 19 || r.failed != 1 || r.err == nil || r.at(1) != 1000 || r.at(0) != 0 || r.took != 1900*time.Millisecond {
			t.Errorf("got %d answers, %d refused, from %v to %v ms in %v", len(r.each), r.failed, r.at(0), r.at(1), r.took)
		}
	})
}

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan int, 1000)
		r := closedLoop(t.Context(), 4, time.Second, func(_ context.Context, n int) error {
			seen <- n
			<-time.After(100 * time.Millisecond)
			return nil
		})
		close(seen)
		all := map[int]bool{}
		for n := range seen {
			all[n] = true
		}
		if len(r.each) != 40 || len(all) != 40 || r.perSecond() != 40 || r.at(0.99) != 100 {
			t.Errorf("got %d answers, %d different, %v/s, p99 %v", len(r.each), len(all), r.perSecond(), r.at(0.99))
		}
	})
}

func TestQuantiles(t *testing.T) {
	r := answers{}
	if r.at(0.5) != 0 {
		t.Error("no answers: got a quantile, want 0")
	}
	for n := range 100 {
		r.each = append(r.each, time.Duration(n)*time.Millisecond)
	}
	if r.at(0) != 0 || r.at(0.5) != 50 || r.at(0.99) != 99 || r.at(1) != 99 {
		t.Errorf("got %v %v %v %v", r.at(0), r.at(0.5), r.at(0.99), r.at(1))
	}
}
