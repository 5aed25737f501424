package store_test

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
)

// TestEachStepHasItsLease: an event is nobody else's while its steps go on,
// however long all of them take; it comes back with the tries that count.
func TestEachStepHasItsLease(t *testing.T) {
	b := newBench(t, 10, 1<<20, "sales")
	id := b.order("sales", 1)[0]
	b.exec("INSERT INTO events (call_id, org_id, kind, home) VALUES ($1, $2, $3, '')", id, b.org, control.CallEnded)
	take := func() *control.Event {
		t.Helper()
		all, err := b.store.Take(t.Context(), control.Quick, "", time.Hour, 5)
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
	b.exec("UPDATE events SET lease_until = now() - interval '1 s'") // the first step took all of it
	e.Followed = append(e.Followed, "recording")
	if err := b.store.Followed(t.Context(), e, time.Hour); err != nil {
		t.Fatal(err)
	}
	if other := take(); other != nil {
		t.Error("the event is another's in the middle of its steps")
	}
	e.Tries = 4
	if err := b.store.Again(t.Context(), e, 0); err != nil {
		t.Fatal(err)
	}
	if back := take(); back == nil || back.Tries != 4 || len(back.Followed) != 1 {
		t.Errorf("%+v", back)
	}
}

// TestAway: what needs no files of a node that does not come is done by others in
// the meantime, once; the rest waits for it.
func TestAway(t *testing.T) {
	b := newBench(t, 10, 1<<20, "sales")
	b.store.Anywhere = []string{"contact"}
	id := b.order("sales", 1)[0]
	b.exec("INSERT INTO events (call_id, org_id, kind, home) VALUES ($1, $2, $3, 'home')", id, b.org, control.CallEnded)
	take := func(home, age string) *control.Event {
		t.Helper()
		b.exec("UPDATE events SET created_at = now() - $1::interval", age)
		all, err := b.store.Take(t.Context(), control.Quick, home, time.Minute, 5)
		if err != nil || len(all) > 1 {
			t.Fatal(all, err)
		}
		if len(all) == 0 {
			return nil
		}
		if err = b.store.Again(t.Context(), all[0], 0); err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	if e := take("other", "20 seconds"); e != nil {
		t.Errorf("its node may still come: %+v", e)
	}
	e := take("other", "40 seconds")
	if e == nil || !e.Away {
		t.Fatalf("others do what they can: %+v", e)
	}
	if mine := take("home", "40 seconds"); mine == nil || mine.Away {
		t.Errorf("its own node: %+v", mine)
	}
	e.Followed = []string{"contact"}
	if err := b.store.Again(t.Context(), e, 0); err != nil {
		t.Fatal(err)
	}
	if again := take("other", "5 minutes"); again != nil {
		t.Errorf("others could do no more: %+v", again)
	}
	if late := take("other", "11 minutes"); late == nil || late.Away {
		t.Errorf("its node does not come: %+v", late)
	}
}

// TestUnknownWaitsForNobody: the end of an attempt that was lost with its server
// is followed by others at once, though the server never comes back; that of a
// conversation waits, since its recording lies there.
func TestUnknownWaitsForNobody(t *testing.T) {
	for at, want := range map[control.AttemptState]int{control.Sent: 1, control.Answered: 0} {
		b := newBench(t, 10, 1<<20, "sales")
		b.order("sales", 1)
		b.advance(b.claim("lost"), at)
		b.lapse()
		b.settle()
		all, err := b.store.Take(t.Context(), control.Quick, "home of another", time.Minute, 5)
		if err != nil || len(all) != want {
			t.Errorf("%s: another node follows %d events, %v", at, len(all), err)
		}
	}
}
