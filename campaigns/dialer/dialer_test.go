package dialer

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

// scriptedStore is a Store with one result per campaign.
type scriptedStore struct {
	now     time.Time
	running []Campaign
	answers map[string]TakeResult
	fails   map[string]error
	hangs   map[string]bool // the store does not answer
	asked   []string
}

func (s *scriptedStore) Running(context.Context) ([]Campaign, time.Time, error) {
	return s.running, s.now, nil
}

func (s *scriptedStore) Take(ctx context.Context, a TakeRequest) (TakeResult, error) {
	s.asked = append(s.asked, a.ID)
	if s.hangs[a.ID] {
		began := time.Now()
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		<-short.Done()
		s.now = s.now.Add(time.Since(began))
		return TakeResult{}, short.Err()
	}
	return s.answers[a.ID], s.fails[a.ID]
}

// noon is noon in New York, on a Friday.
func noon() time.Time { return time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC) }

func newTestDialer(t *testing.T, ids ...string) (*scriptedStore, *Dialer) {
	t.Helper()
	us, err := market.Load("us")
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	s := &scriptedStore{now: noon(), answers: map[string]TakeResult{}, fails: map[string]error{}}
	var all [7][]market.Hours
	for d := range all {
		all[d] = []market.Hours{{From: 0, To: 24 * 60}}
	}
	for i, id := range ids {
		s.running = append(s.running, Campaign{
			ID: id, Version: "1", RouteID: "rte_" + id, Groups: []string{"NY;America/New_York;"},
			Pace: plan.Pace{PerMinute: 60, Last: noon().Add(time.Duration(i-60) * time.Second)}, // the first campaign has waited longest
			Plan: &plan.Campaign{ID: id, Running: true, Class: market.Servicing, Market: us, Zone: zone, WindowZone: zone, Hours: all},
		})
	}
	return s, &Dialer{Store: s}
}

func TestTakeOrder(t *testing.T) {
	s, d := newTestDialer(t, "a", "b", "c")
	claim := &control.Claim{}
	s.answers["c"] = TakeResult{Claim: claim}
	if got, _, err := d.Take(t.Context()); got != claim || err != nil || !slices.Equal(s.asked, []string{"a", "b", "c"}) {
		t.Errorf("asked %v: %v %v", s.asked, got, err)
	}
	// Campaigns without a contact are paused; c is asked again.
	s.asked = nil
	if got, _, _ := d.Take(t.Context()); got != claim || !slices.Equal(s.asked, []string{"c"}) {
		t.Errorf("the second time asked %v", s.asked)
	}
	d.Wake("b")
	s.asked = nil
	if _, _, _ = d.Take(t.Context()); !slices.Equal(s.asked, []string{"b", "c"}) {
		t.Errorf("after Wake of b asked %v", s.asked)
	}
	s.now, s.asked = s.now.Add(DefaultMaxIdle), nil
	if _, _, _ = d.Take(t.Context()); !slices.Equal(s.asked, []string{"a", "b", "c"}) {
		t.Errorf("after the pause asked %v", s.asked)
	}
}

// TestFailingCampaignIsPaused checks that a campaign whose request fails does not delay the others, and is paused.
func TestFailingCampaignIsPaused(t *testing.T) {
	s, d := newTestDialer(t, "a", "b")
	s.fails["a"] = errors.New("broken")
	s.answers["b"] = TakeResult{Claim: &control.Claim{}}
	if got, _, err := d.Take(t.Context()); got == nil || err == nil {
		t.Errorf("%v %v", got, err)
	}
	if got, _, err := d.Take(t.Context()); got == nil || err != nil {
		t.Errorf("again: %v %v", got, err)
	}
}

// TestTimeoutDelaysOthersLittle checks that a campaign whose request times out delays the others little.
func TestTimeoutDelaysOthersLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newTestDialer(t, "a", "b")
		s.hangs = map[string]bool{"a": true}
		s.answers["b"] = TakeResult{Claim: &control.Claim{}}
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
		if calls < 200 { // of 300 calls
			t.Errorf("%d calls of b in 30 s", calls)
		}
	})
}

