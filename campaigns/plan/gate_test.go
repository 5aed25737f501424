package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/campaigns/market"
)

func testTime() time.Time { return time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC) }

func TestGate(t *testing.T) {
	at := testTime()
	later := at.Add(time.Hour)
	open := Slot{Until: later}
	shut := Slot{Until: later, Reason: OutsideLaw, Rule: "47 CFR"}
	for _, c := range []struct {
		name string
		f    Facts
		want Verdict
	}{
		{"free", Facts{Running: true, Slot: open}, Verdict{Until: later}},
		{"free until its campaign ends", Facts{Running: true, Slot: open, Ends: at.Add(1), NotAfter: later}, Verdict{Until: at.Add(1)}},
		{"not running counts before a cap", Facts{Slot: shut, Hold: Hold{Cap: "daily", Until: later}}, Verdict{Decision: Wait, Reason: NotRunning}},
		{"its campaign ended", Facts{Running: true, Ends: at, Slot: open}, Verdict{Decision: Wait, Reason: NotRunning}},
		{
			"a cap counts before the law",
			Facts{Running: true, Slot: shut, Hold: Hold{Cap: "daily", Until: later}},
			Verdict{Decision: Wait, Reason: FrequencyCap, Until: later, Cap: "daily"},
		},
		{
			"a cap that ends too late",
			Facts{Running: true, Ends: later, Slot: open, Hold: Hold{Cap: "state_24h", Until: later, Rule: "Fla."}},
			Verdict{Decision: Capped, Cap: "state_24h", Rule: "Fla."},
		},
		{"a cap without end", Facts{Running: true, Slot: open, Hold: Hold{Cap: "daily"}}, Verdict{Decision: Capped, Cap: "daily"}},
		{"the law counts before a retry", Facts{Running: true, Slot: shut, RetryAt: later}, Verdict{Decision: Wait, Reason: OutsideLaw, Until: later, Rule: "47 CFR"}},
		{"retry", Facts{Running: true, Slot: open, RetryAt: later, NotBefore: later}, Verdict{Decision: Wait, Reason: RetryWait, Until: later}},
		{"its retry is due", Facts{Running: true, Slot: open, RetryAt: at}, Verdict{Until: later}},
		{"not before", Facts{Running: true, Slot: open, NotBefore: later, RouteDown: true}, Verdict{Decision: Wait, Reason: NotBefore, Until: later}},
		{"a stale screen", Facts{Running: true, Slot: open, ScreenStale: true, RouteDown: true}, Verdict{Decision: Wait, Reason: ScreenStale}},
		{"no route", Facts{Running: true, Slot: open, RouteDown: true, AgentDown: true}, Verdict{Decision: Wait, Reason: RouteUnavailable}},
		{"no provider", Facts{Running: true, Slot: open, AgentDown: true, Failing: true}, Verdict{Decision: Wait, Reason: ProviderUnavailable}},
		{"its calls break", Facts{Running: true, Slot: open, Failing: true}, Verdict{Decision: Wait, Reason: TooManyFailures}},
		{"its time is over", Facts{NotAfter: at}, Verdict{Decision: Missed}},
	} {
		if got := Gate(at, c.f); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestFindHold(t *testing.T) {
	at := testTime()
	ago := func(d ...time.Duration) (all []time.Time) {
		for _, x := range d {
			all = append(all, at.Add(-x))
		}
		return all
	}
	day := market.Cap{Kind: market.CapDaily, Most: 3, Within: 24 * time.Hour}
	week := market.Cap{Kind: market.CapRolling7d, Most: 7, Within: 7 * 24 * time.Hour, Rule: "12 CFR"}
	talked := market.Cap{Kind: market.CapPostConversation, Within: 7 * 24 * time.Hour}
	local := market.Cap{Kind: market.CapDaily, Most: 2, Within: 24 * time.Hour, CalendarDay: true}
	almaty := zone(t, "Asia/Almaty") // 21:00 at the contact
	for _, c := range []struct {
		name  string
		caps  []market.Cap
		h     History
		cap   string
		until time.Duration // time from now
	}{
		{"nothing", []market.Cap{day, week, talked}, History{}, "", 0},
		{"two of three", []market.Cap{day}, History{Dials: ago(5*time.Hour, time.Hour)}, "", 0},
		{"three of three", []market.Cap{day}, History{Dials: ago(23*time.Hour, 5*time.Hour, time.Hour)}, market.CapDaily, time.Hour},
		{"the oldest of four is out", []market.Cap{day}, History{Dials: ago(25*time.Hour, 23*time.Hour, 5*time.Hour)}, "", 0},
		{"a day to the instant", []market.Cap{day}, History{Dials: ago(24*time.Hour, 5*time.Hour, time.Hour)}, "", 0},
		{"four of three: two must leave", []market.Cap{day}, History{Dials: ago(23*time.Hour, 22*time.Hour, 5*time.Hour, time.Hour)}, market.CapDaily, 2 * time.Hour},
		{
			"the longer hold counts",
			[]market.Cap{day, week},
			History{Dials: ago(160*time.Hour, 100*time.Hour, 90*time.Hour, 80*time.Hour, 23*time.Hour, 5*time.Hour, time.Hour)},
			market.CapRolling7d, 8 * time.Hour,
		},
		{"after a conversation", []market.Cap{talked}, History{Talked: at.Add(-24 * time.Hour)}, market.CapPostConversation, 6 * 24 * time.Hour},
		{"long after one", []market.Cap{talked}, History{Talked: at.Add(-7 * 24 * time.Hour)}, "", 0},
		{"a calendar day", []market.Cap{local}, History{Dials: ago(20*time.Hour, 12*time.Hour)}, market.CapDaily, 3 * time.Hour},
		{"yesterday does not count", []market.Cap{local}, History{Dials: ago(22*time.Hour, 12*time.Hour)}, "", 0},
	} {
		got := FindHold(at, c.caps, c.h, []*time.Location{almaty})
		if got.Cap != c.cap || c.cap != "" && !got.Until.Equal(at.Add(c.until)) {
			t.Errorf("%s: %s until %v, want %s until %v", c.name, got.Cap, got.Until.Sub(at), c.cap, c.until)
		}
	}
	if got := FindHold(at, []market.Cap{{Kind: market.CapDaily}, day}, History{Dials: ago(3, 2, 1)}, nil); got.Cap != market.CapDaily || !got.Until.IsZero() {
		t.Errorf("a cap of 0: %+v", got)
	}
}

// TestFindHoldIsExact checks that a number is held exactly while one more dial would exceed the cap, and that Until
// is the first instant at which it would not.
func TestFindHoldIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := testTime()
		c := market.Cap{Kind: market.CapState, Most: rapid.IntRange(1, 4).Draw(t, "most"), Within: time.Duration(rapid.IntRange(1, 48).Draw(t, "within")) * time.Hour}
		var h History
		for _, m := range rapid.SliceOfN(rapid.IntRange(0, 72*60), 0, 12).Draw(t, "ago") {
			h.Dials = append(h.Dials, at.Add(-time.Duration(m)*time.Minute))
		}
		slices.SortFunc(h.Dials, time.Time.Compare)
		over := func(at time.Time) bool {
			n := 0
			for _, d := range h.Dials {
				if at.Sub(d) < c.Within {
					n++
				}
			}
			return n >= c.Most
		}
		got := FindHold(at, []market.Cap{c}, h, nil)
		if (got.Cap != "") != over(at) {
			t.Fatalf("held: %+v, over: %v", got, over(at))
		}
		if got.Cap != "" && (over(got.Until) || !over(got.Until.Add(-time.Minute))) {
			t.Fatalf("held until %v: over then %v, a minute before %v", got.Until, over(got.Until), over(got.Until.Add(-time.Minute)))
		}
	})
}

