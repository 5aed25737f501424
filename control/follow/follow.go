// Package follow walks the events of calls past those who follow them.
package follow

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

// Followers walk events past every step, in order, each retried alone.
type Followers struct {
	Outbox control.Outbox
	Steps  []control.Step
	// Home is the data directory whose events only this node can follow.
	Home string
	// Workers is how many events of the quick line are followed at a time, 0
	// means 4; SlowWorkers how many of the slow one, 0 means 16.
	Workers, SlowWorkers int
	// Poll is how often the outbox is looked at without being woken; 0 means 2 s.
	Poll time.Duration
	Wake <-chan struct{}
	Log  *slog.Logger
}

// followLease is how long a worker has an event, and stepFor how long one step of
// it may take. While steps are quick, who followed is kept once for all.
const (
	followLease = 2 * time.Minute
	stepFor     = followLease * 3 / 4
)

// takenAtOnce is how many events of the quick line a worker takes at a time, and
// gather how long it then lets others come to be: a flood of ends is followed by
// the dozen.
const (
	takenAtOnce = 16
	gather      = 25 * time.Millisecond
)

// Run follows until ctx ends, and returns when all is over.
func (f *Followers) Run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	quick, slow := make(chan struct{}, 1), make(chan struct{}, 1)
	for range cmp.Or(f.Workers, 4) {
		workers.Go(func() { f.work(ctx, control.Quick, quick) })
	}
	for range cmp.Or(f.SlowWorkers, 16) {
		workers.Go(func() { f.work(ctx, control.Slow, slow) })
	}
	tick := time.NewTicker(cmp.Or(f.Poll, 2*time.Second))
	defer tick.Stop()
	for ctx.Err() == nil {
		nudge(quick)
		nudge(slow)
		select {
		case <-ctx.Done():
		case <-f.Wake:
			rest(ctx)
		case <-tick.C:
		}
	}
}

// rest waits until some may have gathered.
func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(gather):
	}
}

// nudge wakes one worker of a line, where none was told already.
func nudge(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (f *Followers) work(ctx context.Context, line control.Line, wake chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		for ctx.Err() == nil {
			took, err := f.some(ctx, line, func() { nudge(wake) })
			if err != nil && ctx.Err() == nil {
				f.log().WarnContext(ctx, "an event is not followed", "err", err)
			}
			if !took {
				break
			}
			if line == control.Quick {
				rest(ctx)
			}
		}
	}
}

// some follows due events of a line as far as they go. It reports whether there
// were any, and tells before it begins where there may be more.
func (f *Followers) some(ctx context.Context, line control.Line, took func()) (bool, error) {
	most := takenAtOnce
	if line == control.Slow {
		most = 1
	}
	began := time.Now()
	all, err := f.Outbox.Take(ctx, line, f.Home, followLease, most)
	if err != nil || len(all) == 0 {
		return false, err
	}
	if len(all) == most {
		took() // there may be more, for the next worker
	}
	var b batch
	for _, e := range all {
		if e.Status == control.Failed { // there is little to follow
			f.one(ctx, e, began, &b)
			continue
		}
		b.tasks.Go(func() { f.one(ctx, e, began, &b) })
	}
	b.tasks.Wait()
	if len(b.over) > 0 {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		b.each = append(b.each, f.Outbox.Over(short, b.over))
	}
	return true, errors.Join(b.each...)
}

// A batch is what became of events that were taken together.
type batch struct {
	tasks sync.WaitGroup
	mu    sync.Mutex
	over  []*control.Event
	each  []error
}

// one follows an event, unless those before it took longer than it can wait.
func (f *Followers) one(ctx context.Context, e *control.Event, began time.Time, b *batch) {
	var over bool
	var err error
	if ctx.Err() == nil && time.Since(began) > followLease-stepFor {
		err = f.Outbox.Again(ctx, e, 0)
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

// One follows what is due of a line as far as it goes. It reports whether there
// was anything.
func (f *Followers) One(ctx context.Context, line control.Line) (bool, error) {
	return f.some(ctx, line, func() {})
}

// follow reports whether an event that is leased since began was followed to its
// end, which is still to be kept.
func (f *Followers) follow(ctx context.Context, e *control.Event, began time.Time) (over bool, err error) {
	for _, s := range f.Steps {
		if slices.Contains(e.Followed, s.Name) || s.Talked && !e.Talked() || e.Away && !s.Anywhere {
			continue
		}
		if s.Line > e.Line {
			return false, f.Outbox.Onward(ctx, e)
		}
		if time.Since(began) > followLease-stepFor {
			if err := f.Outbox.Followed(ctx, e, followLease); err != nil {
				return false, fmt.Errorf("%s of %s: %w", s.Name, e.CallID, err)
			}
			began = time.Now()
		}
		if err := f.step(ctx, s, *e); err != nil {
			err = fmt.Errorf("%s of %s: %w", s.Name, e.CallID, err)
			return false, errors.Join(err, f.again(ctx, e))
		}
		e.Followed = append(e.Followed, s.Name)
		e.Tries = 0
	}
	if e.Away { // the rest is its node's
		return false, f.Outbox.Again(ctx, e, 0)
	}
	return true, nil
}

// again brings the event back, also where we stop in the middle of a step, which
// is no try: another node may take it at once.
func (f *Followers) again(ctx context.Context, e *control.Event) error {
	wait := time.Duration(0)
	if ctx.Err() == nil {
		wait = control.Backoff(e.Tries)
		e.Tries++
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return f.Outbox.Again(ctx, e, wait)
}

func (f *Followers) step(ctx context.Context, s control.Step, e control.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, stepFor)
	defer cancel()
	return s.Follower.Follow(ctx, e)
}

func (f *Followers) log() *slog.Logger {
	if f.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return f.Log
}
