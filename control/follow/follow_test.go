package follow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/control"
)

// A shelf is an Outbox in memory.
type shelf struct {
	mu     sync.Mutex
	events []*control.Event
	again  []time.Duration
	kept   [][]string // who had followed, each time that was kept
	over   int
}

func (s *shelf) Take(_ context.Context, line control.Line, _ string, _ time.Duration, most int) ([]*control.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken, left []*control.Event
	for _, e := range s.events {
		if e.Line == line && len(taken) < most {
			taken = append(taken, e)
		} else {
			left = append(left, e)
		}
	}
	s.events = left
	return taken, nil
}

func (s *shelf) Onward(_ context.Context, e *control.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Line = control.Slow
	s.events = append(s.events, e)
	return nil
}

func (s *shelf) Followed(_ context.Context, e *control.Event, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, slices.Clone(e.Followed))
	return nil
}

func (s *shelf) Over(_ context.Context, all []*control.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over += len(all)
	return nil
}

func (s *shelf) Again(_ context.Context, e *control.Event, wait time.Duration) error {
	s.again = append(s.again, wait)
	s.events = append(s.events, e)
	return nil
}

type followFunc func() error

func (f followFunc) Follow(context.Context, control.Event) error { return f() }

func TestFollowersGoInLineAndRetryAlone(t *testing.T) {
	s := &shelf{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded}}}
	var trace []string
	fail := 2
	f := &Followers{Outbox: s, Steps: []control.Step{
		{Name: "recording", Follower: followFunc(func() error { trace = append(trace, "recording"); return nil })},
		{Name: "webhook", Follower: followFunc(func() error {
			trace = append(trace, "webhook")
			if fail--; fail == 0 {
				panic("once") //nolint:forbidigo // what is tested
			} else if fail > 0 {
				return errors.New("not yet")
			}
			return nil
		})},
	}}
	for range 3 {
		if more, err := f.One(t.Context(), control.Quick); !more || (err != nil) != (fail >= 0) {
			t.Errorf("%v %v", more, err)
		}
	}
	if want := []string{"recording", "webhook", "webhook", "webhook"}; !slices.Equal(trace, want) {
		t.Errorf("followed %v, want %v", trace, want)
	}
	if !slices.Equal(s.again, []time.Duration{time.Second, 2 * time.Second}) || s.over != 1 {
		t.Errorf("waited %v, over %d times", s.again, s.over)
	}
	if more, err := f.One(t.Context(), control.Quick); more || err != nil {
		t.Errorf("nothing is left: %v %v", more, err)
	}
}

// TestShutdownIsNoTry: a step that is broken off by our own end is another node's
// at once, and none of its tries is spent.
func TestShutdownIsNoTry(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &shelf{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded, Tries: 2}}}
	f := &Followers{Outbox: s, Steps: []control.Step{{Name: "analysis", Follower: followFunc(func() error {
		cancel()
		return ctx.Err()
	})}}}
	if _, err := f.One(ctx, control.Quick); err == nil || len(s.events) != 1 || s.events[0].Tries != 2 || s.again[0] != 0 {
		t.Errorf("%v, %+v after %v", err, s.events, s.again)
	}
}

// TestSlowFollowersHoldNobodyUp: though the slow followers of many events hang, the
// quick ones of all are done, and the slow ones go on beside each other.
func TestSlowFollowersHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 100
		s := &shelf{}
		for i := range events {
			s.events = append(s.events, &control.Event{ID: int64(i), CallID: "c", Kind: control.CallEnded})
		}
		var told, judged atomic.Int64
		f := &Followers{Outbox: s, SlowWorkers: 10, Steps: []control.Step{
			{Name: "webhook", Follower: followFunc(func() error { told.Add(1); return nil })},
			{Name: "analysis", Line: control.Slow, Follower: followFunc(func() error {
				<-time.After(time.Minute)
				judged.Add(1)
				return nil
			})},
			{Name: "analyzed", Line: control.Slow, Follower: followFunc(func() error { return nil })},
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		over := make(chan struct{})
		go func() { f.Run(ctx); close(over) }()
		<-time.After(10 * time.Second)
		if n := told.Load(); n != events {
			t.Errorf("%d of %d events were told while the slow followers hang", n, events)
		}
		<-time.After(10*time.Minute + 10*time.Second)
		if n := judged.Load(); n != events {
			t.Errorf("%d of %d were judged by ten at a time in ten minutes", n, events)
		}
		cancel()
		<-over
	})
}

