package outbox

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

// memoryOutbox implements Outbox in memory.
type memoryOutbox struct {
	mu        sync.Mutex
	events    []*control.Event
	again     []time.Duration
	saved     [][]string // finished steps at each call of SaveProgress
	completed int
}

func (s *memoryOutbox) Take(_ context.Context, lane control.Lane, _ string, _ time.Duration, most int) ([]*control.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken, left []*control.Event
	for _, e := range s.events {
		if e.Lane == lane && len(taken) < most {
			taken = append(taken, e)
		} else {
			left = append(left, e)
		}
	}
	s.events = left
	return taken, nil
}

func (s *memoryOutbox) MoveToSlowLane(_ context.Context, e *control.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Lane = control.SlowLane
	s.events = append(s.events, e)
	return nil
}

func (s *memoryOutbox) SaveProgress(_ context.Context, e *control.Event, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = append(s.saved, slices.Clone(e.Done))
	return nil
}

func (s *memoryOutbox) Complete(_ context.Context, all []*control.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.completed += len(all)
	return nil
}

func (s *memoryOutbox) Retry(_ context.Context, e *control.Event, wait time.Duration) error {
	s.again = append(s.again, wait)
	s.events = append(s.events, e)
	return nil
}

type stepFunc func() error

func (f stepFunc) HandleEvent(context.Context, control.Event) error { return f() }

func TestStepsRunInOrderAndRetryAlone(t *testing.T) {
	s := &memoryOutbox{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded}}}
	var trace []string
	fail := 2
	f := &Dispatcher{Outbox: s, Steps: []control.Step{
		{Name: "recording", Handler: stepFunc(func() error { trace = append(trace, "recording"); return nil })},
		{Name: "webhook", Handler: stepFunc(func() error {
			trace = append(trace, "webhook")
			if fail--; fail == 0 {
				panic("once") //nolint:forbidigo // under test
			} else if fail > 0 {
				return errors.New("not yet")
			}
			return nil
		})},
	}}
	for range 3 {
		if more, err := f.One(t.Context(), control.FastLane); !more || (err != nil) != (fail >= 0) {
			t.Errorf("%v %v", more, err)
		}
	}
	if want := []string{"recording", "webhook", "webhook", "webhook"}; !slices.Equal(trace, want) {
		t.Errorf("ran %v, want %v", trace, want)
	}
	if !slices.Equal(s.again, []time.Duration{time.Second, 2 * time.Second}) || s.completed != 1 {
		t.Errorf("waited %v, completed %d times", s.again, s.completed)
	}
	if more, err := f.One(t.Context(), control.FastLane); more || err != nil {
		t.Errorf("without events: %v %v", more, err)
	}
}

// TestShutdownDoesNotCountAsTry checks that a step that a shutdown interrupted does not count as a try. Another node
// may run it at once.
func TestShutdownDoesNotCountAsTry(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &memoryOutbox{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded, Tries: 2}}}
	f := &Dispatcher{Outbox: s, Steps: []control.Step{{Name: "analysis", Handler: stepFunc(func() error {
		cancel()
		return ctx.Err()
	})}}}
	if _, err := f.One(ctx, control.FastLane); err == nil || len(s.events) != 1 || s.events[0].Tries != 2 || s.again[0] != 0 {
		t.Errorf("%v, %+v after %v", err, s.events, s.again)
	}
}

// TestSlowStepsDoNotDelayOthers checks that the quick steps of all events are done while the slow steps of many
// events hang, and that slow steps run in parallel.
func TestSlowStepsDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 100
		s := &memoryOutbox{}
		for i := range events {
			s.events = append(s.events, &control.Event{ID: int64(i), CallID: "c", Kind: control.CallEnded})
		}
		var notified, analyzed atomic.Int64
		f := &Dispatcher{Outbox: s, SlowWorkers: 10, Steps: []control.Step{
			{Name: "webhook", Handler: stepFunc(func() error { notified.Add(1); return nil })},
			{Name: "analysis", Lane: control.SlowLane, Handler: stepFunc(func() error {
				<-time.After(time.Minute)
				analyzed.Add(1)
				return nil
			})},
			{Name: "analyzed", Lane: control.SlowLane, Handler: stepFunc(func() error { return nil })},
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		over := make(chan struct{})
		go func() { f.Run(ctx); close(over) }()
		<-time.After(10 * time.Second)
		if n := notified.Load(); n != events {
			t.Errorf("%d of %d events were notified while the slow steps hang", n, events)
		}
		<-time.After(10*time.Minute + 10*time.Second)
		if n := analyzed.Load(); n != events {
			t.Errorf("%d of %d events were analyzed in ten minutes by ten workers", n, events)
		}
		cancel()
		<-over
	})
}

