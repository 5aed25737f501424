package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/parley-voice/parley/bench/result"
)

// Limits of an overload.
const (
	overloadLimit = 10 * time.Minute // longest time until every call was placed
	maxGap        = 40               // ms between two packets of a call, at p99
)

// RunOverload requests times as many calls as the server has room for, all within the ramp. The server must limit the
// calls that it runs, so that their audio stays punctual, and place the others later. Each call lasts o.Hold.
func RunOverload(ctx context.Context, o Options, times int, f *result.File) (err error) {
	if times < 1 || o.Hold < 5*time.Second || o.Ramp < time.Second {
		return fmt.Errorf("overload %d, hold %v, ramp %v: want at least 1, 5s and 1s", times, o.Hold, o.Ramp)
	}
	b := &bench{Options: o}
	stop, err := b.open(ctx, "PARLEY_LIMIT_LOAD=true", fmt.Sprintf("PARLEY_DIAL_QUEUE_DEPTH=%d", most))
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	var ready struct{ Room int }
	if err = b.server.Request(ctx, http.MethodGet, "/readyz", nil, &ready); err != nil {
		return err
	}
	p := plan{calls: min(most, times*ready.Room), ramp: o.Ramp, hold: o.Hold, queued: true}
	fmt.Fprintf(b.Out, "room for %d calls; %d calls requested within %v\n", ready.Room, p.calls, p.ramp)
	over, end := context.WithTimeout(ctx, overloadLimit)
	defer end()
	s := &step{bench: b, plan: p, began: time.Now(), over: over, calls: map[string]*placedCall{}}
	b.current.Store(s)
	for slot := range p.calls {
		s.ordering.Go(func() { s.slot(over, slot) })
	}
	held, most := s.watch(over)
	s.ordering.Wait()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.talking.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.reportOverload(f, ready.Room, most, held)
	return f.Table(b.Out)
}

// watch waits until each call ended. It returns for how many seconds each reason held calls, and the most calls that
// were answered at the same time.
func (s *step) watch(ctx context.Context) (held map[string]int, busiest int) {
	held = map[string]int{}
	bar := s.Bar("calls ended")
	for until(ctx, time.Now().Add(time.Second)) == nil {
		var ready struct {
			Held string `json:"held"`
		}
		if s.server.Request(ctx, http.MethodGet, "/readyz", nil, &ready) == nil && ready.Held != "" {
			held[ready.Held]++
		}
		s.mu.Lock()
		ended, running := 0, 0
		for _, c := range s.all {
			switch {
			case c.refused || !c.record.Ended.IsZero():
				ended++
			case !c.answered.IsZero():
				running++
			}
		}
		s.mu.Unlock()
		busiest = max(busiest, running)
		if bar(ended, s.plan.calls); ended == s.plan.calls {
			break
		}
	}
	return held, busiest
}

// reportOverload adds the counts and the gaps between the packets of all calls.
func (s *step) reportOverload(f *result.File, room, busiest int, held map[string]int) {
	var gaps, wait []float64
	answered, refused, repeated := 0, 0, 0
	for _, c := range s.all {
		if c.refused {
			refused++
		}
		if c.answered.IsZero() {
			continue
		}
		answered++
		repeated += c.times - 1
		wait = append(wait, c.answered.Sub(c.due).Seconds())
		at := c.record.Heard.At
		for i := 1; i < len(at); i++ {
			if c.record.Heard.Real[i] && c.record.Heard.Real[i-1] {
				gaps = append(gaps, millis(at[i].Sub(at[i-1])))
			}
		}
	}
	count := func(name, label string, n int, bounds ...result.Bound) {
		m := result.Figure(name, label, "", result.Exactly(float64(n)), bounds...)
		m.More = true
		f.Add(m)
	}
	count("room", "calls for which the idle server has capacity", room)
	count("requested", "calls requested", len(s.all))
	count("answered", "calls answered", answered, result.Least("value", float64(len(s.all)-refused)))
	count("refused", "requests rejected", refused)
	count("repeated", "INVITEs beyond the first of a call", repeated, result.Most("value", 0))
	count("busiest", "most conversations at once", busiest)
	for _, h := range []string{"max_calls", "cpu", "late_media"} {
		count("held_"+h, "seconds without room: "+h, held[h])
	}
	f.Add(result.Spread("gap_ms", "time between two packets of a call", "ms", gaps, result.Most("p99", maxGap)))
	slices.Sort(wait)
	f.Add(result.Spread("wait_s", "request → answered", "s", wait))
	f.CheckGenerator("clock", s.clock.take(), maxLateness)
}
