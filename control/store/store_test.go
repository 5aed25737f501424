package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a database with an organization that may place calls.
type fixture struct {
	t          *testing.T
	db         *db.DB
	store      *store.Store
	controller *admission.Controller
	org        string
	trunk      string
	route      map[string]string // subgroup ids by name
}

// newFixture creates agents and subgroups with these names. Each agent is attached to the subgroup of the same name.
func newFixture(t *testing.T, concurrent, perMinute int, names ...string) *fixture {
	t.Helper()
	b := &fixture{t: t, db: dbtest.New(t), route: map[string]string{}}
	b.store = &store.Store{Pool: b.db.Pool}
	b.controller = &admission.Controller{Pool: b.db.Pool, Store: b.store, QueueDepth: 1 << 20}
	ctx, q := t.Context(), b.db.Pool
	var err error
	check := func(e error) {
		t.Helper()
		if e != nil {
			t.Fatal(e)
		}
	}
	b.org, err = apikeys.EnsureOrganization(ctx, q, "acme")
	check(err)
	b.trunk, err = trunks.Save(ctx, q, trunks.Trunk{OrgID: b.org, Name: "main", Proxy: "sip:127.0.0.1", CallerNumbers: []string{"+12025550100"}})
	check(err)
	for _, name := range names {
		d := agents.Default()
		fake := pipeline.Engine{Provider: "fake"}
		d.Speech = pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
		id, err := agents.Save(ctx, q, b.org, name, d)
		check(err)
		_, err = agents.Publish(ctx, q, b.org, name)
		check(err)
		// The limits are set after the orders are placed, so that they do not refuse any.
		b.route[name], err = trunks.SaveSubgroup(ctx, q, trunks.Subgroup{OrgID: b.org, TrunkID: b.trunk, Name: name, AllowedDestinations: []string{"1"}, ConcurrentCalls: 1 << 20, CallsPerMinute: 1 << 20})
		check(err)
		check(trunks.Attach(ctx, q, b.org, b.route[name], []string{id}))
	}
	b.limit(concurrent, perMinute)
	return b
}

// limit sets the limits of all subgroups.
func (b *fixture) limit(concurrent, perMinute int) {
	b.t.Helper()
	b.exec("UPDATE subgroups SET concurrent_calls = $1, calls_per_minute = $2", concurrent, perMinute)
}

func (b *fixture) exec(sql string, args ...any) {
	b.t.Helper()
	dbtest.Exec(b.t, b.db, sql, args...)
}

