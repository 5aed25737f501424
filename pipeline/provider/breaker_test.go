package provider

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A step requests a provider or reports the outcome of a request.
type step struct {
	at    time.Duration
	ask   string // name of the request; its outcome uses the same name
	none  bool   // the breaker must refuse the request
	tell  string
	end   Outcome
	alone time.Duration
}

// fails returns n successive failures.
func fails(n int) (all []step) {
	for range n {
		all = append(all, step{ask: "x"}, step{tell: "x", end: Failed})
	}
	return all
}

func TestBreaker(t *testing.T) {
	down := slices.Clip(fails(maxFailures))
	probe := slices.Clip(append(down, step{at: firstPause, ask: "probe"}))
	for name, steps := range map[string][]step{
		"a few failures":       append(fails(maxFailures-1), step{ask: "x"}, step{tell: "x"}, step{ask: "x"}, step{tell: "x", end: Failed}, step{ask: "y"}),
		"too many":             append(down, step{at: firstPause - 1, ask: "y", none: true}, step{at: firstPause, ask: "y"}),
		"one probe":            append(probe, step{at: firstPause, ask: "y", none: true}),
		"the probe works":      append(probe, step{at: firstPause, tell: "probe"}, step{at: firstPause, ask: "y"}),
		"the probe fails":      append(probe, step{at: firstPause, tell: "probe", end: Failed}, step{at: 3*firstPause - 1, ask: "y", none: true}, step{at: 3 * firstPause, ask: "y"}),
		"the probe is dropped": append(probe, step{at: firstPause, tell: "probe", end: Neutral}, step{at: firstPause, ask: "y"}),
		"the probe is slow":    append(probe, step{at: time.Hour, ask: "y", none: true}),
		"the probe goes on": append(probe, step{at: firstPause, tell: "probe", end: Responding}, step{at: firstPause, ask: "y"},
			step{at: time.Hour, tell: "probe", end: Failed}, step{at: time.Hour, ask: "z"}),
		"the pause is bounded": append(probe, step{at: firstPause, tell: "probe", end: Failed},
			step{at: time.Minute, ask: "p"}, step{at: time.Minute, tell: "p", end: Failed},
			step{at: time.Minute + longPause - 1, ask: "y", none: true}, step{at: time.Minute + longPause, ask: "y"}),
		"alive, and fails again": append(append(append(probe, step{at: firstPause, tell: "probe", end: Responding}), fails(maxFailures)...),
			step{at: longPause - 1, ask: "y", none: true}, step{at: longPause, ask: "y"}),
		"a requested pause": {{ask: "x"}, {tell: "x", end: Failed, alone: 30 * time.Second}, {at: 29 * time.Second, ask: "y", none: true}, {at: 30 * time.Second, ask: "y"}},
		"a requested pause while open": append([]step{{ask: "old"}}, append(down, step{tell: "old", end: Failed, alone: 30 * time.Second},
			step{at: 29 * time.Second, ask: "y", none: true}, step{at: 30 * time.Second, ask: "y"})...),
		"an earlier request fails": append([]step{{ask: "a"}, {ask: "b"}}, append(down, step{tell: "a", end: Failed}, step{tell: "b", end: Failed},
			step{at: firstPause, ask: "y"})...),
		"an earlier request is no probe": append([]step{{ask: "a"}, {ask: "b"}, {ask: "c"}}, append(probe,
			step{at: firstPause, tell: "a", end: Failed}, step{at: firstPause, tell: "b", end: Neutral}, step{at: firstPause, tell: "c", end: Succeeded},
			step{at: firstPause, ask: "y", none: true})...),
		"a caller gives up": slices.Concat(fails(maxFailures-1), []step{{ask: "x"}, {tell: "x", end: Neutral}, {ask: "x"}}),
	} {
		var b Breaker
		zero := time.Unix(1000, 0)
		leaves := map[string]*Token{}
		for i, s := range steps {
			if s.tell != "" {
				b.Done(leaves[s.tell], s.end, zero.Add(s.at), s.alone)
				continue
			}
			if leaves[s.ask] = b.Allow(zero.Add(s.at)); (leaves[s.ask] == nil) != s.none {
				t.Errorf("%s, step %d: let %v", name, i, leaves[s.ask] != nil)
				break
			}
		}
	}
}

// TestBreakerNeverShuts checks that a working provider always becomes available again
// after the longest pause and one probe.
func TestBreakerNeverShuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Breaker
		now := time.Unix(1000, 0)
		var asked []*Token
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
			if n := len(asked); n > 0 && rapid.Bool().Draw(t, "tell") {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				e := Outcome(rapid.IntRange(int(Succeeded), int(Responding)).Draw(t, "ending"))
				if b.Done(asked[i], e, now, 0); e != Responding {
					asked = append(asked[:i], asked[i+1:]...)
				}
			} else if token := b.Allow(now); token != nil {
				asked = append(asked, token)
			}
		}
		for _, token := range asked {
			b.Done(token, Neutral, now, 0)
		}
		now = now.Add(longPause)
		probe := b.Allow(now)
		if probe == nil {
			t.Fatal("the probe is rejected, want it admitted")
		}
		b.Done(probe, Responding, now, 0)
		for range 2 {
			if b.Allow(now) == nil {
				t.Fatal("a request is rejected after the probe, want it admitted")
			}
		}
	})
}
