package admission_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
)

// TestClientDisconnectsDuringRegistration checks that an order becomes a call even if its client disconnects during
// the registration. The limiter place and the idempotency key are released only when the result is known.
func TestClientDisconnectsDuringRegistration(t *testing.T) {
	w := newFixture(t)
	const orders = 12
	var all sync.WaitGroup
	for n := range orders {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := ""
			c, err := w.controller.Place(ctx, w.org["acme"], admission.Order{Agent: "sales", To: "+12025550123"}, func(batch *db.Batch, c control.Call) error {
				batch.Queue("SELECT pg_sleep(0.02)")
				seen = c.ID
				if n%2 == 0 {
					cancel()
				}
				return nil
			})
			if err != nil || c.ID == "" || c.ID != seen {
				t.Errorf("%d: %q, but was shown %q: %v", n, c.ID, seen, err)
			}
		})
	}
	all.Wait()
	if n := w.text("SELECT count(*)::text FROM calls"); n != "12" {
		t.Errorf("%s calls of %d orders", n, orders)
	}
}

// TestLockedRowDelaysOnlyItsTenant checks that a locked row delays only the orders of its organization.
func TestLockedRowDelaysOnlyItsTenant(t *testing.T) {
	w := newFixture(t)
	tx, err := w.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, code := w.order("globex", admission.Order{Agent: "helpdesk"}); code != "" { // creates the subgroup's counter
		t.Fatal(code)
	}
	if _, err = tx.Exec(t.Context(), "UPDATE subgroup_counts SET registered = registered"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	began := time.Now()
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			org, agent := "acme", "sales"
			if n%3 == 0 {
				org, agent = "globex", "helpdesk"
			}
			_, err := w.controller.Place(ctx, w.org[org], admission.Order{Agent: agent, To: "+12025550123"}, nil)
			if held := org == "globex"; held != (control.CodeOf(err) == control.CodeVoiceBackend) || !held && err != nil {
				t.Errorf("%s: %v", org, err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("%s waited %v", org, took)
			}
		})
	}
	all.Wait()
}

// TestBadOrderFailsAlone checks that an order that the database rejects fails alone.
func TestBadOrderFailsAlone(t *testing.T) {
	w := newFixture(t)
	var all sync.WaitGroup
	for n := range 24 {
		all.Go(func() {
			o := admission.Order{Agent: "sales", To: "+12025550123"}
			if n%8 == 3 {
				o.Agent = "sales\x00"
			}
			if _, err := w.controller.Place(t.Context(), w.org["acme"], o, nil); (err != nil) != (n%8 == 3) {
				t.Errorf("%d: %v", n, err)
			}
		})
	}
	all.Wait()
}