// order places n calls of an agent, regardless of the limits.
func (b *fixture) order(agent string, n int) []string {
	b.t.Helper()
	var ids []string
	for range n {
		var concurrent, rate int
		if err := b.db.Pool.QueryRow(b.t.Context(), "SELECT concurrent_calls, calls_per_minute FROM subgroups LIMIT 1").Scan(&concurrent, &rate); err != nil {
			b.t.Fatal(err)
		}
		b.limit(1<<20, 1<<20)
		c, err := b.controller.Place(b.t.Context(), b.org, admission.Order{Agent: agent, To: "+12025550123"}, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		b.limit(concurrent, rate)
		ids = append(ids, c.ID)
	}
	return ids
}

// claim claims a call for a node. It returns nil if no call can be claimed.
func (b *fixture) claim(node string) *control.Claim {
	b.t.Helper()
	all, err := b.store.Claim(b.t.Context(), control.NodeID{Owner: node, Home: "home of " + node}, time.Minute, 1)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func (b *fixture) call(id string) control.Call {
	b.t.Helper()
	c, err := b.store.Call(b.t.Context(), b.org, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *fixture) state(id string) control.AttemptState {
	b.t.Helper()
	s := dbtest.Value[control.AttemptState](b.t, b.db, "SELECT state FROM attempts WHERE call_id = $1", id)
	return s
}

func (b *fixture) events(id string) int {
	b.t.Helper()
	return dbtest.Value[int](b.t, b.db, "SELECT count(*) FROM events WHERE call_id = $1", id)
}

// expireLeases makes all leases expire.
func (b *fixture) expireLeases() {
	b.t.Helper()
	b.exec("UPDATE attempts SET lease_until = now() - interval '1 s' WHERE lease_until IS NOT NULL")
}

func (b *fixture) settle(keep ...string) int {
	b.t.Helper()
	n, err := b.store.Settle(b.t.Context(), keep)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// advance moves the claimed attempt through the states up to the given one.
func (b *fixture) advance(c *control.Claim, to control.AttemptState) {
	b.t.Helper()
	ctx := b.t.Context()
	steps := []control.AttemptState{control.Intent, control.Sent, control.Rang, control.Answered}
	for _, s := range steps[:slices.Index(steps, to)+1] {
		var err error
		if s == control.Intent {
			err = b.store.Intent(ctx, c.Lease)
		} else {
			err = b.store.Mark(ctx, c.Lease, s, time.Now())
		}
		if err != nil {
			b.t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestSettleByState(t *testing.T) {
	for _, tt := range []struct {
		at     control.AttemptState
		want   control.AttemptState
		status control.Status
		reason control.Reason
		events int
	}{
		{control.Claimed, control.Scheduled, control.Queued, "", 0},
		{control.Intent, control.Unknown, control.Failed, control.ReasonUnknown, 1},
		{control.Sent, control.Unknown, control.Failed, control.ReasonUnknown, 1},
		{control.Rang, control.Unknown, control.Failed, control.ReasonUnknown, 1},
		{control.Answered, control.Closed, control.Ended, control.ReasonNodeLost, 1},
	} {
		t.Run(string(tt.at), func(t *testing.T) {
			b := newFixture(t, 10, 1<<20, "sales")
			id := b.order("sales", 1)[0]
			c := b.claim("lost")
			if tt.at != control.Claimed {
				b.advance(c, tt.at)
			}
			if n := b.settle(); n != 0 {
				t.Fatalf("settled %d attempts under a lease", n)
			}
			b.expireLeases()
			if n := b.settle(c.Lease.AttemptID); n != 0 {
				t.Fatal("settled an attempt that was to be kept")
			}
			if n := b.settle(); n != 1 {
				t.Fatalf("settled %d", n)
			}
			b.settle()
			call := b.call(id)
			if b.state(id) != tt.want || call.Status != tt.status || call.Reason != tt.reason || b.events(id) != tt.events {
				t.Errorf("attempt %s, call %s %s, %d events", b.state(id), call.Status, call.Reason, b.events(id))
			}
			// The lost node comes back. Its writes have no effect.
			ctx := t.Context()
			for what, err := range map[string]error{
				"intent": b.store.Intent(ctx, c.Lease), "mark": b.store.Mark(ctx, c.Lease, control.Rang, time.Now()),
				"release": b.store.Release(ctx, c.Lease), "note": b.store.Note(ctx, c.Lease, control.Notes{}),
				"finish": b.store.Finish(ctx, c.Lease, control.CallResult{Status: control.Ended, EndedAt: time.Now()}),
			} {
				if !errors.Is(err, control.ErrFenced) {
					t.Errorf("%s of a lost node: %v", what, err)
				}
			}
			if held, err := b.store.Renew(ctx, "lost", []string{c.Lease.AttemptID}, time.Minute); err != nil || len(held) != 0 {
				t.Errorf("renewed %v: %v", held, err)
			}
			again := b.claim("next")
			if (again != nil) != (tt.want == control.Scheduled) {
				t.Errorf("claimed again: %v", again)
			}
			if again != nil && again.Lease.Epoch <= c.Lease.Epoch {
				t.Errorf("epoch %d after %d", again.Lease.Epoch, c.Lease.Epoch)
			}
		})
	}
}

func TestQueueExpires(t *testing.T) {
	b := newFixture(t, 10, 6000, "sales")
	ids := b.order("sales", 2)
	b.exec("UPDATE attempts SET created_at = now() - interval '16 min' WHERE call_id = $1", ids[0])
	b.settle()
	if c := b.call(ids[0]); c.Status != control.Failed || c.Reason != control.ReasonQueueExpired || b.events(ids[0]) != 1 {
		t.Errorf("%s %s", c.Status, c.Reason)
	}
	if c := b.call(ids[1]); c.Status != control.Queued {
		t.Errorf("the younger call is %s", c.Status)
	}
}

// TestQueueOfDeletedSubgroup checks that the queued calls of a deleted subgroup fail instead of waiting.
func TestQueueOfDeletedSubgroup(t *testing.T) {
	b := newFixture(t, 10, 6000, "sales", "other")
	id, other := b.order("sales", 1)[0], b.order("other", 1)[0]
	b.exec("DELETE FROM subgroups WHERE name = 'sales'")
	b.settle()
	if c := b.call(id); c.Status != control.Failed || c.Reason != "route_error" || b.events(id) != 1 {
		t.Errorf("%s %s", c.Status, c.Reason)
	}
	if c := b.call(other); c.Status != control.Queued {
		t.Errorf("that of another subgroup is %s", c.Status)
	}
}

func TestClaimIsFair(t *testing.T) {
	b := newFixture(t, 100, 60, "a", "b", "c")
	b.order("a", 5)
	b.order("b", 1)
	b.order("c", 1)
	got := map[string]int{}
	for range 3 {
		c := b.claim("n")
		if c == nil {
			t.Fatal("nothing to claim")
		}
		got[c.Call.AgentName]++
	}
	if got["a"] != 1 || got["b"] != 1 || got["c"] != 1 {
		t.Errorf("claimed %v: a long queue starves the others", got)
	}
}

// TestHeldCallsDoNotBlockTrunk checks that calls held after a failover do not block other calls on their trunk.
func TestHeldCallsDoNotBlockTrunk(t *testing.T) {
	b := newFixture(t, 100, 60, "a", "b")
	b.exec("UPDATE trunks SET concurrent_calls = 50")
	b.order("a", 1)
	b.exec("UPDATE subgroups SET next_dial_at = now() - interval '1 day' WHERE name = 'a'")
	b.exec("UPDATE database_epochs SET since = clock_timestamp(), opened_at = now(), missing = '{gone}'")
	id := b.order("b", 1)[0]
	if c := b.claim("n"); c == nil || c.Call.ID != id {
		t.Errorf("claimed %v, want the call that is not held", c)
	}
	if b.claim("n") != nil {
		t.Error("a held call is claimed")
	}
}

func TestClaimObeysConcurrency(t *testing.T) {
	b := newFixture(t, 2, 1<<20, "sales")
	ids := b.order("sales", 3)
	claims := []*control.Claim{b.claim("n"), b.claim("n")}
	if claims[0] == nil || claims[1] == nil || b.claim("n") != nil {
		t.Fatal("want two of three")
	}
	if claims[0].Call.ID != ids[0] || claims[1].Call.ID != ids[1] {
		t.Error("the queue is not first come, first served")
	}
	b.advance(claims[0], control.Intent)
	err := b.store.Finish(t.Context(), claims[0].Lease, control.CallResult{Status: control.Failed, Reason: "busy", EndedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if c := b.claim("n"); c == nil || c.Call.ID != ids[2] {
		t.Error("a channel that became free is not used")
	}
	b.exec("UPDATE trunks SET concurrent_calls = 2")
	b.limit(100, 1<<20)
	b.order("sales", 1)
	if b.claim("n") != nil {
		t.Error("the trunk's limit does not hold")
	}
}

// TestClaimOnce checks that nodes that claim concurrently claim each call only once.
func TestClaimOnce(t *testing.T) {
	b := newFixture(t, 1000, 1<<20, "a", "b")
	const each = 20
	b.order("a", each)
	b.order("b", each)
	claimed := make(chan string, 4*each)
	over := make(chan error, 4)
	for _, node := range []string{"n1", "n2", "n3", "n4"} {
		go func() {
			for idle := 0; idle < 50; {
				some, err := b.store.Claim(context.WithoutCancel(t.Context()), control.NodeID{Owner: node}, time.Minute, 3)
				if err != nil {
					over <- err
					return
				}
				if len(some) == 0 {
					idle++
					continue
				}
				idle = 0
				for _, c := range some {
					claimed <- c.Call.ID
				}
			}
			over <- nil
		}()
	}
	for range 4 {
		if err := <-over; err != nil {
			t.Fatal(err)
		}
	}
	close(claimed)
	seen := map[string]int{}
	for id := range claimed {
		seen[id]++
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s claimed %d times", id, n)
		}
	}
	if len(seen) != 2*each {
		t.Errorf("claimed %d of %d", len(seen), 2*each)
	}
}

func TestIntentChecks(t *testing.T) {
	for _, tt := range []struct {
		name string
		sql  string
		want control.Reason
	}{
		{"asked to end", "UPDATE calls SET end_requested_at = now()", control.ReasonCanceled},
		{"suppressed since", "INSERT INTO suppressions (org_id, number) SELECT id, '2025550123' FROM organizations", control.ReasonDNCBlocked},
		{"the trunk no longer has its number", "UPDATE trunks SET caller_numbers = '{+12025550101}'", control.ReasonCallerNumber},
		{"the trunk has none left", "UPDATE trunks SET caller_numbers = '{}'", control.ReasonCallerNumber},
		{"the subgroup has others", "UPDATE subgroups SET caller_numbers = '{+12025550101}'", control.ReasonCallerNumber},
		{"the subgroup is gone", "DELETE FROM subgroups", control.Reason(media.RouteError)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFixture(t, 10, 6000, "sales")
			b.order("sales", 1)
			c := b.claim("n")
			b.exec(tt.sql)
			var halt *control.HaltError
			if err := b.store.Intent(t.Context(), c.Lease); !errors.As(err, &halt) || halt.Reason != tt.want {
				t.Errorf("intent: %v", err)
			}
			if s := b.state(c.Call.ID); s != control.Claimed {
				t.Errorf("the attempt is %s", s)
			}
		})
	}
}

func TestEndByState(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	ids := b.order("sales", 3)
	ctx := t.Context()
	held := b.claim("n") // claims ids[0]
	ringing := b.claim("n")
	b.advance(ringing, control.Rang)
	for _, i := range []int{0, 2} {
		c, err := b.store.End(ctx, b.org, ids[i])
		if err != nil || c.Status != control.Failed || c.Reason != control.ReasonCanceled || c.HangupBy != control.SideAPI {
			t.Errorf("end of a queued call: %v %+v", err, c)
		}
	}
	if err := b.store.Intent(ctx, held.Lease); !errors.Is(err, control.ErrFenced) {
		t.Errorf("intent after the end: %v", err)
	}
	c, err := b.store.End(ctx, b.org, ids[1])
	if err != nil || c.Status != control.Ringing {
		t.Errorf("end of a ringing call: %v %+v", err, c)
	}
	if asked, err := b.store.EndRequests(ctx, "n"); err != nil || !slices.Equal(asked, []string{ids[1]}) {
		t.Errorf("to end: %v %v", asked, err)
	}
	if c, err := b.store.End(ctx, b.org, ids[0]); err != nil || c.Reason != control.ReasonCanceled || b.events(ids[0]) != 1 {
		t.Errorf("a second end: %v %+v, %d events", err, c, b.events(ids[0]))
	}
	if _, err := b.store.End(ctx, "org_other", ids[1]); control.CodeOf(err) != control.CodeCallNotFound {
		t.Errorf("end of another organization's call: %v", err)
	}
}

func TestDeletedAgentEndsItsQueuedCalls(t *testing.T) {
	b := newFixture(t, 10, 6000, "sales")
	id := b.order("sales", 1)[0]
	b.exec("DELETE FROM agents")
	if c := b.claim("n"); c != nil {
		t.Fatal("claimed a call without an agent")
	}
	if c := b.call(id); c.Status != control.Failed || b.events(id) != 1 {
		t.Errorf("the call is %s", c.Status)
	}
	// Processing of the ended call goes on without an analysis.
	if d, err := b.store.AgentDefinition(t.Context(), id); err != nil || !d.Analysis.IsEmpty() {
		t.Errorf("the agent that is gone: %+v, %v", d.Analysis, err)
	}
}

// brokenProviders is an AgentGate that reports some agents as unavailable.
type brokenProviders struct {
	agents map[string]bool // agent ids
	barred []string
}

func (m *brokenProviders) UnavailableAgents() []string {
	keys := []string{}
	for _, key := range m.barred {
		if id, _, _ := strings.Cut(key, ":"); m.agents[id] {
			keys = append(keys, key)
		}
	}
	return keys
}

func (m *brokenProviders) MustWait(_ context.Context, a providers.Agent, _ pipeline.Engines) bool {
	if m.agents[a.ID] {
		m.barred = append(m.barred, a.Key())
	}
	return m.agents[a.ID]
}

// TestClaimWithoutProviders checks that calls of an agent without working providers stay queued until they expire,
// while calls of other agents in the same subgroup are claimed.
func TestClaimWithoutProviders(t *testing.T) {
	b := newFixture(t, 10, 6000, "sales", "support")
	waiting := b.order("sales", 3)
	sales := dbtest.Value[string](t, b.db, "SELECT agent_id FROM calls WHERE id = $1", waiting[0])
	m := &brokenProviders{agents: map[string]bool{sales: true}}
	b.store.Agents = m
	ready := func() { b.exec("UPDATE subgroups SET next_dial_at = '-infinity'") }
	for range 3 {
		if c := b.claim("node"); c != nil {
			t.Fatalf("call %s is claimed", c.Call.ID)
		}
		ready()
	}
	if c := b.call(waiting[0]); c.Status != control.Queued {
		t.Errorf("a call that waits is %s", c.Status)
	}
	other := b.order("support", 1)
	b.exec("UPDATE attempts SET subgroup_id = $1 WHERE call_id = $2", b.route["sales"], other[0])
	if c := b.claim("node"); c == nil || c.Call.ID != other[0] {
		t.Fatalf("another agent's call waits behind them: %v", c)
	}
	ready()
	b.exec("UPDATE attempts SET created_at = now() - interval '16 min' WHERE call_id = $1", waiting[2])
	b.settle()
	if c := b.call(waiting[2]); c.Reason != control.ReasonQueueExpired {
		t.Errorf("after 16 minutes: %s %s", c.Status, c.Reason)
	}
	m.agents = nil
	for _, id := range waiting[:2] {
		if c := b.claim("node"); c == nil || c.Call.ID != id {
			t.Fatalf("call %s is not claimed once its agent can talk: %v", id, c)
		}
		ready()
	}
}
