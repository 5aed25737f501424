package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/store"
)

// TestStepLease checks that an event stays leased while its steps run, even if all steps together take longer than one
// lease. When the lease ends, the event returns to the outbox with its count of tries.
func TestStepLease(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	events := &store.EventStore{Pool: b.store.Pool}
	id := b.order("sales", 1)[0]
	b.exec("INSERT INTO events (call_id, org_id, kind, home) VALUES ($1, $2, $3, '')", id, b.org, control.CallEnded)
	take := func() *control.Event {
		t.Helper()
		all, err := events.Take(t.Context(), control.FastLane, "", time.Hour, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			return nil
		}
		return all[0]
	}
	e := take()
	if e == nil {
		t.Fatal("the event is not there")
	}
	b.exec("UPDATE events SET lease_until = now() - interval '1 s'") // simulates a first step that used the whole lease
	e.Done = append(e.Done, "recording")
	if err := events.SaveProgress(t.Context(), e, time.Hour); err != nil {
		t.Fatal(err)
	}
	if other := take(); other != nil {
		t.Error("another node took the event between two of its steps")
	}
	e.Tries = 4
	if err := events.Retry(t.Context(), e, 0); err != nil {
		t.Fatal(err)
	}
	if back := take(); back == nil || back.Tries != 4 || len(back.Done) != 1 {
		t.Errorf("%+v", back)
	}
}