func TestCaps(t *testing.T) {
	us, kz := load(t, "us"), load(t, "kz")
	off, on, five := false, true, 5
	kinds := func(all []market.Cap) (s []string) {
		for _, c := range all {
			s = append(s, c.Kind+"/"+c.Source)
		}
		slices.Sort(s)
		return s
	}
	for _, c := range []struct {
		name  string
		p     *market.Package
		place market.Location
		class market.Classification
		o     Override
		want  []string
	}{
		{"the market's", us, market.Location{}, market.Marketing, Override{}, []string{"daily/market_default", "rolling_7d/market_default"}},
		{"an organization's", us, market.Location{}, market.Marketing, Override{Enabled: &on, Daily: &five}, []string{"daily/organization", "rolling_7d/market_default"}},
		{"off", us, market.Location{}, market.Marketing, Override{Enabled: &off, Daily: &five}, nil},
		{"the law stays", us, market.Location{States: []string{"FL"}}, market.Marketing, Override{Enabled: &off}, []string{"state_24h/law"}},
		{
			"debts", us,
			market.Location{},
			market.DebtCollection,
			Override{Rolling7d: &five},
			[]string{"daily/market_default", "post_conversation_7d/law", "rolling_7d/law", "rolling_7d/organization"},
		},
		{"Kazakhstan", kz, market.Location{}, market.DebtCollection, Override{Daily: &five}, []string{"daily/law", "daily/organization"}},
	} {
		all := Caps(c.p, c.place, c.class, c.o)
		if got := kinds(all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		for _, x := range all {
			if x.Kind == market.CapDaily && x.CalendarDay != (c.p == kz) {
				t.Errorf("%s: %+v", c.name, x)
			}
		}
	}
	if d := DialHistory(Caps(us, market.Location{}, market.Marketing, Override{})); d != 7*24*time.Hour {
		t.Errorf("dial history of %v", d)
	}
}

// TestStricterDefaultKeepsLaw checks that an organization that replaces or disables the default caps of its market keeps the
// caps of the law, even if a default cap of the same kind is as strict as the law or stricter.
func TestStricterDefaultKeepsLaw(t *testing.T) {
	off, nine := false, 9
	for _, most := range []string{"5", "7"} {
		for _, first := range []bool{true, false} {
			files := market.Files("us")
			row := "US,debt_collection,rolling_7d," + most + ",168h,attempts,market_default,,,\n"
			if first {
				header := "note\n"
				files["caps.csv"] = strings.Replace(files["caps.csv"], header, header+row, 1)
			} else {
				files["caps.csv"] += row
			}
			p, err := market.Read(files)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []Override{{Enabled: &off}, {Rolling7d: &nine}} {
				all := Caps(p, market.Location{}, market.DebtCollection, o)
				if !slices.ContainsFunc(all, func(c market.Cap) bool {
					return c.Kind == market.CapRolling7d && c.Source == market.FromLaw && c.Most == 7
				}) {
					t.Errorf("default of %s, first %v: %+v", most, first, all)
				}
			}
		}
	}
}

// TestPace checks that a campaign keeps its pace within one call, and evenly, even if each call leaves slightly late.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Pace{PerMinute: rapid.SampledFrom([]int{1, 2, 5, 10, 20, 30, 60, 100, 200}).Draw(t, "pace")}
		at := testTime()
		var calls []time.Time
		for range 400 {
			if !p.IsDue(at) {
				at = p.Earliest()
			}
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(p.every())/3).Draw(t, "late")))
			calls = append(calls, at)
			p = p.AfterCall(at)
		}
		whole := calls[len(calls)-1].Sub(calls[0])
		if want := time.Duration(len(calls)-1) * p.every(); whole < want-2*p.every() || whole > want+2*p.every() {
			t.Fatalf("%d calls in %v, want %v", len(calls), whole, want)
		}
		for i := 1; i < len(calls); i++ {
			if gap := calls[i].Sub(calls[i-1]); gap < p.every()/2 {
				t.Fatalf("two calls within %v at %d a minute", gap, p.PerMinute)
			}
		}
	})
	p := Pace{PerMinute: 200}.AfterCall(testTime())
	calls := 1
	for at, end := testTime(), testTime().Add(time.Minute); at.Before(end); at = at.Add(10 * time.Millisecond) {
		if held := at.Sub(testTime()); held > 20*time.Second && held < 20*time.Second+1900*time.Millisecond {
			continue // two seconds are lost
		}
		if p.IsDue(at) {
			p = p.AfterCall(at)
			calls++
		}
	}
	if calls != 200 {
		t.Errorf("%d calls in a minute of which two seconds were lost, want 200", calls)
	}
	p = Pace{PerMinute: 60}.AfterCall(testTime())
	p = p.AfterCall(testTime().Add(time.Hour))
	if want := testTime().Add(time.Hour + time.Second); !p.Next.Equal(want) {
		t.Errorf("after an idle hour the next call is at %v, want %v", p.Next, want)
	}
}

