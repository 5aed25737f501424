package circuitbreaker

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func TestStep(t *testing.T) {
	r, at := DefaultRules(), noon()
	closed := State{Since: at.Add(-time.Hour)}
	open := State{Open: true, Why: Failures, Since: at.Add(-time.Minute), Wait: 20 * time.Second, ProbeAt: at}
	probing := open
	probing.Probing = true
	dead := State{Open: true, Why: Unreachable, Since: at.Add(-time.Minute), Wait: 10 * time.Second, ProbeAt: at}
	deadProbing := dead
	deadProbing.Probing = true
	for _, c := range []struct {
		name string
		s    State
		x    Observation
		want State
	}{
		{"nothing is known", State{}, Observation{}, State{}},
		{"all is well", closed, Observation{Good: 40}, closed},
		{"half fail", closed, Observation{Good: 20, Bad: 20}, closed},
		{"most fail", closed, Observation{Good: 19, Bad: 21}, State{Open: true, Why: Failures, Since: at, Wait: 10 * time.Second, ProbeAt: at.Add(10 * time.Second)}},
		{"too few to tell", closed, Observation{Bad: 9}, closed},
		{"just enough", closed, Observation{Bad: 10}, State{Open: true, Why: Failures, Since: at, Wait: 10 * time.Second, ProbeAt: at.Add(10 * time.Second)}},
		{"no proxy is up", closed, Observation{Good: 40, Unreachable: true}, State{Open: true, Why: Unreachable, Since: at, Wait: 10 * time.Second, ProbeAt: at}},
		{"open, and nobody tries", open, Observation{Good: 40}, open},
		{"a probe is on", probing, Observation{Probe: On}, probing},
		{"a probe gets through", probing, Observation{Probe: Passed, Bad: 40}, State{Since: at}},
		{
			"a probe fails", probing,
			Observation{Probe: Failed},
			State{Open: true, Why: Failures, Since: open.Since, Wait: 40 * time.Second, ProbeAt: at.Add(20 * time.Second)},
		},
		{"a probe never left", probing, Observation{Probe: Gone}, State{Open: true, Why: Failures, Since: open.Since, Wait: 20 * time.Second, ProbeAt: at}},
		{"a proxy is back", dead, Observation{}, State{Since: at}},
		{"no proxy is back", dead, Observation{Unreachable: true}, dead},
		{"a proxy is back while a probe is on", deadProbing, Observation{Probe: On}, deadProbing},
		{"a proxy is back, and is no good", deadProbing, Observation{Probe: Failed}, State{Open: true, Why: Failures, Since: dead.Since, Wait: 20 * time.Second, ProbeAt: at.Add(10 * time.Second)}},
		{"none is back, and a call gets through", deadProbing, Observation{Unreachable: true, Probe: Passed}, State{Since: at}},
	} {
		if got := r.Step(at, c.s, c.x); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	never := r
	never.Share = 100
	if got := never.Step(at, closed, Observation{Bad: 40}); got.Open {
		t.Errorf("a share of 100 was exceeded: %+v", got)
	}
}

// TestBackOff checks that the time between failing probes grows as the rules say, and that the first successful probe
// closes the breaker.
func TestBackOff(t *testing.T) {
	r, at := DefaultRules(), noon()
	s := r.Step(at, State{}, Observation{Bad: 10})
	var probes []time.Duration
	for range 3600 {
		at = at.Add(time.Second)
		x := Observation{}
		if s.Probing {
			x.Probe = Failed
		}
		s = r.Step(at, s, x)
		if !s.Probing && !at.Before(s.ProbeAt) {
			s.Probing = true
			probes = append(probes, at.Sub(noon()))
		}
	}
	if len(probes) < 13 || len(probes) > 17 {
		t.Errorf("%d probes in an hour: %v", len(probes), probes)
	}
	for i := 1; i < len(probes); i++ {
		if gap := probes[i] - probes[i-1]; gap < r.First || gap > r.Longest+2*time.Second || i > 1 && gap < probes[i-1]-probes[i-2] {
			t.Errorf("probes at %v", probes)
		}
	}
	s.Probing = true
	if s = r.Step(at, s, Observation{Probe: Passed}); s.Open {
		t.Errorf("%+v after a probe got through", s)
	}
}

// TestNever checks properties for random observations: a closed breaker runs no probe, an open breaker waits within
// the bounds of its rules, and it closes only for a reason.
func TestNever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := DefaultRules()
		r.Share = rapid.IntRange(1, 100).Draw(t, "share")
		r.MinCalls = rapid.IntRange(1, 40).Draw(t, "least")
		var s State
		at := noon()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
			x := Observation{Good: rapid.IntRange(0, 20).Draw(t, "good"), Bad: rapid.IntRange(0, 20).Draw(t, "bad"), Unreachable: rapid.Bool().Draw(t, "unreachable")}
			if s.Probing {
				x.Probe = Probe(rapid.IntRange(int(On), int(Gone)).Draw(t, "probe"))
			}
			was := s
			s = r.Step(at, s, x)
			switch {
			case !s.Open && s != (State{Since: s.Since}):
				t.Fatalf("closed, and %+v", s)
			case s.Open && (s.Wait < r.First || s.Wait > r.Longest || s.ProbeAt.After(at.Add(r.Longest)) || s.Why == ""):
				t.Fatalf("open, and %+v at %v", s, at)
			case was.Open && !s.Open && x.Probe != Passed && (was.Why != Unreachable || x.Unreachable):
				t.Fatalf("%+v closed for %+v", was, x)
			case !was.Open && s.Open && !x.Unreachable && (x.Good+x.Bad < r.MinCalls || 100*x.Bad <= r.Share*(x.Good+x.Bad)):
				t.Fatalf("opened for %+v", x)
			}
			if s.Open && !s.Probing && !at.Before(s.ProbeAt) {
				s.Probing = true
			}
		}
	})
}

