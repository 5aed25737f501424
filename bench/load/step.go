package load

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// A placedCall is a requested call.
type placedCall struct {
	n        int
	id       string // ID at the server; "" if the server rejected the request
	refused  bool
	due      time.Time
	answered time.Time
	times    int // number of INVITEs
	lines    []callee.Line
	record   callee.Record
}

// A step keeps a number of calls active.
type step struct {
	*bench
	plan
	began time.Time
	over  context.Context //nolint:containedctx // ends the calls of the step, which run on goroutines of the carrier

	ordering, talking sync.WaitGroup

	mu     sync.Mutex
	closed bool
	calls  map[string]*placedCall // calls by the last digits of the dialed number
	all    []*placedCall
	late   []float64 // lateness of each call request, ms
	failed error     // error of one call request
}

// A usage is the CPU time of the processes since their start.
type usage struct {
	at                 time.Time
	server, fakes, own machine.CPU
	busy               time.Duration
}

func (b *bench) usage() usage {
	return usage{time.Now(), machine.CPUTime(b.server.PID), machine.CPUTime(b.fakes), machine.CPUTime(os.Getpid()), machine.TotalCPUTime()}
}

// step runs and measures one step.
func (b *bench) step(ctx context.Context, p plan, within func(context.Context) error) (*stepResult, error) {
	over, end := context.WithCancel(ctx)
	defer end()
	s := &step{bench: b, plan: p, began: time.Now(), over: over, calls: map[string]*placedCall{}}
	b.current.Store(s)
	defer b.current.Store(nil)
	stop := s.progress(ctx)
	for slot := range p.calls {
		s.ordering.Go(func() { s.slot(over, slot) })
	}
	m := &stepResult{plan: p, from: s.began.Add(p.from), to: s.began.Add(p.to)}
	err := until(ctx, m.from)
	before, paused := b.usage(), b.pauses(ctx)
	if err == nil && within != nil {
		err = within(ctx)
	}
	if err == nil {
		err = until(ctx, m.to)
	}
	after, rss := b.usage(), machine.RSS(b.server.PID)
	m.gc = b.pauses(ctx).since(paused)
	end()
	s.ordering.Wait()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.talking.Wait()
	stop()
	if err != nil {
		return nil, err
	}
	m.setUsage(before, after, float64(rss-b.idle)/float64(p.calls))
	s.gather(ctx, m)
	return m, nil
}

// until waits until at.
func until(ctx context.Context, at time.Time) error {
	machine.Sleep(ctx, time.Until(at))
	return ctx.Err()
}

// progress draws the progress of the step until stop.
func (s *step) progress(ctx context.Context) (stop func()) {
	bar, all := s.Bar(fmt.Sprintf("s of %d calls", s.plan.calls)), int(s.to.Seconds())
	ctx, cancel := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	drawing.Go(func() {
		for second := range all {
			if until(ctx, s.began.Add(time.Duration(second+1)*time.Second)) != nil {
				break
			}
			bar(second+1, all+1)
		}
	})
	return func() {
		cancel()
		drawing.Wait()
		bar(all+1, all+1)
	}
}

// slot requests the calls of one slot, each when it is due.
func (s *step) slot(ctx context.Context, slot int) {
	for _, due := range s.dues(slot) {
		at := s.began.Add(due)
		if until(ctx, at) != nil {
			return
		}
		s.mu.Lock()
		n := s.next
		s.next++
		c := &placedCall{n: n, due: at, lines: s.scripts[n%len(s.scripts)]}
		s.calls[last4(number(n))] = c
		s.all = append(s.all, c)
		s.late = append(s.late, millis(time.Since(at)))
		s.mu.Unlock()
		s.ordering.Go(func() { s.order(ctx, c) })
	}
}

// order requests a call.
func (s *step) order(ctx context.Context, c *placedCall) {
	var reply struct {
		CallID string `json:"call_id"`
	}
	err := s.server.Request(ctx, http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "bench", "to_number": number(c.n)}, &reply)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.id = reply.CallID; err != nil && ctx.Err() == nil {
		s.failed, c.refused = err, true
	}
}

