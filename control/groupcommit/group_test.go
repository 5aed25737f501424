package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// writeLog records which items were written together.
type writeLog struct {
	mu     sync.Mutex
	writes [][]int
	takes  time.Duration
}

var errBad = errors.New("bad item")

// write returns an error for each odd item. It fails for all items if one is negative.
func (p *writeLog) write(ctx context.Context, items []int) ([]error, error) {
	select {
	case <-time.After(p.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, slices.Clone(items))
	each := make([]error, len(items))
	for n, i := range items {
		if i < 0 {
			return nil, fmt.Errorf("%w %d", errBad, i)
		}
		if i%2 == 1 {
			each[n] = errors.New("odd")
		}
	}
	return each, nil
}

func (p *writeLog) sizes() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int
	for _, w := range p.writes {
		all = append(all, len(w))
	}
	return all
}

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &writeLog{takes: 10 * time.Millisecond}
		g := &Group[int]{Write: p.write, MaxItems: 4}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if err := g.Do(t.Context(), i); (err != nil) != (i%2 == 1) {
					t.Errorf("%d: %v", i, err)
				}
			})
			if i == 0 {
				synctest.Wait() // the first item is being written; the other items wait
			}
		}
		all.Wait()
		if got := p.sizes(); !slices.Equal(got, []int{1, 4, 4, 1}) {
			t.Errorf("writes of %v", got)
		}
	})
}

// TestMinInterval checks that a single item is written at once, and that many items are written together.
func TestMinInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &writeLog{}
		g := &Group[int]{Write: p.write, MinInterval: 20 * time.Millisecond}
		began := time.Now()
		if err := g.Do(t.Context(), 0); err != nil || time.Since(began) != 0 {
			t.Errorf("a lone item took %v: %v", time.Since(began), err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { _ = g.Do(t.Context(), 2) })
			<-time.After(time.Millisecond)
		}
		all.Wait()
		if got := p.sizes(); !slices.Equal(got, []int{1, 5}) || time.Since(began) != 20*time.Millisecond {
			t.Errorf("writes of %v after %v", got, time.Since(began))
		}
	})
}

// TestBadItemIsRetriedAlone checks that a bad item does not affect other items. If no item caused the error, all
// callers get it.
func TestBadItemIsRetriedAlone(t *testing.T) {
	for _, blames := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &writeLog{takes: time.Millisecond}
			g := &Group[int]{Write: p.write, IsItemError: func(err error) bool { return blames && errors.Is(err, errBad) }}
			var all sync.WaitGroup
			for _, i := range []int{0, 2, -4, 6} {
				all.Go(func() {
					if err := g.Do(t.Context(), i); (err != nil) != (i < 0 || i > 0 && !blames) {
						t.Errorf("%d, blamed %v: %v", i, blames, err)
					}
				})
				synctest.Wait()
			}
			all.Wait()
		})
	}
}

// TestCanceledCaller checks that the item of a canceled caller is not written and delays no other item.
func TestCanceledCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &writeLog{takes: 10 * time.Millisecond}
		g := &Group[int]{Write: p.write, MaxItems: 1, MinInterval: 50 * time.Millisecond}
		var all sync.WaitGroup
		short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		for n := range 6 {
			ctx, want := t.Context(), error(nil)
			if n == 1 || n == 2 || n == 5 {
				ctx, want = short, context.DeadlineExceeded
			}
			all.Go(func() {
				if err := g.Do(ctx, 2*n); !errors.Is(err, want) {
					t.Errorf("%d: %v, want %v", n, err, want)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if !slices.EqualFunc(p.writes, [][]int{{0}, {6}, {8}}, slices.Equal) {
			t.Errorf("wrote %v", p.writes)
		}
		// An item whose write has started is written even if its caller gives up.
		ctx, stop := context.WithCancel(t.Context())
		all.Go(func() { _ = g.Do(ctx, 10) })
		all.Go(func() { stop() })
		all.Wait()
		if err := g.Do(t.Context(), 12); err != nil {
			t.Error(err)
		}
	})
}

// TestWriteTimeout checks that a database that hangs blocks no caller for longer than Timeout.
func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &writeLog{takes: time.Hour}
		g := &Group[int]{Write: p.write, Timeout: time.Second, IsItemError: func(error) bool { return true }}
		began := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := g.Do(t.Context(), 0); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestWritePanics checks that the leader gets the panic and the other callers an error, and that the next write
// succeeds.
func TestWritePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Group[int]{MinInterval: time.Millisecond, Write: func(_ context.Context, items []int) ([]error, error) {
			if slices.Contains(items, -1) {
				panic("canary") //nolint:forbidigo // under test
			}
			return make([]error, len(items)), nil
		}}
		if err := g.Do(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var broken, panicked atomic.Int32
		for range 3 {
			all.Go(func() {
				defer func() {
					if recover() != nil {
						panicked.Add(1)
					}
				}()
				if g.Do(t.Context(), -1) != nil {
					broken.Add(1)
				}
			})
		}
		all.Wait()
		if panicked.Load() != 1 || broken.Load() != 2 {
			t.Errorf("%d callers panicked, and %d got an error", panicked.Load(), broken.Load())
		}
		if err := g.Do(t.Context(), 2); err != nil {
			t.Errorf("the next: %v", err)
		}
	})
}

