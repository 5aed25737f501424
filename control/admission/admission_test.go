package admission_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// twoOrganizations is a configuration file. The organization acme lends a trunk, and globex borrows it.
const twoOrganizations = `
organizations:
- name: acme
  agents: [{name: sales, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks:
  - name: main
    proxy: "sip:127.0.0.1:5080"
    caller_numbers: ["+12025550100", "+12025550101", "+12025550102"]
    rates: {"1": 0.6, "": 60}
    subgroups: [{name: default, allowed_destinations: ["1"], agents: [sales], concurrent_calls: 1000, calls_per_minute: 1000}]
  grants: [{trunk: main, to: globex, caller_numbers: ["+12025550101", "+12025550102"], concurrent_calls: 3, calls_per_minute: 5}]
- name: globex
  timezone: Asia/Tokyo
  agents:
  - {name: helpdesk, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  - {name: second, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  granted_trunks:
  - trunk: main
    of: acme
    subgroups:
    - {name: default, dial_prefix: "7", allowed_destinations: ["1"], agents: [helpdesk], concurrent_calls: 100, calls_per_minute: 100}
    - {name: other, allowed_destinations: ["1"], caller_numbers: ["+12025550100", "+12025550102"], agents: [second], concurrent_calls: 2, calls_per_minute: 100}
`

// fixture is a test database with a Controller.
type fixture struct {
	t          *testing.T
	db         *db.DB
	controller *admission.Controller
	org        map[string]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	d := dbtest.New(t)
	w := &fixture{t: t, db: d, controller: &admission.Controller{Pool: d.Pool, Store: &store.Store{Pool: d.Pool}}, org: map[string]string{}}
	w.apply(twoOrganizations)
	for _, name := range []string{"acme", "globex"} {
		id, err := apikeys.FindOrganization(t.Context(), d.Pool, name)
		if err != nil {
			t.Fatal(err)
		}
		w.org[name] = id
	}
	return w
}

