package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/sip/siptest"
)

type progress struct {
	Status      string         `json:"status"`
	ByState     map[string]int `json:"by_state"`
	Ready       int            `json:"ready"`
	HeldReasons map[string]int `json:"held_reasons"`
	Suppressed  map[string]int `json:"suppressed_reasons"`
	Counters    struct {
		Attempts int `json:"attempts"`
		Busy     int `json:"busy"`
	} `json:"counters"`
}

func applySpec(t testing.TB, d *db.DB, text string) {
	t.Helper()
	spec, err := apply.Parse(strings.NewReader(text))
	if err == nil {
		err = apply.Apply(t.Context(), d.Pool, spec, apply.Options{AllowInsecure: true})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// allowAnyHour allows the demo's organization to call Kazakhstan at any hour.
func (srv *server) allowAnyHour(t testing.TB) {
	t.Helper()
	applySpec(t, srv.db, `organizations:
- name: demo
  timezone: Asia/Almaty
  market: kz
  calling_window: {days: [0, 1, 2, 3, 4, 5, 6], start: "00:00", end: "24:00"}
  trunks:
  - name: demo
    subgroups: [{name: default, allowed_destinations: ["1", "7"], agents: [demo], concurrent_calls: 20, calls_per_minute: 6000}]
`)
}

func campaign(t testing.TB, api *demo.Client, more map[string]any, numbers ...string) (id string) {
	t.Helper()
	var rows []map[string]any
	for _, n := range numbers {
		rows = append(rows, map[string]any{"phone": n})
	}
	order := map[string]any{
		"name": t.Name(), "agent_id": "demo", "calls_per_minute": 200, "planned_calls": rows, "attestation": map[string]any{"confirmed": true},
	}
	maps.Copy(order, more)
	var c struct {
		CampaignID string           `json:"campaign_id"`
		Status     string           `json:"status"`
		Blockers   []map[string]any `json:"blockers"`
	}
	post(t, api, "/v1/campaigns", order, &c)
	if c.Status != "running" {
		t.Fatalf("the campaign is %s: %v", c.Status, c.Blockers)
	}
	return c.CampaignID
}

func readProgress(t testing.TB, api *demo.Client, id string) (p progress) {
	t.Helper()
	get(t, api, "/v1/campaigns/"+id+"/progress", &p)
	return p
}

// inviteCounter counts the INVITEs that a carrier receives, by number.
type inviteCounter struct {
	mu sync.Mutex
	of map[string]int
	n  int
}

func (c *inviteCounter) refuse(i siptest.Invite) siptest.Script {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[i.To]++
	c.n++
	return siptest.Script{Status: 486}
}

// accept returns an Answer that counts each INVITE and accepts the call. The callee hangs up after a while.
func (c *inviteCounter) accept(after time.Duration) func(siptest.Invite) siptest.Script {
	return func(i siptest.Invite) siptest.Script {
		c.refuse(i)
		return siptest.Script{Status: http.StatusOK, Talk: listenFor(after)}
	}
}

func (c *inviteCounter) numbers() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.of)
}

func (c *inviteCounter) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// TestCampaign calls all contacts of a campaign: one number answers, one is busy twice, one does not exist.
func TestCampaign(t *testing.T) {
	t.Parallel()
	var a inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: func(i siptest.Invite) siptest.Script {
		s := a.refuse(i)
		switch {
		case strings.HasSuffix(i.To, "1"):
			return siptest.Script{Status: 200, Talk: listenFor(time.Second)}
		case strings.HasSuffix(i.To, "3"):
			s.Status = 404
		}
		return s
	}})
	srv, api := startServer(t, c.Addr().String())
	srv.allowAnyHour(t)
	id := campaign(t, api, map[string]any{"retry_config": map[string]any{"attempts": 2, "interval_s": 60}}, "+77012345671", "+77012345672", "+77012345673")
	var p progress
	eventually(t, "all contacts were called", func() bool {
		p = readProgress(t, api, id)
		return p.ByState["done"] == 1 && p.ByState["exhausted"] == 1 && p.HeldReasons["retry_wait"] == 1
	})
	if p.Counters.Attempts != 3 || p.Counters.Busy != 1 || p.Status != "running" {
		t.Errorf("%+v", p)
	}
	if got := fmt.Sprint(a.numbers()); got != "map[77012345671:1 77012345672:1 77012345673:1]" {
		t.Errorf("the carrier received %s", got)
	}
}

func many(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("+7701234%04d", i))
	}
	return all
}