// answer lets a callee of the current step answer a call.
func (b *bench) answer(in siptest.Invite) siptest.Script {
	s := b.current.Load()
	if s == nil {
		return siptest.Script{Status: http.StatusServiceUnavailable}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[last4(in.To)]
	if c != nil {
		c.times++
	}
	if c == nil || s.closed || s.over.Err() != nil {
		return siptest.Script{Status: http.StatusServiceUnavailable}
	}
	return siptest.Script{Status: http.StatusOK, Talk: func(ctx context.Context, leg media.Leg) { s.talk(ctx, leg, c) }}
}

// talk runs a callee until its call or the step ends.
func (s *step) talk(ctx context.Context, leg media.Leg, c *placedCall) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.talking.Add(1)
	defer s.talking.Done()
	c.answered = time.Now()
	until := c.due.Add(s.hold - gap)
	if s.queued {
		until = c.answered.Add(s.hold)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer context.AfterFunc(s.over, cancel)()
	r := callee.Perform(ctx, leg, callee.Script{Lines: c.lines})
	s.mu.Lock()
	defer s.mu.Unlock()
	c.record = r
}

// gather analyzes the audio that the callees received.
func (s *step) gather(ctx context.Context, m *stepResult) {
	m.orders, m.failed, m.late = len(s.all), s.failed, s.late
	for _, c := range s.all {
		switch {
		case c.refused:
			m.refused++
			continue
		case c.answered.IsZero():
			if c.due.Before(m.to.Add(-tooLong)) {
				m.unanswered++
			}
			continue
		}
		m.setup = append(m.setup, millis(c.answered.Sub(c.due)))
		o := observe(c.record, c.lines, m.from, m.to)
		m.due, m.came, m.lateCame, m.dead = m.due+o.due, m.came+o.came, m.lateCame+o.late, m.dead+o.dead
		m.jitter = append(m.jitter, o.jitter...)
		for _, t := range o.turns {
			m.own, m.ear, m.wire = append(m.own, t.own), append(m.ear, t.ear), append(m.wire, t.wire)
			m.turns = append(m.turns, heardTurn{t, c})
		}
	}
	slices.SortStableFunc(m.turns, func(a, b heardTurn) int { return int(1000 * (b.own - a.own)) })
	m.packets, m.lost = s.qualities(ctx)
}

// sampled is the number of calls whose quality is read from the server.
const sampled = 100

// qualities returns how many packets the server received and lost in the sampled calls.
func (s *step) qualities(ctx context.Context) (packets, lost int) {
	for _, c := range s.all[:min(sampled, len(s.all))] {
		if c.id == "" || c.answered.IsZero() {
			continue
		}
		var reply struct {
			Quality *struct {
				Received struct{ Packets, Lost int }
			}
		}
		for range 20 { // the call may not be stored yet
			if s.server.Request(ctx, http.MethodGet, "/v1/calls/"+c.id, nil, &reply) != nil || reply.Quality != nil {
				break
			}
			if until(ctx, time.Now().Add(100*time.Millisecond)) != nil {
				return packets, lost
			}
		}
		if q := reply.Quality; q != nil {
			packets, lost = packets+q.Received.Packets, lost+q.Received.Lost
		}
	}
	return packets, lost
}

// A heardTurn is a turn of a call.
type heardTurn struct {
	turn
	*placedCall
}

// row returns the turn for the result file. full adds the server's phases and the audio.
func (h heardTurn) row(ctx context.Context, b *bench, calls int, full bool) (result.Turn, error) {
	r := result.Turn{
		Call: h.id, Number: h.number, Calls: calls,
		Figures: map[string]float64{"ear_ms": h.ear, "wire_ms": h.wire, "ear_overhead_ms": h.own},
	}
	if !full {
		return r, nil
	}
	left, right := h.record.Between(h.lines, h.from.Add(-time.Second), h.to)
	wav, err := result.WAV(left, right, rate)
	if err != nil {
		return r, err
	}
	r.Sound = wav
	var turns []struct {
		Turn    int            `json:"turn"`
		Metrics map[string]any `json:"metrics"`
	}
	if err = b.server.Request(ctx, http.MethodGet, "/v1/calls/"+h.id+"/turns", nil, &turns); err != nil {
		return r, fmt.Errorf("turns: %w", err)
	}
	for _, t := range turns {
		if t.Turn != h.number+1 { // the greeting is turn 0
			continue
		}
		r.Phases = result.Phases(func(name string) float64 {
			ms, _ := t.Metrics[name].(float64) // 0 if the server has none
			return ms
		})
		if ms, ok := t.Metrics["turn_ms"].(float64); ok {
			r.Figures["turn_ms"] = ms
		}
	}
	return r, nil
}
