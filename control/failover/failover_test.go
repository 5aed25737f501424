package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/journal"
	"github.com/parley-voice/parley/control/store"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a database with an organization that may place calls.
type fixture struct {
	*testing.T

	db         *db.DB
	store      *store.Store
	controller *admission.Controller
	org        string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	d := dbtest.New(t)
	r := &fixture{T: t, db: d, store: &store.Store{Pool: d.Pool}}
	r.controller = &admission.Controller{Pool: d.Pool, Store: r.store}
	spec, err := apply.Parse(strings.NewReader(`organizations:
- name: acme
  timezone: America/New_York
  agents: [{name: a, published: true, prompt: "Be brief.", speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks:
  - name: t
    proxy: "sip:127.0.0.1:5999;transport=udp"
    caller_numbers: ["+12025550100"]
    subgroups: [{name: s, allowed_destinations: ["1"], agents: [a], concurrent_calls: 100, calls_per_minute: 6000}]
`))
	if err == nil {
		err = apply.Apply(t.Context(), d.Pool, spec, apply.Options{})
	}
	if err == nil {
		err = d.Pool.QueryRow(t.Context(), "SELECT id FROM organizations").Scan(&r.org)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// node returns a Monitor whose journal is in dir.
func (r *fixture) node(home, dir string) *Monitor {
	r.Helper()
	j, err := journal.Open(dir)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = j.Close() })
	return &Monitor{
		Pool: r.db.Pool, Journal: j, Attempts: r.store, Node: control.NodeID{Owner: control.NewID("node_", time.Now()), Home: home}, Key: []byte("key"),
		Lease: 100 * time.Millisecond, ReportTimeout: 300 * time.Millisecond,
	}
}

