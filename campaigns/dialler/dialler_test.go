package dialler

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control"
)

// script is a book that answers by campaign.
type script struct {
	now     time.Time
	running []Running
	answers map[string]Answer
	fails   map[string]error
	stuck   map[string]bool // does not answer
	asked   []string
}

func (s *script) Running(context.Context) ([]Running, time.Time, error) { return s.running, s.now, nil }

func (s *script) Take(ctx context.Context, a Ask) (Answer, error) {
	s.asked = append(s.asked, a.ID)
	if s.stuck[a.ID] {
		began := time.Now()
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		<-short.Done()
		s.now = s.now.Add(time.Since(began))
		return Answer{}, short.Err()
	}
	return s.answers[a.ID], s.fails[a.ID]
}

// noon is one in New York, on a Friday.
func noon() time.Time { return time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC) }

func setUp(t *testing.T, ids ...string) (*script, *Dialler) {
	t.Helper()
	us, err := market.Load("us")
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{now: noon(), answers: map[string]Answer{}, fails: map[string]error{}}
	var all [7][]market.Hours
	for d := range all {
		all[d] = []market.Hours{{From: 0, To: 24 * 60}}
	}
	for i, id := range ids {
		s.running = append(s.running, Running{
			ID: id, Version: "1", RouteID: "rte_" + id, Groups: []string{"NY;America/New_York;"},
			Pace:     plan.Pace{PerMinute: 60, Last: noon().Add(time.Duration(i-60) * time.Second)}, // the first waits for longest
			Campaign: &plan.Campaign{ID: id, Running: true, Class: market.Servicing, Market: us, Zone: zone, WindowZone: zone, Hours: all},
		})
	}
	return s, &Dialler{Book: s}
}

func TestTurns(t *testing.T) {
	s, d := setUp(t, "a", "b", "c")
	claim := &control.Claim{}
	s.answers["c"] = Answer{Claim: claim}
	if got, _, err := d.Take(t.Context()); got != claim || err != nil || !slices.Equal(s.asked, []string{"a", "b", "c"}) {
		t.Errorf("asked %v: %v %v", s.asked, got, err)
	}
	// Those who had nobody sleep; c is asked again.
	s.asked = nil
	if got, _, _ := d.Take(t.Context()); got != claim || !slices.Equal(s.asked, []string{"c"}) {
		t.Errorf("then asked %v", s.asked)
	}
	d.Wake("b")
	s.asked = nil
	if _, _, _ = d.Take(t.Context()); !slices.Equal(s.asked, []string{"b", "c"}) {
		t.Errorf("after b was woken, asked %v", s.asked)
	}
	s.now, s.asked = s.now.Add(Patience), nil
	if _, _, _ = d.Take(t.Context()); !slices.Equal(s.asked, []string{"a", "b", "c"}) {
		t.Errorf("after a while, asked %v", s.asked)
	}
}

// TestTrouble: a campaign that cannot be asked does not keep the others from
// calling, and is left alone for a while.
func TestTrouble(t *testing.T) {
	s, d := setUp(t, "a", "b")
	s.fails["a"] = errors.New("broken")
	s.answers["b"] = Answer{Claim: &control.Claim{}}
	if got, _, err := d.Take(t.Context()); got == nil || err == nil {
		t.Errorf("%v %v", got, err)
	}
	if got, _, err := d.Take(t.Context()); got == nil || err != nil {
		t.Errorf("again: %v %v", got, err)
	}
}

// TestStuck: a campaign that cannot be asked in time costs the others little of it,
// however long that lasts.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := setUp(t, "a", "b")
		s.stuck = map[string]bool{"a": true}
		s.answers["b"] = Answer{Claim: &control.Claim{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		calls := 0
		for began := time.Now(); time.Since(began) < 30*time.Second; calls++ {
			if got, _, _ := d.Take(ctx); got == nil {
				t.Fatal("b is not called")
			}
			<-time.After(100 * time.Millisecond)
			s.now = s.now.Add(100 * time.Millisecond)
		}
		if calls < 200 { // of 300
			t.Errorf("%d calls of b in 30 s", calls)
		}
	})
}

