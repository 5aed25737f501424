package place_test

import (
	"context"
	"sync"
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/place"
)

// TestWhoHangsUpMeanwhile: an order that is being registered when its client gives
// up has its call: nothing that it holds goes back before that is known.
func TestWhoHangsUpMeanwhile(t *testing.T) {
	w := newTown(t)
	const orders = 12
	var all sync.WaitGroup
	for n := range orders {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := ""
			c, err := w.desk.Place(ctx, w.org["acme"], place.Order{Agent: "sales", To: "+12025550123"}, func(batch *db.Batch, c control.Call) error {
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
	if n := w.id("SELECT count(*)::text FROM calls"); n != "12" {
		t.Errorf("%s calls of %d orders", n, orders)
	}
}