func TestReadBacklog(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	ids := b.order("sales", 2)
	b.exec("UPDATE attempts SET created_at = now() - interval '1 hour' WHERE call_id = $1", ids[0])
	b.exec("INSERT INTO events (call_id, org_id, kind, home, created_at) VALUES ($1, $2, $3, '', now() - interval '1 minute')", ids[0], b.org, control.CallEnded)
	b.exec(`INSERT INTO webhook_endpoints (id, org_id, url, secret, events) VALUES ('whe_1', $1, 'https://a.example', '\\x00', '{}')`, b.org)
	for n, state := range []string{"pending", "dead", "delivered"} {
		b.exec(`INSERT INTO webhook_deliveries (id, endpoint_id, org_id, call_id, type, payload, state, next_at, created_at)
			VALUES ($1, 'whe_1', $2, $3, $1, '', $4, now() - interval '2 minutes', now())`, fmt.Sprint("msg_", n), b.org, ids[0], state)
	}
	got, err := store.ReadBacklog(t.Context(), b.store.Pool)
	if err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]*time.Duration{"1h0m0s": &got.CallAge, "1m0s": &got.EventAge, "2m0s": &got.DeliveryAge} {
		if age.Truncate(10*time.Second).String() != name {
			t.Errorf("got %v, want %s", age, name)
		}
		*age = 0
	}
	if want := (store.Backlog{Calls: 2, Events: 1, Deliveries: 1, DeadDeliveries: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestStepsOfMissingNode checks that another node takes the event of a missing node once and runs the steps that need
// no files. The other steps wait for the missing node.
func TestStepsOfMissingNode(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	events := &store.EventStore{Pool: b.store.Pool, AnyNodeSteps: []string{"contact"}}
	id := b.order("sales", 1)[0]
	b.exec("INSERT INTO events (call_id, org_id, kind, home) VALUES ($1, $2, $3, 'home')", id, b.org, control.CallEnded)
	take := func(home, age string) *control.Event {
		t.Helper()
		b.exec("UPDATE events SET created_at = now() - $1::interval", age)
		all, err := events.Take(t.Context(), control.FastLane, home, time.Minute, 5)
		if err != nil || len(all) > 1 {
			t.Fatal(all, err)
		}
		if len(all) == 0 {
			return nil
		}
		if err = events.Retry(t.Context(), all[0], 0); err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	if e := take("other", "20 seconds"); e != nil {
		t.Errorf("another node took the event too early: %+v", e)
	}
	e := take("other", "40 seconds")
	if e == nil || !e.Remote {
		t.Fatalf("another node does not take the event: %+v", e)
	}
	if mine := take("home", "40 seconds"); mine == nil || mine.Remote {
		t.Errorf("its own node: %+v", mine)
	}
	e.Done = []string{"contact"}
	if err := events.Retry(t.Context(), e, 0); err != nil {
		t.Fatal(err)
	}
	if again := take("other", "5 minutes"); again != nil {
		t.Errorf("others could do no more: %+v", again)
	}
	if late := take("other", "11 minutes"); late == nil || late.Remote {
		t.Errorf("its node does not come: %+v", late)
	}
}

// TestEventsOfLostNode checks that another node takes an event for its LossStep only after the event's node has shown no
// sign of life for LossTimeout, and that a released event belongs to any node.
func TestEventsOfLostNode(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	events := &store.EventStore{Pool: b.store.Pool, LossStep: "takeover", LossTimeout: time.Minute}
	id := b.order("sales", 1)[0]
	b.exec("INSERT INTO events (call_id, org_id, kind, home) VALUES ($1, $2, $3, 'host:/data')", id, b.org, control.CallEnded)
	take := func(home string) *control.Event {
		t.Helper()
		all, err := events.Take(t.Context(), control.FastLane, home, time.Minute, 5)
		if err != nil || len(all) > 1 {
			t.Fatal(all, err)
		}
		if len(all) == 0 {
			return nil
		}
		if err = events.Retry(t.Context(), all[0], 0); err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	seen := func(name, ago string) {
		t.Helper()
		b.exec("INSERT INTO nodes (name, owner, beat, seen_at) VALUES ($1, '', 1, now() - $2::interval) ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at", name, ago)
	}
	away := func() time.Duration {
		t.Helper()
		b.exec("UPDATE attempts SET home = 'host:/data'")
		home, away, err := store.RecordingStore{Store: b.store}.CallNode(t.Context(), id)
		if err != nil || home != "host:/data" {
			t.Fatalf("%q, %v", home, err)
		}
		return away.Round(10 * time.Second)
	}
	b.exec("UPDATE events SET created_at = now() - interval '45 seconds'")
	b.exec("UPDATE calls SET ended_at = now() - interval '45 seconds'")
	if e := take("other"); e != nil || away() > time.Minute {
		t.Errorf("a node that was stopped properly may start again: %+v, away %v", e, away())
	}
	b.exec("UPDATE events SET created_at = now() - interval '70 seconds'")
	seen("host:/data#0@id", "10 seconds")
	seen("host:/data2#0@id", "2 hours") // another node
	if e := take("other"); e != nil || away() != 10*time.Second {
		t.Errorf("its node is alive: %+v, away %v", e, away())
	}
	seen("host:/data#0@id", "65 seconds")
	if e := take("other"); e == nil || !e.Remote || !e.Lost || away() < time.Minute {
		t.Errorf("its node is lost: %+v, away %v", e, away())
	}
	b.exec("UPDATE events SET created_at = now() - interval '35 seconds'") // the call was settled after the loss
	e := take("other")
	if e == nil || !e.Lost {
		t.Fatalf("a call that was settled: %+v", e)
	}
	if own := take("host:/data"); own == nil || own.Remote || own.Lost {
		t.Errorf("its own node: %+v", own)
	}
	e.Done = []string{"takeover"}
	if err := events.Retry(t.Context(), e, 0); err != nil {
		t.Fatal(err)
	}
	if again := take("other"); again != nil {
		t.Errorf("the takeover is repeated: %+v", again)
	}
	e.Released = true
	if err := events.Retry(t.Context(), e, 0); err != nil {
		t.Fatal(err)
	}
	if free := take("other"); free == nil || free.Remote || free.Lost {
		t.Errorf("a released event: %+v", free)
	}
}

// TestUnknownAttemptIsHandledByAnyNode checks that any node may process the end event of an attempt in state "unknown"
// at once. The end event of a conversation waits for its node, because that node has the recording.
func TestUnknownAttemptIsHandledByAnyNode(t *testing.T) {
	for at, want := range map[control.AttemptState]int{control.Sent: 1, control.Answered: 0} {
		b := newFixture(t, 10, 1<<20, "sales")
		b.order("sales", 1)
		b.advance(b.claim("lost"), at)
		b.expireLeases()
		b.settle()
		all, err := (&store.EventStore{Pool: b.store.Pool}).Take(t.Context(), control.FastLane, "home of another", time.Minute, 5)
		if err != nil || len(all) != want {
			t.Errorf("%s: another node follows %d events, %v", at, len(all), err)
		}
	}
}