func (w *fixture) apply(text string) {
	w.t.Helper()
	s, err := apply.Parse(strings.NewReader(text))
	if err == nil {
		err = apply.Apply(w.t.Context(), w.db.Pool, s, apply.Options{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) exec(sql string, args ...any) {
	w.t.Helper()
	dbtest.Exec(w.t, w.db, sql, args...)
}

// text runs a query and returns its only value.
func (w *fixture) text(sql string) string {
	w.t.Helper()
	return dbtest.Value[string](w.t, w.db, sql)
}

// order places a call. It returns the code of the refusal, or "" if the order was accepted.
func (w *fixture) order(org string, o admission.Order) (control.Call, control.Code) {
	w.t.Helper()
	if o.To == "" {
		o.To = "+12025550123"
	}
	c, err := w.controller.Place(w.t.Context(), w.org[org], o, nil)
	if err == nil {
		return c, ""
	}
	if _, ok := errors.AsType[*control.Error](err); !ok {
		w.t.Fatal(err)
	}
	return c, control.CodeOf(err)
}

// placeMany places n orders and counts them by refusal code; "" counts accepted orders.
func (w *fixture) placeMany(org, agent string, n int) map[control.Code]int {
	w.t.Helper()
	got := map[control.Code]int{}
	for range n {
		_, code := w.order(org, admission.Order{Agent: agent})
		got[code]++
	}
	return got
}

func (w *fixture) endAll() {
	w.t.Helper()
	w.exec("UPDATE calls SET status = 'failed', ended_at = now() WHERE status = 'queued'")
}

// ageCalls moves the times of all calls into the past.
func (w *fixture) ageCalls(d time.Duration) {
	w.t.Helper()
	w.exec("UPDATE calls SET created_at = created_at - $1::interval, answered_at = answered_at - $1::interval, ended_at = ended_at - $1::interval", d)
}

func TestOrderOnGrantedTrunk(t *testing.T) {
	w := newFixture(t)
	c, code := w.order("globex", admission.Order{Agent: "helpdesk"})
	if code != "" || c.From != "+12025550101" || c.DialNumber != "712025550123" || c.TrunkID != w.text("SELECT id FROM trunks") {
		t.Fatalf("%+v %s", c, code)
	}
	lenders := w.text("SELECT id FROM subgroups WHERE grant_id IS NULL")
	for _, row := range []struct {
		name string
		o    admission.Order
		want control.Code
	}{
		{"the trunk by its id", admission.Order{Agent: "helpdesk", TrunkID: c.TrunkID}, ""},
		{"the lender's subgroup", admission.Order{Agent: "helpdesk", RouteID: lenders}, control.CodeSubgroupNotFound},
		{"a number of the pool", admission.Order{Agent: "helpdesk", From: "12025550102"}, ""},
		{"a number of the trunk that was not lent", admission.Order{Agent: "helpdesk", From: "+12025550100"}, control.CodeCallerNumberGrant},
		{"a number of nobody", admission.Order{Agent: "helpdesk", From: "+12025550199"}, control.CodeCallerNumberGrant},
		{"none, of a subgroup with one that was lent", admission.Order{Agent: "second"}, ""},
		{"lent, and not the subgroup's", admission.Order{Agent: "second", From: "+12025550101"}, control.CodeCallerNumberDenied},
		{"the subgroup's, and not lent", admission.Order{Agent: "second", From: "+12025550100"}, control.CodeCallerNumberGrant},
	} {
		w.exec("DELETE FROM calls")
		shown, code := w.order("globex", row.o)
		if code != row.want {
			t.Errorf("%s: %s, want %s", row.name, code, row.want)
		}
		if row.o.Agent == "second" && row.o.From == "" && shown.From != "+12025550102" {
			t.Errorf("shows %s", shown.From)
		}
	}
	// A revoked grant is deleted.
	w.apply(`organizations: [{name: acme, grants: []}]`)
	if _, code := w.order("globex", admission.Order{Agent: "helpdesk", TrunkID: c.TrunkID}); code != control.CodeTrunkNotFound {
		t.Errorf("a trunk whose grant was revoked: %s", code)
	}
	if _, code := w.order("globex", admission.Order{Agent: "helpdesk", RouteID: c.RouteID}); code != control.CodeSubgroupNotFound {
		t.Errorf("a subgroup of the revoked trunk: %s", code)
	}
	if _, code := w.order("acme", admission.Order{Agent: "sales"}); code != "" {
		t.Errorf("the lender: %s", code)
	}
}

// TestQueuedCallAfterNumberRevoked checks that a queued call is not dialed after its borrowed caller number was
// revoked.
func TestQueuedCallAfterNumberRevoked(t *testing.T) {
	for left, want := range map[string]control.Reason{
		"+12025550102": control.ReasonCallerNumber, "12025550101": "", "+12025550102,+12025550101": "",
	} {
		w := newFixture(t)
		if c, code := w.order("globex", admission.Order{Agent: "helpdesk"}); c.From != "+12025550101" {
			t.Fatalf("shows %q: %s", c.From, code)
		}
		w.exec("UPDATE grants SET caller_numbers = string_to_array($1, ',')", left)
		claims, err := w.controller.Store.Claim(t.Context(), control.NodeID{Owner: "n"}, time.Minute, 1)
		if err != nil || len(claims) != 1 {
			t.Fatalf("%d claims, %v", len(claims), err)
		}
		err = w.controller.Store.Intent(t.Context(), claims[0].Lease)
		var why control.Reason
		if halt, ok := errors.AsType[*control.HaltError](err); ok {
			why = halt.Reason
		} else if err != nil {
			t.Error(err)
		}
		if why != want {
			t.Errorf("lent is %s: %q, want %q", left, why, want)
		}
	}
}

// TestSmallerLimitApplies checks that the smaller limit of subgroup and grant applies, separately for concurrency and
// rate.
func TestSmallerLimitApplies(t *testing.T) {
	w := newFixture(t)
	for _, row := range []struct {
		name, agent string
		prepare     string
		fits        int
		code        control.Code
	}{
		{"the grant's concurrency", "helpdesk", "", 3, control.CodeSubgroupConcurrency},
		{"the subgroup's concurrency", "second", "", 2, control.CodeSubgroupConcurrency},
		{"the grant's rate", "helpdesk", "UPDATE grants SET concurrent_calls = 0", 5, control.CodeSubgroupRate},
		{"the subgroup's rate", "helpdesk", "UPDATE subgroups SET calls_per_minute = 4 WHERE name = 'default'", 4, control.CodeSubgroupRate},
		{"no limit of the grant's", "helpdesk", "UPDATE grants SET calls_per_minute = 0; UPDATE subgroups SET calls_per_minute = 7", 7, control.CodeSubgroupRate},
		{"the lender's own", "sales", "", 7, control.CodeSubgroupRate},
	} {
		w.exec("DELETE FROM calls")
		for sql := range strings.SplitSeq(row.prepare, "; ") {
			w.exec(sql)
		}
		org := "globex"
		if row.agent == "sales" {
			org = "acme"
		}
		if got := w.placeMany(org, row.agent, row.fits+2); got[""] != row.fits || got[row.code] != 2 {
			t.Errorf("%s: %v, want %d and then %s", row.name, got, row.fits, row.code)
		}
	}
}

// TestGrantLimitSpansSubgroups checks that a borrower gets no more capacity by using several subgroups.
func TestGrantLimitSpansSubgroups(t *testing.T) {
	w := newFixture(t)
	if got := w.placeMany("globex", "second", 2); got[""] != 2 {
		t.Fatalf("%v", got)
	}
	if got := w.placeMany("globex", "helpdesk", 3); got[""] != 1 || got[control.CodeSubgroupConcurrency] != 2 {
		t.Errorf("%v, want one more", got)
	}
}

// TestLimits checks that the rate applies to a sliding window, that an ended call frees capacity, and that concurrent
// orders cannot exceed a limit together.
func TestLimits(t *testing.T) {
	w := newFixture(t)
	w.exec("UPDATE subgroups SET concurrent_calls = 4, calls_per_minute = 6")
	if got := w.placeMany("acme", "sales", 6); got[""] != 4 || got[control.CodeSubgroupConcurrency] != 2 {
		t.Errorf("%v", got)
	}
	w.ageCalls(30 * time.Second)
	w.endAll()
	if got := w.placeMany("acme", "sales", 6); got[""] != 2 || got[control.CodeSubgroupRate] != 4 {
		t.Errorf("half a minute later: %v", got)
	}
	w.ageCalls(31 * time.Second) // the last two calls remain in the window
	w.exec("UPDATE calls SET status = 'ongoing' WHERE status = 'queued'")
	if got := w.placeMany("acme", "sales", 6); got[""] != 2 || got[control.CodeSubgroupConcurrency] != 4 {
		t.Errorf("a minute later: %v", got)
	}
	// One old call that is still active must not make all later calls count as active.
	w.endAll()
	w.exec("UPDATE calls SET status = 'ongoing' WHERE id = (SELECT min(id) FROM calls)")
	w.ageCalls(time.Hour)
	w.exec("UPDATE calls SET status = 'ended' WHERE status = 'ongoing' AND id <> (SELECT min(id) FROM calls)")
	var orders sync.WaitGroup
	var mu sync.Mutex
	got := map[control.Code]int{}
	for range 20 {
		orders.Go(func() {
			_, code := w.order("acme", admission.Order{Agent: "sales"})
			mu.Lock()
			defer mu.Unlock()
			got[code]++
		})
	}
	orders.Wait()
	if got[""] != 3 || got[control.CodeSubgroupConcurrency] != 17 {
		t.Errorf("at the same time: %v", got)
	}
}

func TestDailyCaps(t *testing.T) {
	for _, row := range []struct {
		name, limits string
		sql          string // changes an earlier call
		fits         bool
	}{
		{"one call of two", "daily_calls: 2", "", true},
		{"one call of one", "daily_calls: 1", "", false},
		{"nothing lasted", "daily_minutes: 1, daily_cost: 0.5", "", true},
		{"59 s of a minute", "daily_minutes: 1", "answered_at = now() - interval '59 s', ended_at = now()", true},
		{"61 s of a minute", "daily_minutes: 1", "answered_at = now() - interval '61 s', ended_at = now()", false},
		{"61 s, and on", "daily_minutes: 1", "answered_at = now() - interval '61 s'", false},
		{"cost, not yet", "daily_cost: 0.7", "status = 'ended', cost_nano = 600000000", true},
		{"cost", "daily_cost: 0.6", "status = 'ended', cost_nano = 600000000", false},
		{"cost with that of the next call", "daily_cost: 0.6", "status = 'ended', dialed_at = now(), cost_nano = 400000000", false},
		{"cost of another day", "daily_cost: 0.6", "status = 'ended', created_at = now() - interval '25 h', cost_nano = 600000000", true},
		{"another day", "daily_calls: 1, daily_minutes: 1, daily_cost: 0.1", "created_at = now() - interval '25 h', answered_at = now() - interval '1 h', ended_at = now()", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newFixture(t)
			w.apply("organizations: [{name: globex, limits: {" + row.limits + "}}]")
			if _, code := w.order("globex", admission.Order{Agent: "helpdesk"}); code != "" {
				t.Fatalf("the first: %s", code)
			}
			if row.sql != "" {
				w.exec("UPDATE calls SET " + row.sql)
			}
			_, err := w.controller.Place(t.Context(), w.org["globex"], admission.Order{Agent: "helpdesk", To: "+12025550123"}, nil)
			if row.fits {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refusal, ok := errors.AsType[*control.Error](err)
			if !ok || refusal.Code != control.CodeOrganizationLimit || refusal.RetryAfter <= 0 || refusal.RetryAfter > 24*time.Hour {
				t.Errorf("%v", err)
			}
			if _, code := w.order("acme", admission.Order{Agent: "sales"}); code != "" {
				t.Errorf("another organization: %s", code)
			}
		})
	}
}

// listScreener is a Screener with one listed number.
type listScreener string

func (s listScreener) Screen(_ context.Context, n control.Number, p control.Purpose) (control.ScreenResult, error) {
	if n.Digits == string(s) && p == control.ForCall {
		return control.ScreenResult{List: "us_national"}, nil
	}
	return control.ScreenResult{}, nil
}

func TestScreen(t *testing.T) {
	w := newFixture(t)
	w.controller.Screener = listScreener("12025550124")
	if _, code := w.order("acme", admission.Order{Agent: "sales", To: "+1 202 555 0124"}); code != control.CodeDestinationNotAllowed {
		t.Errorf("a number of a registry: %q", code)
	}
	if _, code := w.order("acme", admission.Order{Agent: "sales"}); code != "" {
		t.Errorf("another: %q", code)
	}
}

// TestQueueDepth checks that concurrent orders do not exceed the queue depth.
func TestQueueDepth(t *testing.T) {
	w := newFixture(t)
	w.controller.QueueDepth = 7
	var orders sync.WaitGroup
	var mu sync.Mutex
	got := map[control.Code]int{}
	for i := range 40 {
		orders.Go(func() {
			leave, err := w.controller.Reserve(t.Context(), w.org["acme"])
			var code control.Code
			switch {
			case err != nil:
				code = control.CodeOf(err)
			case i%4 > 0:
				_, code = w.order("acme", admission.Order{Agent: "sales"})
			default:
				code = "nothing" // reserved a place, but ordered no call
			}
			if leave != nil {
				leave()
			}
			mu.Lock()
			defer mu.Unlock()
			got[code]++
		})
	}
	orders.Wait()
	if got[""] > 7 || got[""]+got["nothing"]+got[control.CodeDialQueueFull] != 40 {
		t.Errorf("%v for a queue of 7", got)
	}
	// Refused orders left no place reserved, so later orders can fill the queue.
	for range 100 {
		leave, err := w.controller.Reserve(t.Context(), w.org["acme"])
		if err != nil {
			if code := control.CodeOf(err); code != control.CodeDialQueueFull {
				t.Fatal(err)
			}
			break
		}
		if _, code := w.order("acme", admission.Order{Agent: "sales"}); code != "" {
			t.Fatal(code)
		}
		leave()
	}
	if n := w.text("SELECT count(*)::text FROM attempts WHERE state = 'scheduled'"); n != "7" {
		t.Errorf("%s wait", n)
	}
	w.exec("UPDATE attempts SET state = 'ended'")
	deadline := time.Now().Add(5 * time.Second)
	for {
		if leave, err := w.controller.Reserve(t.Context(), w.org["acme"]); err == nil {
			leave()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("an empty queue is full")
		}
	}
}
