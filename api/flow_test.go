package api_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-voice/parley/control"
)

func TestCallFromPostToEnd(t *testing.T) {
	h := newHouse(t)
	id := h.place()
	c := h.do("GET", "/v1/calls/"+id, "").json(t)
	if c["status"] != "queued" || c["to_number"] != "+12025550123" || c["from_number"] != "+12025550100" || c["dialed_at"] != nil {
		t.Errorf("after POST: %v", c)
	}
	far := &carrier{}
	h.node(far, chat(shortChat), nil)

	c = h.await(id, "ended")
	if c["disconnection_reason"] != "callee_hangup" || c["hangup_by"] != "callee" || c["answered_at"] == nil || c["ringing_at"] == nil || c["dialed_at"] == nil {
		t.Errorf("at the end: %v", c)
	}
	dials := far.dialled()
	if len(dials) != 1 || dials[0].To != "912025550123" || dials[0].From != "+12025550100" || dials[0].ID == "" {
		t.Fatalf("dialled %+v", dials)
	}
	if lines := c["transcript"].([]any); len(lines) != 2 || lines[0].(map[string]any)["text"] != "Hello Ada." {
		t.Errorf("transcript %v", lines)
	}
	var turns []map[string]any
	if err := json.Unmarshal(h.do("GET", "/v1/calls/"+id+"/turns", "").body, &turns); err != nil || len(turns) != 1 {
		t.Errorf("turns %v: %v", turns, err)
	}
	var events int
	if err := h.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM events WHERE call_id = $1 AND kind = $2", id, control.CallEnded).Scan(&events); err != nil || events != 1 {
		t.Errorf("%d events: %v", events, err)
	}
}