// TestCampaignPause checks that a pause, a withdrawal and a suppression stop the calls to their contacts within one
// second.
func TestCampaignPause(t *testing.T) {
	t.Parallel()
	var a inviteCounter
	srv, api := startServer(t, carrier(t, &siptest.Carrier{Answer: a.refuse}).Addr().String())
	srv.allowAnyHour(t)
	id := campaign(t, api, nil, many(60)...)
	eventually(t, "calls are placed", func() bool { return len(a.numbers()) >= 3 })
	post(t, api, "/v1/campaigns/"+id+"/pause", nil, new(any))
	time.Sleep(time.Second)
	was := a.numbers()
	before := len(was)
	left := slices.DeleteFunc(many(60), func(number string) bool { return was[number[1:]] > 0 }) // the order of contacts is random
	withdrawn, listed := left[0], left[1]
	post(t, api, "/v1/contacts/withdraw", map[string]any{"phones": []string{withdrawn}}, new(any))
	srv.applyFile(t, fmt.Sprintf(`organizations: [{name: demo, suppression: [%q]}]`, listed))
	time.Sleep(time.Second)
	if after := len(a.numbers()); after != before {
		t.Errorf("%d more calls after the pause", after-before)
	}
	post(t, api, "/v1/campaigns/"+id+"/resume", nil, new(any))
	var p progress
	eventuallyWithin(t, 40*time.Second, "the campaign is completed", func() bool {
		p = readProgress(t, api, id)
		return p.Status == "completed"
	})
	got := a.numbers()
	if len(got) != 58 || got[withdrawn[1:]]+got[listed[1:]] != 0 || p.ByState["exhausted"] != 58 || p.ByState["suppressed"] != 2 {
		t.Errorf("%d numbers were called, the withdrawn one %d times, the suppressed one %d times; %+v", len(got), got[withdrawn[1:]], got[listed[1:]], p)
	}
	for number, n := range got {
		if n != 1 {
			t.Errorf("%s was called %d times", number, n)
		}
	}
}

// TestCampaignHolds checks that a number at its frequency cap is held, even if another campaign called it. It also
// checks that no number is called outside working hours.
func TestCampaignHolds(t *testing.T) {
	t.Parallel()
	var a inviteCounter
	srv, api := startServer(t, carrier(t, &siptest.Carrier{Answer: a.refuse}).Addr().String())
	srv.allowAnyHour(t)
	srv.applyFile(t, "organizations: [{name: demo, frequency_caps: {enabled: true, daily: 2, rolling_7d: 7}}]")
	for range 2 {
		waitEnded(t, api, requestCall(t, api, "+77012340000"))
	}
	capped := campaign(t, api, nil, "+77012340000", "+77012340001")
	zone, err := time.LoadLocation("Asia/Almaty")
	if err != nil {
		t.Fatal(err)
	}
	later := (int(time.Now().In(zone).Weekday()) + 6 + 3) % 7 // 0 is Monday; the day in three days, so neither now nor after midnight
	closed := campaign(t, api, map[string]any{"working_hours": []map[string]any{{"days": []int{later}, "start": "00:00", "end": "23:00"}}}, "+77012340002")
	var p, q progress
	eventually(t, "one contact is held, one was called", func() bool {
		p, q = progress{}, progress{}
		for id, to := range map[string]*progress{capped: &p, closed: &q} {
			get(t, api, "/v1/campaigns/"+id+"/progress", to)
		}
		return p.HeldReasons["frequency_cap"] == 1 && p.ByState["exhausted"] == 1
	})
	if q.HeldReasons["outside_working_hours"] != 1 || q.Counters.Attempts != 0 {
		t.Errorf("outside working hours: %+v", q)
	}
	if got := a.numbers(); got["77012340000"] != 2 || got["77012340001"] != 1 || got["77012340002"] != 0 {
		t.Errorf("the carrier received %v", got)
	}
}

// TestSoakPace checks that a campaign starts the requested number of calls in ten minutes, within one percent, and
// evenly from the first minute on.
func TestSoakPace(t *testing.T) {
	soakOnly(t)
	var mu sync.Mutex
	var left []time.Time
	srv, api := startServer(t, carrier(t, &siptest.Carrier{
		OnInvite: func(i siptest.Invite) {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, i.At)
		},
		Answer: func(siptest.Invite) siptest.Script { return siptest.Script{Status: 486} },
	}).Addr().String())
	srv.allowAnyHour(t)
	campaign(t, api, nil, many(2200)...)
	const lasts, perMinute = 10 * time.Minute, 200
	eventually(t, "the first call leaves", func() bool { mu.Lock(); defer mu.Unlock(); return len(left) > 0 })
	<-time.After(lasts + time.Second)
	mu.Lock()
	defer mu.Unlock()
	minutes := make([]int, lasts/time.Minute)
	busiest, gap := 0, time.Duration(0)
	for i, at := range left {
		if m := at.Sub(left[0]) / time.Minute; int(m) < len(minutes) {
			minutes[m]++
		}
		within := 0
		for _, later := range left[i:] {
			if later.Sub(at) < time.Second {
				within++
			}
		}
		busiest = max(busiest, within)
		if i > 0 {
			gap = max(gap, at.Sub(left[i-1]))
		}
	}
	all := 0
	for _, n := range minutes {
		all += n
	}
	t.Logf("%d calls in %v, by minute %v; in the busiest second %d, the longest gap %v", all, lasts, minutes, busiest, gap)
	if want := perMinute * int(lasts/time.Minute); all < want*99/100 || all > want*101/100 {
		t.Errorf("%d calls, want %d within 1 %%", all, want)
	}
	if most := 2 * perMinute / 60; busiest > most {
		t.Errorf("%d calls in one second, want at most %d", busiest, most)
	}
}
