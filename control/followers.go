package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// CallEnded is the kind of the event of a call's end. There is exactly one a
// call.
const CallEnded = "call.ended"

// An Event is a fact about a call, written in the transaction that made it one.
type Event struct {
	ID       int64
	CallID   string
	OrgID    string
	Kind     string
	Line     Line
	Followed []string // who followed it already
	Tries    int      // of the follower whose turn it is
	// At is when it happened.
	At time.Time
}

// A Follower acts on events, at least once each. An error brings the event
// back to it later.
type Follower interface {
	Follow(ctx context.Context, e Event) error
}

// A Line is where an event waits for its followers. Those that take their time
// have one of their own, so that they hold nobody else up.
type Line int

// Lines, in the order in which an event walks them.
const (
	Quick Line = iota
	Slow
)

// A Step is a follower and the name under which its work is remembered. No step
// of the quick line comes after one of the slow line.
type Step struct {
	Name     string
	Follower Follower
	Line     Line
}

// An Outbox holds the events that are not followed to the end.
type Outbox interface {
	// Take leases the next event of a line that is due, nil where there is none.
	// Events of one call come in order.
	Take(ctx context.Context, line Line, home string, lease time.Duration) (*Event, error)
	// Followed notes that a step is done and leases the event for the next; over
	// says that it was the last.
	Followed(ctx context.Context, e *Event, step string, over bool, lease time.Duration) error
	// Onward puts the event into the slow line, where any node may take it.
	Onward(ctx context.Context, e *Event) error
	// Again brings the event back after wait, with the Tries that it has.
	Again(ctx context.Context, e *Event, wait time.Duration) error
}

// Followers walk events past every step, in order, each retried alone.
type Followers struct {
	Outbox Outbox
	Steps  []Step
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

// followLease is how long one step may take.
const followLease = 2 * time.Minute

// Run follows until ctx ends, and returns when all is over.
func (f *Followers) Run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	quick, slow := make(chan struct{}, 1), make(chan struct{}, 1)
	for range orElse(f.Workers, 4) {
		workers.Go(func() { f.work(ctx, Quick, quick) })
	}
	for range orElse(f.SlowWorkers, 16) {
		workers.Go(func() { f.work(ctx, Slow, slow) })
	}
	tick := time.NewTicker(orElse(f.Poll, 2*time.Second))
	defer tick.Stop()
	for ctx.Err() == nil {
		nudge(quick)
		nudge(slow)
		select {
		case <-ctx.Done():
		case <-f.Wake:
		case <-tick.C:
		}
	}
}

// nudge wakes one worker of a line, where none was told already.
func nudge(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (f *Followers) work(ctx context.Context, line Line, wake chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		for ctx.Err() == nil {
			e, err := f.Outbox.Take(ctx, line, f.Home, followLease)
			if e != nil {
				nudge(wake) // there may be more, for the next worker
				err = f.follow(ctx, e)
			}
			if err != nil && ctx.Err() == nil {
				f.log().WarnContext(ctx, "an event is not followed", "err", err)
			}
			if e == nil {
				break
			}
		}
	}
}

// One follows one due event of a line as far as it goes. It reports whether there
// was one.
func (f *Followers) One(ctx context.Context, line Line) (bool, error) {
	e, err := f.Outbox.Take(ctx, line, f.Home, followLease)
	if err != nil || e == nil {
		return false, err
	}
	return true, f.follow(ctx, e)
}

func (f *Followers) follow(ctx context.Context, e *Event) error {
	for i, s := range f.Steps {
		if slices.Contains(e.Followed, s.Name) {
			continue
		}
		if s.Line > e.Line {
			return f.Outbox.Onward(ctx, e)
		}
		if err := f.step(ctx, s, *e); err != nil {
			err = fmt.Errorf("%s of %s: %w", s.Name, e.CallID, err)
			return errors.Join(err, f.again(ctx, e))
		}
		if err := f.Outbox.Followed(ctx, e, s.Name, i == len(f.Steps)-1, followLease); err != nil {
			return fmt.Errorf("%s of %s: %w", s.Name, e.CallID, err)
		}
		e.Followed = append(e.Followed, s.Name)
		e.Tries = 0
	}
	if len(e.Followed) == 0 { // nobody follows anything
		return f.Outbox.Followed(ctx, e, "", true, 0)
	}
	return nil
}

// again brings the event back, also where we stop in the middle of a step, which
// is no try: another node may take it at once.
func (f *Followers) again(ctx context.Context, e *Event) error {
	wait := time.Duration(0)
	if ctx.Err() == nil {
		wait = Backoff(e.Tries)
		e.Tries++
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return f.Outbox.Again(ctx, e, wait)
}

func (f *Followers) step(ctx context.Context, s Step, e Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, followLease*3/4)
	defer cancel()
	return s.Follower.Follow(ctx, e)
}

// Backoff is how long an event waits after its n-th failed try, from 0: 1 s,
// doubling, at most 5 min.
func Backoff(n int) time.Duration {
	if n > 8 {
		return 5 * time.Minute
	}
	return min(time.Second<<n, 5*time.Minute)
}

func (f *Followers) log() *slog.Logger {
	if f.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return f.Log
}