// TestWriteDeadline checks that a write ends at the last deadline of its callers, or after Timeout.
func TestWriteDeadline(t *testing.T) {
	for _, tt := range []struct {
		within time.Duration
		may    []time.Duration // deadlines of the callers; 0 means none
		want   time.Duration
	}{
		{0, []time.Duration{time.Second}, time.Second},
		{0, []time.Duration{time.Second, 3 * time.Second}, 3 * time.Second},
		{0, []time.Duration{time.Second, 0}, 30 * time.Second},
		{2 * time.Second, []time.Duration{time.Second, 3 * time.Second}, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &writeLog{takes: time.Hour}
			g := &Group[int]{Write: p.write, Timeout: tt.within, MinInterval: time.Millisecond}
			g.last = time.Now() // makes all items wait for one write
			began := time.Now()
			var all sync.WaitGroup
			for n, d := range tt.may {
				ctx := t.Context()
				if d > 0 {
					short, cancel := context.WithTimeout(ctx, d)
					defer cancel()
					ctx = short
				}
				all.Go(func() {
					if err := g.Do(ctx, n); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v of %v: %v", d, tt.may, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(began).Truncate(time.Second); took != tt.want {
				t.Errorf("%v within %v: after %v", tt.may, tt.within, took)
			}
		})
	}
}

// TestWaitForStartedWrite checks that, with Wait set, a canceled caller gets the result of a write that has started.
// If the write has not started, Do returns at once.
func TestWaitForStartedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &writeLog{takes: 10 * time.Millisecond}
		g := &Group[int]{Write: p.write, MaxItems: 2, Wait: true, IsItemError: func(err error) bool { return errors.Is(err, errBad) }}
		short, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		began := time.Now()
		var all sync.WaitGroup
		for _, tt := range []struct {
			item  int
			short bool
			want  error
			after time.Duration
		}{
			{0, false, nil, 10 * time.Millisecond},
			{2, false, nil, 20 * time.Millisecond},
			{4, true, nil, 20 * time.Millisecond},
			{6, true, context.DeadlineExceeded, 15 * time.Millisecond},
			{8, false, nil, 30 * time.Millisecond},
		} {
			ctx := t.Context()
			if tt.short {
				ctx = short
			}
			all.Go(func() {
				if err := g.Do(ctx, tt.item); !errors.Is(err, tt.want) || time.Since(began) != tt.after {
					t.Errorf("%d: %v after %v, want %v after %v", tt.item, err, time.Since(began), tt.want, tt.after)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if got := p.sizes(); !slices.Equal(got, []int{1, 2, 1}) {
			t.Errorf("writes of %v", got)
		}
	})
}

// TestRetriesDoNotDelayOthers checks that items that are tried alone delay no later item, and that only a few of them
// are tried at the same time.
func TestRetriesDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var alone, most atomic.Int32
		g := &Group[int]{Wait: true, MinInterval: time.Millisecond, Timeout: 5 * time.Second, IsItemError: func(err error) bool { return errors.Is(err, errBad) }}
		g.Write = func(_ context.Context, items []int) ([]error, error) {
			if !slices.Contains(items, -1) {
				return make([]error, len(items)), nil
			}
			if len(items) == 1 {
				most.Store(max(most.Load(), alone.Add(1)))
				defer alone.Add(-1)
			}
			<-time.After(200 * time.Millisecond)
			return nil, errBad
		}
		if err := g.Do(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var all sync.WaitGroup
		for range 16 { // 0.2 s for the common write, and 0.8 s for 16 single writes, four at a time
			all.Go(func() {
				if err := g.Do(t.Context(), -1); !errors.Is(err, errBad) || time.Since(began) > 1100*time.Millisecond {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		}
		<-time.After(100 * time.Millisecond)
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := g.Do(short, 2); err != nil || time.Since(began) > 300*time.Millisecond {
			t.Errorf("a later caller got %v after %v", err, time.Since(began))
		}
		all.Wait()
		if most.Load() != 4 {
			t.Errorf("%d alone at a time", most.Load())
		}
	})
}