// TestStepsOfCallsNobodyAnswered: what follows a conversation does not follow
// where there was none, and such an event never waits in the slow line.
func TestStepsOfCallsNobodyAnswered(t *testing.T) {
	s := &shelf{events: []*control.Event{
		{ID: 1, CallID: "a", Kind: control.CallEnded, Status: control.Failed},
		{ID: 2, CallID: "b", Kind: control.CallEnded, Status: control.Ended},
		{ID: 3, CallID: "c", Kind: control.CallEnded, Status: control.Failed},
	}}
	var told, judged atomic.Int64
	f := &Followers{Outbox: s, Steps: []control.Step{
		{Name: "webhook", Follower: followFunc(func() error { told.Add(1); return nil })},
		{Name: "analysis", Line: control.Slow, Talked: true, Follower: followFunc(func() error { judged.Add(1); return nil })},
	}}
	if _, err := f.One(t.Context(), control.Quick); err != nil || told.Load() != 3 || s.over != 2 || len(s.events) != 1 || s.events[0].ID != 2 {
		t.Errorf("%d told, %d over, %d left: %v", told.Load(), s.over, len(s.events), err)
	}
	if _, err := f.One(t.Context(), control.Slow); err != nil || judged.Load() != 1 || s.over != 3 {
		t.Errorf("%d judged, %d over: %v", judged.Load(), s.over, err)
	}
}

// TestLongStepsHaveALeaseEach: what was followed is kept, and the lease begun
// anew, before a step that could outlast it.
func TestLongStepsHaveALeaseEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded}}}
		long := followFunc(func() error { <-time.After(time.Minute); return nil })
		f := &Followers{Outbox: s, Steps: []control.Step{{Name: "a", Follower: long}, {Name: "b", Follower: long}, {Name: "c", Follower: long}}}
		if _, err := f.One(t.Context(), control.Quick); err != nil || s.over != 1 {
			t.Errorf("%d over: %v", s.over, err)
		}
		if want := [][]string{{"a"}, {"a", "b"}}; !slices.EqualFunc(s.kept, want, slices.Equal) {
			t.Errorf("kept %v, want %v", s.kept, want)
		}
	})
}

// TestAwaySteps: of an event whose node may still come, only what can be followed
// anywhere is, and the event goes back as it was.
func TestAwaySteps(t *testing.T) {
	s := &shelf{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded, Away: true}}}
	var trace []string
	step := func(name string, anywhere bool, line control.Line) control.Step {
		return control.Step{Name: name, Anywhere: anywhere, Line: line, Follower: followFunc(func() error { trace = append(trace, name); return nil })}
	}
	f := &Followers{Outbox: s, Steps: []control.Step{
		step("recording", false, control.Quick), step("contact", true, control.Quick), step("webhook", false, control.Quick), step("analysis", false, control.Slow),
	}}
	if _, err := f.One(t.Context(), control.Quick); err != nil {
		t.Fatal(err)
	}
	e := s.events[0]
	if !slices.Equal(trace, []string{"contact"}) || !slices.Equal(e.Followed, trace) || s.over != 0 || e.Line != control.Quick {
		t.Errorf("followed %v, %v; over %d times, line %v", trace, e.Followed, s.over, e.Line)
	}
	e.Away = false // its node is there
	if _, err := f.One(t.Context(), control.Quick); err != nil {
		t.Fatal(err)
	}
	if want := []string{"contact", "recording", "webhook"}; !slices.Equal(trace, want) || e.Line != control.Slow {
		t.Errorf("followed %v, want %v", trace, want)
	}
}
