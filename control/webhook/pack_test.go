package webhook_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/webhook"
)

// TestPackedDelivery checks that a delivered payload is packed, reads as it was, and is sent as it was after a replay.
func TestPackedDelivery(t *testing.T) {
	p := newFixture(t)
	p.sender.Pack = func() bool { return true }
	status := http.StatusInternalServerError
	var bodies [][]byte
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, body)
		w.WriteHeader(status)
	}))
	t.Cleanup(target.Close)
	p.endpoints(target.URL)
	p.insertEnded(1)
	p.exec("INSERT INTO webhook_deliveries (id, endpoint_id, call_id, type, payload, next_at, created_at, org_id) SELECT 'evt_other', endpoint_id, call_id, 'call_analyzed', 'other', next_at + interval '1 hour', created_at, org_id FROM webhook_deliveries")
	id := p.value("SELECT id FROM webhook_deliveries WHERE id <> 'evt_other'")
	check := func(state string, packed bool) {
		t.Helper()
		d, body, err := webhook.ReadDelivery(t.Context(), p.db.Pool, p.org, id)
		if err != nil || d.State != state || len(body) == 0 || !bytes.Equal(body, bodies[0]) {
			t.Errorf("%s %q, want %s %q: %v", d.State, body, state, bodies[0], err)
		}
		if is := p.value("SELECT (length(payload) = 0)::text FROM webhook_deliveries WHERE id <> 'evt_other'"); is != map[bool]string{true: "true", false: "false"}[packed] {
			t.Errorf("%s: packed is %s", state, is)
		}
	}
	p.passTime(time.Second)
	check("pending", false)
	status = http.StatusNoContent
	p.passTime(time.Hour)
	check("delivered", true)
	if n, err := webhook.Replay(t.Context(), p.db.Pool, id, false); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	p.passTime(24 * time.Hour)
	check("delivered", true)
	if len(bodies) != 4 || !bytes.Equal(bodies[0], bodies[1]) || !bytes.Equal(bodies[0], bodies[3]) || string(bodies[2]) != "other" {
		t.Errorf("sent %q", bodies)
	}
	if _, body, err := webhook.ReadDelivery(t.Context(), p.db.Pool, p.org, "evt_other"); err != nil || string(body) != "other" {
		t.Errorf("%q, %v", body, err)
	}
	if holder := p.value("SELECT string_agg(id, ' ') FROM webhook_deliveries WHERE packed IS NOT NULL AND packed_in IS NULL"); holder != id {
		t.Errorf("%s has the pack, want the last one to be delivered, %s", holder, id)
	}
}