func (r *fixture) check(w *Monitor) control.ContinuityStatus {
	r.Helper()
	s, err := w.Check(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// waitUntilOpen runs checks until dialing is allowed again.
func (r *fixture) waitUntilOpen(w *Monitor) {
	r.Helper()
	for late := time.Now().Add(10 * time.Second); !r.check(w).Open; <-time.After(20 * time.Millisecond) {
		if time.Now().After(late) {
			r.Fatal("the queue does not run again")
		}
	}
}

// exec changes the database as a revert would.
func (r *fixture) exec(sql string, args ...any) {
	r.Helper()
	dbtest.Exec(r.T, r.db, sql, args...)
}

func (r *fixture) count(sql string, args ...any) int {
	r.Helper()
	return dbtest.Value[int](r.T, r.db, sql, args...)
}

// promote simulates the promotion of a standby: the database gets a new timeline.
func (r *fixture) promote() { r.exec("UPDATE database_epochs SET timeline = timeline || now()") }

func (r *fixture) order(number string) control.Call {
	r.Helper()
	c, err := r.controller.Place(r.Context(), r.org, admission.Order{Agent: "a", To: number}, nil)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *fixture) claim(w *Monitor) *control.Claim {
	r.Helper()
	for range 20 { // pacing may delay the claim
		all, err := r.store.Claim(r.Context(), w.Node, time.Minute, 1)
		if err != nil {
			r.Fatal(err)
		}
		if len(all) == 1 {
			return all[0]
		}
		<-time.After(10 * time.Millisecond)
	}
	return nil
}

// send claims a call and records that its INVITE left.
func (r *fixture) send(w *Monitor) *control.Claim {
	r.Helper()
	c := r.claim(w)
	if c == nil {
		r.Fatal("nothing to claim")
	}
	if err := errors.Join(w.Allow(r.Context(), c), r.store.Intent(r.Context(), c.Lease), w.RecordIntent(r.Context(), c)); err != nil {
		r.Fatal(err)
	}
	return c
}

// TestMissingNode checks that calls queued before a failover are held until every node that was alive then has
// reported. Calls that are ordered later are dialed.
func TestMissingNode(t *testing.T) {
	r := newFixture(t)
	dir := t.TempDir()
	a, b := r.node("a", t.TempDir()), r.node("b", dir)
	r.check(a)
	r.check(b)
	r.order("+12025550111")
	if err := b.Journal.Close(); err != nil { // closing the journal simulates a crash of the node
		t.Fatal(err)
	}
	r.promote()
	if s := r.check(a); s.Open || s.Changes != 1 {
		t.Fatalf("after the promotion: %+v", s)
	}
	if c := r.claim(a); c != nil {
		t.Error("dialed while the queue is paused")
	}
	_, err := r.controller.Place(t.Context(), r.org, admission.Order{Agent: "a", To: "+12025550112"}, nil)
	if refusal, ok := errors.AsType[*control.Error](err); !ok || refusal.Code != control.CodeVoiceBackend || refusal.RetryAfter == 0 {
		t.Errorf("ordered while the queue is paused: %v", err)
	}
	r.waitUntilOpen(a)
	if h, err := ReadHolds(t.Context(), r.db.Pool); err != nil || len(h.Missing) != 1 || h.Missing[0] != b.names()[0] || h.Restored || h.Calls != 1 || a.Stats().Missing != 1 {
		t.Errorf("held: %+v, %v", h, err)
	}
	later := r.order("+12025550113")
	if c := r.claim(a); c == nil || c.Call.ID != later.ID {
		t.Errorf("claimed %v, want the later order", c)
	}
	if c := r.claim(a); c != nil {
		t.Errorf("a held call is dialed")
	}
	r.check(r.node("b", dir)) // the node returns
	if h, err := ReadHolds(t.Context(), r.db.Pool); err != nil || len(h.Missing) != 0 {
		t.Errorf("held: %+v, %v", h, err)
	}
	if c := r.claim(a); c == nil {
		t.Error("the held call is not dialed after the node returned")
	}
}

func TestRelease(t *testing.T) {
	r := newFixture(t)
	a, b := r.node("a", t.TempDir()), r.node("b", t.TempDir())
	r.check(a)
	r.check(b)
	r.order("+12025550111")
	r.promote()
	r.waitUntilOpen(a)
	if c := r.claim(a); c != nil {
		t.Fatal("a held call is dialed")
	}
	for _, want := range []bool{true, false} {
		if released, err := Release(t.Context(), r.db.Pool, "me"); err != nil || released != want {
			t.Errorf("released: %v, %v, want %v", released, err, want)
		}
	}
	if c := r.claim(a); c == nil {
		t.Error("the released call is not dialed")
	}
}

// TestOrderlyStop checks that the nodes do not wait for a node that was stopped properly.
func TestOrderlyStop(t *testing.T) {
	r := newFixture(t)
	a, b := r.node("a", t.TempDir()), r.node("b", t.TempDir())
	r.check(a)
	r.check(b)
	if err := b.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.promote()
	r.waitUntilOpen(a)
	if n := a.Stats().Missing; n != 0 {
		t.Errorf("%d nodes are missing", n)
	}
}

// TestRevertOfLiveNode removes calls of a running node from the database, in every state, and checks how they are
// restored.
func TestRevertOfLiveNode(t *testing.T) {
	for _, how := range []string{
		"DELETE FROM calls", "UPDATE attempts SET state = 'scheduled', owner = '', epoch = 0", "UPDATE attempts SET state = 'claimed'", "UPDATE attempts SET state = 'intent'",
	} {
		t.Run(how, func(t *testing.T) {
			r := newFixture(t)
			a := r.node("a", t.TempDir())
			r.check(a)
			for n := range 3 {
				r.order(fmt.Sprintf("+1202555011%d", n))
			}
			rings, talks, over := r.send(a), r.send(a), r.send(a)
			now := time.Now()
			a.RecordState(rings.Lease, control.Rang, now)
			a.RecordState(talks.Lease, control.Answered, now)
			f := control.CallResult{Status: control.Failed, Reason: "busy", SIPStatus: 486, EndedAt: now, Recording: control.RecordingNone}
			if err := errors.Join(a.RecordEnd(over.Lease, &f), r.store.Finish(t.Context(), over.Lease, f)); err != nil {
				t.Fatal(err)
			}
			a.RecordState(over.Lease, control.Closed, now)
			r.exec(how)
			r.exec("UPDATE calls SET status = 'queued', ended_at = NULL, disconnection_reason = NULL")
			r.exec("DELETE FROM events")
			r.promote()
			r.waitUntilOpen(a)
			if c := r.claim(a); c != nil {
				t.Errorf("a call that was sent is claimed again")
			}
			for id, want := range map[string]string{rings.Call.ID: "ringing ringing ", talks.Call.ID: "ongoing answered ", over.Call.ID: "failed ended busy"} {
				var got string
				err := r.db.Pool.QueryRow(t.Context(), `SELECT c.status || ' ' || a.state || ' ' || coalesce(c.disconnection_reason, '')
					FROM calls c JOIN attempts a ON a.call_id = c.id WHERE c.id = $1`, id).Scan(&got)
				if err != nil || got != want {
					t.Errorf("%s is %q, want %q (%v)", id, got, want, err)
				}
			}
			held, err := r.store.Renew(t.Context(), a.Node.Owner, []string{rings.Lease.AttemptID, talks.Lease.AttemptID}, time.Minute)
			if err != nil || len(held) != 2 {
				t.Errorf("holds %v, %v", held, err)
			}
			if n := r.count("SELECT count(*) FROM events"); n != 1 {
				t.Errorf("%d events of ended calls, want 1", n)
			}
			if err := r.store.Finish(t.Context(), talks.Lease, control.CallResult{Status: control.Ended, Reason: "callee_hangup", AnsweredAt: now, EndedAt: now}); err != nil {
				t.Error("the end of a call that goes on:", err)
			}
		})
	}
}

// TestRevertOfExitedProcess checks how calls are restored that only the journal file has, because their process has
// exited and the database has lost them.
func TestRevertOfExitedProcess(t *testing.T) {
	r := newFixture(t)
	dir := t.TempDir()
	a := r.node("a", dir)
	keys := &idempotency.Keys{Pool: r.db.Pool, Hash: func(scope, key string) [16]byte { return a.KeyHash(scope, key) }}
	r.check(a)
	slot, _, err := keys.Begin(t.Context(), "scope", "key", []byte{1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.controller.Place(t.Context(), r.org, admission.Order{Agent: "a", To: "+12025550111"}, func(b *db.Batch, c control.Call) error {
		slot.QueueSettle(b, idempotency.Answer{Status: 202, Body: []byte("{}"), CallID: c.ID})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	gone := r.send(a)
	r.order("+12025550112")
	waits := r.send(a)
	if err = errors.Join(a.RecordEnd(waits.Lease, &control.CallResult{Status: control.Failed, Reason: "busy", SIPStatus: 486, EndedAt: time.Now()}), a.Journal.Close()); err != nil {
		t.Fatal(err)
	}
	r.exec("DELETE FROM calls WHERE id = $1", gone.Call.ID)
	r.exec("DELETE FROM idempotency_keys")
	r.exec("UPDATE attempts SET state = 'scheduled', owner = '', epoch = 0")
	r.promote()
	a = r.node("a", dir) // simulates a new process of the same node
	r.waitUntilOpen(a)
	if c := r.claim(a); c != nil {
		t.Error("a call that was sent is claimed again")
	}
	if n := r.count("SELECT count(*) FROM calls WHERE id = $1 AND disconnection_reason = 'busy' AND sip_status = 486", waits.Call.ID); n != 1 {
		t.Error("the end that the journal has is not written")
	}
	if s := a.Stats(); s.Settled != 1 || s.Facts != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	_, _, err = keys.Begin(t.Context(), "scope", "key", []byte{1})
	if control.CodeOf(err) != control.CodeIdempotencyInFlight {
		t.Errorf("the key of a call that was made: %v", err)
	}
	if _, _, err = keys.Begin(t.Context(), "scope", "another", []byte{1}); err != nil {
		t.Errorf("another key: %v", err)
	}
	r.order("+12025550111") // a new order for the same number is accepted
	c := r.claim(a)
	if c == nil {
		t.Fatal("a new order to the number is not claimed")
	}
	if err = a.Allow(t.Context(), c); err != nil {
		t.Error("a new order to the number:", err)
	}
}

// TestSentFactsAreWrittenOnce checks that a second check does not write the sent facts again. After an operator
// releases them, the node detects no new revert.
func TestSentFactsAreWrittenOnce(t *testing.T) {
	r := newFixture(t)
	dir := t.TempDir()
	a := r.node("a", dir)
	r.check(a)
	r.order("+12025550111")
	r.send(a)
	if err := a.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	r.exec("DELETE FROM calls")
	r.promote()
	a = r.node("a", dir)
	r.waitUntilOpen(a)
	r.promote()
	r.waitUntilOpen(a)
	if n := a.Stats().Facts; n != 1 {
		t.Errorf("a fact was written %d times", n)
	}
	for _, want := range []bool{true, false} {
		if released, err := Release(t.Context(), r.db.Pool, "me"); err != nil || released != want {
			t.Errorf("released: %v, %v, want %v", released, err, want)
		}
	}
	number := a.NumberHash(r.org, "+12025550111")
	if n := r.count("SELECT count(*) FROM sent_facts WHERE number_hash = $1", number[:]); n != 0 {
		t.Error("the number is not free after the release")
	}
	if h, err := ReadHolds(t.Context(), r.db.Pool); err != nil || h.Facts != 0 {
		t.Errorf("held after the release: %+v, %v", h, err)
	}
	r.order("+12025550111")
	c := r.claim(a)
	if c == nil {
		t.Fatal("a new order is not claimed")
	}
	if err := a.Allow(t.Context(), c); err != nil || !r.check(a).Open {
		t.Errorf("a new order to a released number: %v", err)
	}
}

// TestLostHeartbeat checks that a node detects a revert by its own lost heartbeat if the timeline has not changed or
// cannot be read.
func TestLostHeartbeat(t *testing.T) {
	for _, how := range []string{"UPDATE nodes SET beat = 2", "DELETE FROM nodes"} {
		r := newFixture(t)
		a := r.node("a", t.TempDir())
		for range 5 {
			r.check(a)
		}
		r.exec(how)
		if s := r.check(a); s.Open || s.Changes != 1 {
			t.Errorf("%s: %+v", how, s)
		}
		r.waitUntilOpen(a)
	}
}

// TestClaimOfSentCall checks that a node detects a revert when it claims a call that it has sent before, even under
// another id. The node then sends nothing.
func TestClaimOfSentCall(t *testing.T) {
	for _, how := range []string{"UPDATE attempts SET state = 'scheduled', owner = '', epoch = 0", "DELETE FROM calls"} {
		r := newFixture(t)
		a := r.node("a", t.TempDir())
		r.check(a)
		r.order("+12025550111")
		sent := r.send(a)
		r.exec(how)
		if how == "DELETE FROM calls" { // the client repeats the order without an Idempotency-Key
			r.order("+12025550111")
		}
		c := r.claim(a)
		if c == nil {
			t.Fatal("the queue offers no call")
		}
		if err := a.Allow(t.Context(), c); !errors.Is(err, control.ErrForgotten) {
			t.Errorf("%s: allowed: %v", how, err)
		}
		if err := r.store.Release(t.Context(), c.Lease); err != nil {
			t.Fatal(err)
		}
		if c = r.claim(a); c != nil {
			t.Errorf("%s: the queue runs", how)
		}
		r.waitUntilOpen(a)
		if n := r.count("SELECT count(*) FROM attempts WHERE id = $1 AND state = 'intent'", sent.Lease.AttemptID); n != 1 {
			t.Errorf("%s: the attempt that is in progress was not restored", how)
		}
	}
}

// TestUnrestorableCall checks that a call that cannot be restored is counted and goes on.
func TestUnrestorableCall(t *testing.T) {
	r := newFixture(t)
	a := r.node("a", t.TempDir())
	r.check(a)
	r.order("+12025550111")
	c := r.send(a)
	r.exec("DELETE FROM organizations")
	r.promote()
	r.waitUntilOpen(a)
	if s := a.Stats(); s.Lost != 1 || !a.IsDetached(c.Lease.AttemptID) {
		t.Errorf("%+v, keeps: %v", s, a.IsDetached(c.Lease.AttemptID))
	}
	if n := r.count("SELECT count(*) FROM sent_facts WHERE attempt_id = $1", c.Lease.AttemptID); n != 1 {
		t.Error("the database does not know that the call was sent") // without a sent fact, each order to the number would pause dialing
	}
}

// TestReleasedCallMayBeSent checks that a call may be sent if its first INVITE never left.
func TestReleasedCallMayBeSent(t *testing.T) {
	r := newFixture(t)
	a := r.node("a", t.TempDir())
	r.check(a)
	r.order("+12025550111")
	c := r.send(a)
	if err := errors.Join(a.RecordEnd(c.Lease, nil), r.store.Release(t.Context(), c.Lease)); err != nil {
		t.Fatal(err)
	}
	r.send(a)
}

// TestCallsAreBounded checks that the number and size of the ended calls in memory are limited.
func TestCallsAreBounded(t *testing.T) {
	var all calls
	now := time.Now()
	end := func(n int, at time.Time, size int) {
		c := &call{lease: control.Lease{AttemptID: fmt.Sprint(n)}, rows: rows{call: strings.Repeat("x", size)}}
		all.add(c)
		all.end(c, at)
	}
	for n := range keptCalls + 10 {
		end(n, now, 1)
	}
	if len(all.all) != keptCalls || len(all.ended) != keptCalls {
		t.Errorf("%d calls are kept", len(all.all))
	}
	end(-1, now.Add(keptFor), 1)
	if len(all.all) != 1 {
		t.Errorf("%d calls are kept after %v", len(all.all), keptFor)
	}
	end(-2, now.Add(keptFor), keptBytes)
	if len(all.all) != 1 || all.bytes != keptBytes {
		t.Errorf("%d bytes are kept", all.bytes)
	}
}

func TestCheckWithoutDatabase(t *testing.T) {
	r := newFixture(t)
	a := r.node("a", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Check(ctx); err == nil {
		t.Error("a check without a database passed")
	}
}