// A crowd is a dial queue that is never empty.
type crowd struct{ control.Queue }

func (crowd) Claim(_ context.Context, _ control.Place, _ time.Duration, most int) ([]*control.Claim, error) {
	return make([]*control.Claim, most), nil
}

// TestQueue: campaigns get a call now and then however many single calls wait,
// also where a node has room for one at a time.
func TestQueue(t *testing.T) {
	for _, most := range []int{1, 2, 32} {
		s, d := setUp(t, "a")
		s.answers["a"] = Answer{Claim: &control.Claim{}}
		q := &Queue{Queue: crowd{}, Dialler: d}
		campaigns := 0
		for range 4 {
			claims, err := q.Claim(t.Context(), control.Place{}, time.Second, most)
			if err != nil || len(claims) != most {
				t.Fatalf("%d claims, %v", len(claims), err)
			}
			for _, c := range claims {
				if c != nil {
					campaigns++
				}
			}
		}
		if campaigns < 2 || campaigns > 4 {
			t.Errorf("%d of %d calls are of campaigns", campaigns, 4*most)
		}
	}
}

// TestRoute: where a route has no line, its other campaigns are not asked.
func TestRoute(t *testing.T) {
	s, d := setUp(t, "a", "b", "c")
	s.running[1].RouteID = s.running[0].RouteID
	s.answers["a"] = Answer{Busy: true}
	if _, _, _ = d.Take(t.Context()); !slices.Equal(s.asked, []string{"a", "c"}) {
		t.Errorf("asked %v", s.asked)
	}
}

// TestRest: it is told when it is worth asking again.
func TestRest(t *testing.T) {
	s, d := setUp(t, "a")
	s.running[0].Pace.Next = noon().Add(300 * time.Millisecond)
	if _, rest, _ := d.Take(t.Context()); rest != 300*time.Millisecond || len(s.asked) != 0 {
		t.Errorf("its pace: %v, asked %v", rest, s.asked)
	}
	s.running[0].Pace.Next = time.Time{}
	s.answers["a"] = Answer{Next: noon().Add(700 * time.Millisecond)}
	if _, rest, _ := d.Take(t.Context()); rest != 700*time.Millisecond {
		t.Errorf("its next contact: %v", rest)
	}
	s, d = setUp(t, "a", "b") // a has more who are to be asked about at once
	s.answers["a"], s.answers["b"] = Answer{Next: noon().Add(-time.Millisecond)}, Answer{Next: noon().Add(time.Second)}
	for range 3 {
		_, rest, _ := d.Take(t.Context())
		if rest != breath {
			t.Errorf("more at once: %v", rest)
		}
		s.now = s.now.Add(rest)
	}
	if !slices.Equal(s.asked, []string{"a", "b", "a", "a"}) {
		t.Errorf("asked %v", s.asked)
	}
	s, d = setUp(t, "a")
	s.now = time.Date(2026, 11, 21, 1, 59, 59, 5e8, time.UTC) // 20:59:59.5 in New York
	s.answers["a"] = Answer{}
	if _, rest, _ := d.Take(t.Context()); rest != 500*time.Millisecond || len(s.asked) != 1 {
		t.Errorf("its window's end: %v", rest)
	}
	s.now = s.now.Add(time.Second)
	if _, rest, _ := d.Take(t.Context()); rest != Patience || len(s.asked) != 1 {
		t.Errorf("outside its window: %v, asked %v", rest, s.asked)
	}
	s.running[0].Version = "2" // it changed: what was known of it does not hold
	s.running[0].Campaign.Class = market.Marketing
	s.now = noon().Add(24 * time.Hour)
	if _, _, _ = d.Take(t.Context()); len(s.asked) != 2 {
		t.Errorf("asked %v", s.asked)
	}
}