// TestSortTurns checks that campaigns share a route with few channels in proportion to their paces. Every campaign
// gets calls.
func TestSortTurns(t *testing.T) {
	turns := []Turn{
		{CampaignID: "a", Pace: Pace{PerMinute: 100}}, {CampaignID: "b", Pace: Pace{PerMinute: 20}}, {CampaignID: "c", Pace: Pace{PerMinute: 60}},
	}
	calls := map[string]int{}
	for at, end := testTime(), testTime().Add(time.Hour); at.Before(end); at = at.Add(2 * time.Second) { // 30 calls a minute for all campaigns
		order := SortTurns(at, turns)
		if len(order) == 0 {
			continue
		}
		for i := range turns {
			if turns[i].CampaignID == order[0].CampaignID {
				turns[i].Pace = turns[i].Pace.AfterCall(at)
				calls[turns[i].CampaignID]++
			}
		}
	}
	for id, pace := range map[string]int{"a": 100, "b": 20, "c": 60} {
		if want := 1800 * pace / 180; calls[id] < want*8/10 || calls[id] > want*16/10 {
			t.Errorf("%s made %d calls, its share is %d (%v)", id, calls[id], want, calls)
		}
	}
}

// TestWiden checks that a contact with two possible locations is called only if both allow it, and that the key does
// not depend on the order of merging.
func TestWiden(t *testing.T) {
	place := func(states, zones string) market.Location {
		return market.Location{States: strings.Fields(states), Zones: strings.Fields(zones)}
	}
	for _, c := range []struct {
		key   string
		place market.Location
		want  string
	}{
		{"NY;America/New_York;", place("NY", "America/New_York"), "NY;America/New_York;"},
		{"NY;America/New_York;Asia/Tokyo", place("CT", "America/New_York"), "CT,NY;America/New_York;Asia/Tokyo"},
		{";Asia/Almaty;", place("", "Asia/Aqtobe Asia/Almaty"), ";Asia/Almaty,Asia/Aqtobe;"},
		{"FL;America/Chicago,America/New_York;", place("FL", "America/Chicago"), "FL;America/Chicago,America/New_York;"},
		{";;", place("", ""), ";;"},
	} {
		g, err := ParseGroup(c.key)
		if err != nil {
			t.Fatal(err)
		}
		if g = g.Widen(c.place); g.Key() != c.want || g.Location.States == nil || g.Location.Zones == nil {
			t.Errorf("%s: %q, want %q", c.key, g.Key(), c.want)
		}
	}
}