// TestStepsOfUnansweredCalls checks that calls without a conversation skip the steps with ConversationOnly, and that
// their events never enter the slow lane.
func TestStepsOfUnansweredCalls(t *testing.T) {
	s := &memoryOutbox{events: []*control.Event{
		{ID: 1, CallID: "a", Kind: control.CallEnded, Status: control.Failed},
		{ID: 2, CallID: "b", Kind: control.CallEnded, Status: control.Ended},
		{ID: 3, CallID: "c", Kind: control.CallEnded, Status: control.Failed},
	}}
	var notified, analyzed atomic.Int64
	f := &Dispatcher{Outbox: s, Steps: []control.Step{
		{Name: "webhook", Handler: stepFunc(func() error { notified.Add(1); return nil })},
		{Name: "analysis", Lane: control.SlowLane, ConversationOnly: true, Handler: stepFunc(func() error { analyzed.Add(1); return nil })},
	}}
	if _, err := f.One(t.Context(), control.FastLane); err != nil || notified.Load() != 3 || s.completed != 2 || len(s.events) != 1 || s.events[0].ID != 2 {
		t.Errorf("%d notified, %d completed, %d left: %v", notified.Load(), s.completed, len(s.events), err)
	}
	if _, err := f.One(t.Context(), control.SlowLane); err != nil || analyzed.Load() != 1 || s.completed != 3 {
		t.Errorf("%d analyzed, %d completed: %v", analyzed.Load(), s.completed, err)
	}
}

// TestLongStepsRenewLease checks that progress is saved and the lease is renewed before a step that could take longer
// than the lease.
func TestLongStepsRenewLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryOutbox{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded}}}
		long := stepFunc(func() error { <-time.After(time.Minute); return nil })
		f := &Dispatcher{Outbox: s, Steps: []control.Step{{Name: "a", Handler: long}, {Name: "b", Handler: long}, {Name: "c", Handler: long}}}
		if _, err := f.One(t.Context(), control.FastLane); err != nil || s.completed != 1 {
			t.Errorf("%d completed: %v", s.completed, err)
		}
		if want := [][]string{{"a"}, {"a", "b"}}; !slices.EqualFunc(s.saved, want, slices.Equal) {
			t.Errorf("saved %v, want %v", s.saved, want)
		}
	})
}

// TestRemoteSteps checks that another node runs only the AnyNode steps while the event's own node may come back. The
// event then stays in the outbox.
func TestRemoteSteps(t *testing.T) {
	s := &memoryOutbox{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded, Remote: true}}}
	var trace []string
	step := func(name string, anywhere bool, lane control.Lane) control.Step {
		return control.Step{Name: name, AnyNode: anywhere, Lane: lane, Handler: stepFunc(func() error { trace = append(trace, name); return nil })}
	}
	f := &Dispatcher{Outbox: s, Steps: []control.Step{
		step("recording", false, control.FastLane), step("contact", true, control.FastLane), step("webhook", false, control.FastLane), step("analysis", false, control.SlowLane),
	}}
	if _, err := f.One(t.Context(), control.FastLane); err != nil {
		t.Fatal(err)
	}
	e := s.events[0]
	if !slices.Equal(trace, []string{"contact"}) || !slices.Equal(e.Done, trace) || s.completed != 0 || e.Lane != control.FastLane {
		t.Errorf("ran %v, %v; completed %d times, lane %v", trace, e.Done, s.completed, e.Lane)
	}
	e.Remote = false // the event's own node is back
	if _, err := f.One(t.Context(), control.FastLane); err != nil {
		t.Fatal(err)
	}
	if want := []string{"contact", "recording", "webhook"}; !slices.Equal(trace, want) || e.Lane != control.SlowLane {
		t.Errorf("ran %v, want %v", trace, want)
	}
}

// TestStepsAfterLoss checks the step for events of lost nodes. If it succeeds, any node runs the other steps. If it needs
// the node, the event waits for that node, and the step does not run again.
func TestStepsAfterLoss(t *testing.T) {
	broken := errors.New("broken")
	for name, row := range map[string]struct {
		remote, lost bool
		result       error
		ran          []string
		done         bool // the step is not repeated
		released     bool
	}{
		"own node":              {false, false, nil, []string{"recording"}, false, false},
		"another node, alive":   {true, false, nil, nil, false, false},
		"another node, lost":    {true, true, nil, []string{"takeover"}, true, true},
		"its files are needed":  {true, true, control.ErrNeedsNode, []string{"takeover"}, true, false},
		"the takeover fails":    {true, true, broken, []string{"takeover"}, false, false},
		"nobody has it anymore": {false, true, nil, []string{"recording"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &memoryOutbox{events: []*control.Event{{ID: 1, CallID: "c", Kind: control.CallEnded, Remote: row.remote, Lost: row.lost}}}
			e := s.events[0]
			var ran []string
			step := func(name string, result error) control.EventHandler {
				return stepFunc(func() error { ran = append(ran, name); return result })
			}
			f := &Dispatcher{Outbox: s, Steps: []control.Step{
				{Name: "takeover", Handler: step("takeover", row.result), AfterLoss: true}, {Name: "recording", Handler: step("recording", nil)},
			}}
			if _, err := f.One(t.Context(), control.FastLane); !errors.Is(err, broken) && err != nil || errors.Is(row.result, broken) != (err != nil) {
				t.Error(err)
			}
			if !slices.Equal(ran, row.ran) || slices.Contains(e.Done, "takeover") != row.done || e.Released != row.released {
				t.Errorf("ran %v, done %v, released %v", ran, e.Done, e.Released)
			}
		})
	}
}