func TestFault(t *testing.T) {
	for _, c := range []struct {
		reason         string
		status         int
		rang           bool
		fault, reached bool
	}{
		{"route_error", 500, false, true, false},
		{"route_error", 0, false, true, false},
		{"route_error", 503, true, false, true},
		{"congestion", 503, false, true, false},
		{"auth_failed", 401, false, true, false},
		{"blocked", 403, false, true, false},
		{"redirect_refused", 302, false, true, false},
		{"no_answer", 408, false, true, false},
		{"no_answer", 0, false, true, false},
		{"no_answer", 0, true, false, true},
		{"no_answer", 480, false, false, true},
		{"no_answer", 487, false, false, true},
		{"busy", 486, false, false, true},
		{"declined", 603, false, false, true},
		{"invalid_number", 404, false, false, true},
		{"cancelled", 487, false, false, false},
		{"internal_error", 0, false, false, false},
		{"unknown_after_restart", 0, false, false, false},
	} {
		if got := IsRouteFault(c.reason, c.status, c.rang); got != c.fault {
			t.Errorf("%s %d, rang %v: a fault of the route: %v", c.reason, c.status, c.rang, got)
		}
		if got := IsReached(c.reason, c.status, c.rang); got != c.reached {
			t.Errorf("%s %d, rang %v: it got through: %v", c.reason, c.status, c.rang, got)
		}
	}
}

// TestOfCampaigns checks that a campaign is paused after three failed calls if they are more than 3% of its last 100
// calls.
func TestOfCampaigns(t *testing.T) {
	r := CampaignRules()
	at := time.Unix(1795222586, 0)
	for _, c := range []struct {
		good, bad int
		open      bool
	}{{0, 0, false}, {0, 2, false}, {0, 3, true}, {96, 3, true}, {97, 3, false}, {96, 4, true}, {100, 0, false}} {
		if got := r.Step(at, State{}, Observation{Good: c.good, Bad: c.bad}); got.Open != c.open || c.open && !got.ProbeAt.Equal(at.Add(10*time.Second)) {
			t.Errorf("%d of %d broke: %+v", c.bad, c.good+c.bad, got)
		}
	}
	s := r.Step(at, State{}, Observation{Bad: 3})
	for _, c := range []struct {
		probe Probe
		want  State
	}{
		{On, State{Open: true, Why: Failures, Since: at, Wait: 10 * time.Second, ProbeAt: s.ProbeAt, Probing: true}},
		{Passed, State{Since: at}},
		{Failed, State{Open: true, Why: Failures, Since: at, Wait: 20 * time.Second, ProbeAt: at.Add(10 * time.Second)}},
		{Gone, State{Open: true, Why: Failures, Since: at, Wait: 10 * time.Second, ProbeAt: at}},
	} {
		tried := s
		tried.Probing = true
		if got := r.Step(at, tried, Observation{Good: 97, Bad: 3, Probe: c.probe}); got != c.want {
			t.Errorf("probe %d: %+v, want %+v", c.probe, got, c.want)
		}
	}
}
