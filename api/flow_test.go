package api_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-voice/parley/control"
)

func TestCallLifecycle(t *testing.T) {
	h := newEnv(t)
	id := h.place()
	c := h.do("GET", "/v1/calls/"+id, "").json(t)
	if c["status"] != "queued" || c["to_number"] != "+12025550123" || c["from_number"] != "+12025550100" || c["dialed_at"] != nil {
		t.Errorf("after POST: %v", c)
	}
	far := &carrier{}
	h.startNode(far, conversation(twoLines), nil)

	c = h.await(id, "ended")
	if c["disconnection_reason"] != "callee_hangup" || c["hangup_by"] != "callee" || c["answered_at"] == nil || c["ringing_at"] == nil || c["dialed_at"] == nil {
		t.Errorf("at the end: %v", c)
	}
	dials := far.targets()
	if len(dials) != 1 || dials[0].To != "912025550123" || dials[0].From != "+12025550100" || dials[0].ID == "" {
		t.Fatalf("dialed %+v", dials)
	}
	if lines := c["transcript"].([]any); len(lines) != 2 || lines[0].(map[string]any)["text"] != "Hello Ada." {
		t.Errorf("transcript %v", lines)
	}
	var turns []map[string]any
	if err := json.Unmarshal(h.do("GET", "/v1/calls/"+id+"/turns", "").body, &turns); err != nil || len(turns) != 1 {
		t.Errorf("turns %v: %v", turns, err)
	}
	if events := h.count("SELECT count(*) FROM events WHERE call_id = $1 AND kind = $2", id, control.CallEnded); events != 1 {
		t.Errorf("%d events", events)
	}
}