// A fullQueue is a dial queue that is never empty.
type fullQueue struct{ control.Queue }

func (fullQueue) Claim(_ context.Context, _ control.NodeID, _ time.Duration, most int) ([]*control.Claim, error) {
	return make([]*control.Claim, most), nil
}

// TestQueueAlternates checks that campaigns get calls however many single calls wait, even if a node has one
// channel at a time.
func TestQueueAlternates(t *testing.T) {
	for _, most := range []int{1, 2, 32} {
		s, d := newTestDialer(t, "a")
		s.answers["a"] = TakeResult{Claim: &control.Claim{}}
		q := &Queue{Queue: fullQueue{}, Dialer: d}
		campaigns := 0
		for range 4 {
			claims, err := q.Claim(t.Context(), control.NodeID{}, time.Second, most)
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
			t.Errorf("%d of %d calls are from campaigns", campaigns, 4*most)
		}
	}
}

// TestBusyRouteIsSkipped checks that if a route has no channel, its other campaigns are not asked.
func TestBusyRouteIsSkipped(t *testing.T) {
	s, d := newTestDialer(t, "a", "b", "c")
	s.running[1].RouteID = s.running[0].RouteID
	s.answers["a"] = TakeResult{Busy: true}
	if _, _, _ = d.Take(t.Context()); !slices.Equal(s.asked, []string{"a", "c"}) {
		t.Errorf("asked %v", s.asked)
	}
}

// TestTakeReturnsWait checks that Take returns when to ask again.
func TestTakeReturnsWait(t *testing.T) {
	s, d := newTestDialer(t, "a")
	s.running[0].Pace.Next = noon().Add(300 * time.Millisecond)
	if _, rest, _ := d.Take(t.Context()); rest != 300*time.Millisecond || len(s.asked) != 0 {
		t.Errorf("until the pace allows: %v, asked %v", rest, s.asked)
	}
	s.running[0].Pace.Next = time.Time{}
	s.answers["a"] = TakeResult{Next: noon().Add(700 * time.Millisecond)}
	if _, rest, _ := d.Take(t.Context()); rest != 700*time.Millisecond {
		t.Errorf("until the next contact: %v", rest)
	}
	s, d = newTestDialer(t, "a", "b") // a has more contacts that are due
	s.answers["a"], s.answers["b"] = TakeResult{Next: noon().Add(-time.Millisecond)}, TakeResult{Next: noon().Add(time.Second)}
	for range 3 {
		_, rest, _ := d.Take(t.Context())
		if rest != minPause {
			t.Errorf("with more due contacts: %v", rest)
		}
		s.now = s.now.Add(rest)
	}
	if !slices.Equal(s.asked, []string{"a", "b", "a", "a"}) {
		t.Errorf("asked %v", s.asked)
	}
	s, d = newTestDialer(t, "a")
	s.now = time.Date(2026, 11, 21, 1, 59, 59, 5e8, time.UTC) // 20:59:59.5 in New York
	s.answers["a"] = TakeResult{}
	if _, rest, _ := d.Take(t.Context()); rest != 500*time.Millisecond || len(s.asked) != 1 {
		t.Errorf("until the end of the calling window: %v", rest)
	}
	s.now = s.now.Add(time.Second)
	if _, rest, _ := d.Take(t.Context()); rest != DefaultMaxIdle || len(s.asked) != 1 {
		t.Errorf("outside the calling window: %v, asked %v", rest, s.asked)
	}
	s.running[0].Version = "2" // a new version drops the cached state
	s.running[0].Plan.Class = market.Marketing
	s.now = noon().Add(24 * time.Hour)
	if _, _, _ = d.Take(t.Context()); len(s.asked) != 2 {
		t.Errorf("asked %v", s.asked)
	}
}
