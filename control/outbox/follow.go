// Package outbox takes the events of calls from the outbox and runs their steps.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// Dispatcher runs the steps of each event in order. Each step is retried on its own.
type Dispatcher struct {
	Outbox control.Outbox
	Steps  []control.Step
	// Home is this node's data directory.
	Home string
	// Workers is the number of workers of the fast lane; 0 means 4. SlowWorkers is the number of workers of the slow
	// lane; 0 means 16.
	Workers, SlowWorkers int
	// Poll is the interval of checks for events without a notification; 0 means 2 s.
	Poll time.Duration
	Wake <-chan struct{}
	Log  *slog.Logger
}

// followLease is the duration of an event's lease. stepFor is the maximum duration of one step. If the rest of the
// lease is shorter than stepFor, the progress is saved and the lease extended before the next step.
const (
	followLease = 2 * time.Minute
	stepFor     = followLease * 3 / 4
)

// takenAtOnce is the maximum number of events that a worker of the fast lane takes together. gather is its pause
// between batches, so that many events are handled in few batches.
const (
	takenAtOnce = 16
	gather      = 25 * time.Millisecond
)

// Run handles events until ctx ends. It returns when the running steps have finished.
func (f *Dispatcher) Run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	quick, slow := make(chan struct{}, 1), make(chan struct{}, 1)
	for range cmp.Or(f.Workers, 4) {
		workers.Go(func() { f.work(ctx, control.FastLane, quick) })
	}
	for range cmp.Or(f.SlowWorkers, 16) {
		workers.Go(func() { f.work(ctx, control.SlowLane, slow) })
	}
	tick := time.NewTicker(cmp.Or(f.Poll, 2*time.Second))
	defer tick.Stop()
	for ctx.Err() == nil {
		signal(quick)
		signal(slow)
		select {
		case <-ctx.Done():
		case <-f.Wake:
			waitForMore(ctx)
		case <-tick.C:
		}
	}
}

// waitForMore waits for gather, so that the next batch contains more events.
func waitForMore(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(gather):
	}
}

// signal wakes one worker of a lane. It does not block.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (f *Dispatcher) work(ctx context.Context, lane control.Lane, wake chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		for ctx.Err() == nil {
			took, err := f.some(ctx, lane, func() { signal(wake) })
			if err != nil && ctx.Err() == nil {
				f.log().WarnContext(ctx, "failed to handle an event", "err", err)
			}
			if !took {
				break
			}
			if lane == control.FastLane {
				waitForMore(ctx)
			}
		}
	}
}

// some handles due events of a lane and reports whether there were any. If there may be more, it calls took before it
// handles them.
func (f *Dispatcher) some(ctx context.Context, lane control.Lane, took func()) (bool, error) {
	most := takenAtOnce
	if lane == control.SlowLane {
		most = 1
	}
	began := time.Now()
	all, err := f.Outbox.Take(ctx, lane, f.Home, followLease, most)
	if err != nil || len(all) == 0 {
		return false, err
	}
	if len(all) == most {
		took() // another worker may take the rest
	}
	var b batch
	for _, e := range all {
		if e.Status == control.Failed { // events of failed calls are quick to handle
			f.one(ctx, e, began, &b)
			continue
		}
		b.tasks.Go(func() { f.one(ctx, e, began, &b) })
	}
	b.tasks.Wait()
	if len(b.over) > 0 {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		b.each = append(b.each, f.Outbox.Complete(short, b.over))
	}
	return true, errors.Join(b.each...)
}

// batch collects the results of events that were taken together.
type batch struct {
	tasks sync.WaitGroup
	mu    sync.Mutex
	over  []*control.Event
	each  []error
}

// one runs the steps of an event. It returns the event to the outbox instead if earlier events of the batch took so
// long that the rest of the lease is shorter than stepFor.
func (f *Dispatcher) one(ctx context.Context, e *control.Event, began time.Time, b *batch) {
	var over bool
	var err error
	if ctx.Err() == nil && time.Since(began) > followLease-stepFor {
		err = f.Outbox.Retry(ctx, e, 0)
	} else {
		over, err = f.follow(ctx, e, began)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.each = append(b.each, err)
	if over {
		b.over = append(b.over, e)
	}
}

// One handles the due events of a lane once, and reports whether there were any.
func (f *Dispatcher) One(ctx context.Context, lane control.Lane) (bool, error) {
	return f.some(ctx, lane, func() {})
}

// follow runs the steps of an event that was leased at began. It reports whether all steps are done; the caller must
// then complete the event.
func (f *Dispatcher) follow(ctx context.Context, e *control.Event, began time.Time) (over bool, err error) {
	for _, s := range f.Steps {
		if slices.Contains(e.Done, s.Name) || !s.RunsFor(e) {
			continue
		}
		if s.Lane > e.Lane {
			return false, f.Outbox.MoveToSlowLane(ctx, e)
		}
		if time.Since(began) > followLease-stepFor {
			if err := f.Outbox.SaveProgress(ctx, e, followLease); err != nil {
				return false, fmt.Errorf("%s of %s: %w", s.Name, e.CallID, err)
			}
			began = time.Now()
		}
		err := f.step(ctx, s, *e)
		if s.AfterLoss {
			e.Released = err == nil
		}
		if err != nil && !errors.Is(err, control.ErrNeedsNode) {
			err = fmt.Errorf("%s of %s: %w", s.Name, e.CallID, err)
			return false, errors.Join(err, f.again(ctx, e))
		}
		e.Done = append(e.Done, s.Name)
		e.Tries = 0
	}
	if e.Remote { // the event's own node runs the other steps, or any node if the event was released
		return false, f.Outbox.Retry(ctx, e, 0)
	}
	return true, nil
}

// again makes the event due again later. A step that a shutdown interrupted does not count as a failed try, and
// another node may take the event at once.
func (f *Dispatcher) again(ctx context.Context, e *control.Event) error {
	wait := time.Duration(0)
	if ctx.Err() == nil {
		wait = control.Backoff(e.Tries)
		e.Tries++
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return f.Outbox.Retry(ctx, e, wait)
}

func (f *Dispatcher) step(ctx context.Context, s control.Step, e control.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, stepFor)
	defer cancel()
	return s.Handler.HandleEvent(ctx, e)
}

func (f *Dispatcher) log() *slog.Logger { return cmp.Or(f.Log, slog.New(slog.DiscardHandler)) }
