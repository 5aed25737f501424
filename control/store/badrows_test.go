package store_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/store"
)

// decode parses JSON as the API does: numbers keep the digits as written.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(bytes.NewBufferString(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestJSONNumbersKeepSpelling stores numbers such as 1e-400000, which are short as written but long in decimal form,
// and reads them back unchanged.
func TestJSONNumbersKeepSpelling(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	tiny := decode(t, `{"a":[`+strings.TrimSuffix(strings.Repeat("1e-16000,", 70000), ",")+`],"b":1e-400000}`)
	c, err := b.controller.Place(t.Context(), b.org, admission.Order{Agent: "sales", To: "+12025550123", Variables: tiny, Metadata: decode(t, `{"x":1e-400000}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := b.call(c.ID)
	if got.Variables["b"] != json.Number("1e-400000") || got.Metadata["x"] != json.Number("1e-400000") {
		t.Errorf("variables %.80v, metadata %v", got.Variables, got.Metadata)
	}
	if page, fault := b.store.List(t.Context(), store.Filter{OrgID: b.org, Limit: 10}); fault != nil || len(page.Calls) != 1 {
		t.Errorf("list: %d %v", len(page.Calls), fault)
	}
	if claim := b.claim("n"); claim == nil || claim.Call.ID != c.ID {
		t.Error("the call is not claimed")
	}
	if c, err = b.store.End(t.Context(), b.org, c.ID); err != nil || !c.Status.Over() {
		t.Errorf("end: %v %s", err, c.Status)
	}
}

// TestBadRowDoesNotBlockQueue checks that a call whose row cannot be read ends, and that the other calls are dialed.
func TestBadRowDoesNotBlockQueue(t *testing.T) {
	for name, spoil := range map[string]string{
		"no object":              "UPDATE calls SET variables = '[]' WHERE id = $1",
		"a definition of no use": "UPDATE agent_versions v SET definition = '[]' FROM calls c WHERE c.id = $1 AND v.agent_id = c.agent_id",
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, 10, 1<<20, "bad", "good")
			bad, good := b.order("bad", 1)[0], b.order("good", 1)[0]
			b.exec("UPDATE subgroups SET next_dial_at = now() - interval '1 hour' WHERE name = 'bad'")
			b.exec(spoil, bad)
			claimed := map[string]bool{}
			for range 3 {
				if c := b.claim("n"); c != nil {
					claimed[c.Call.ID] = true
				}
			}
			if !claimed[good] || claimed[bad] {
				t.Errorf("claimed %v, want %s alone", claimed, good)
			}
			var status control.Status
			var reason control.Reason
			err := b.db.Pool.QueryRow(t.Context(), "SELECT status, disconnection_reason FROM calls WHERE id = $1", bad).Scan(&status, &reason)
			if err != nil || status != control.Failed || reason != control.ReasonInternalError || b.events(bad) != 1 {
				t.Errorf("the bad call is %s %s with %d events: %v", status, reason, b.events(bad), err)
			}
		})
	}
}

// TestInterruptedClaimKeepsCallQueued checks that a call stays in the queue if its claim is interrupted.
func TestInterruptedClaimKeepsCallQueued(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	id := b.order("sales", 1)[0]
	pc := b.db.Pool.Config()
	pc.ConnConfig.RuntimeParams["statement_timeout"] = "300"
	shortTimeout := newPool(t, pc)
	tx, err := b.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = tx.Exec(t.Context(), "LOCK TABLE agent_versions IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	s := &store.Store{Pool: shortTimeout}
	if c, fault := s.Claim(t.Context(), control.NodeID{Owner: "n"}, time.Minute, 1); fault == nil {
		t.Errorf("claimed %v past a locked table", c)
	}
	if err = tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := b.claim("n"); c == nil || c.Call.ID != id {
		t.Errorf("the call is %s", b.call(id).Status)
	}
}

func newPool(t *testing.T, c *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
