package campaigncli

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/callview"
)

func TestTimeline(t *testing.T) {
	var k call
	err := json.Unmarshal([]byte(`{"call_id": "c", "status": "ended", "agent_id": "demo", "to_number": "+12025550123", "from_number": "+12025550100",
		"created_at": 1000, "dialed_at": 1000.2, "ringing_at": 1001, "answered_at": 1003.5, "ended_at": 1009, "answered_by": "human",
		"disconnection_reason": "callee_hangup", "sip_status": 200, "transcript": [
			{"role": "agent", "text": "Hello.", "start_s": 0.5, "turn": 0}, {"role": "caller", "text": "Hi\u001b[2J", "start_s": 2, "turn": 1},
			{"role": "agent", "text": "Yes?", "start_s": 3, "turn": 1, "interrupted": true}]}`), &k)
	if err != nil {
		t.Fatal(err)
	}
	turns := []turn{{1, map[string]any{"turn_ms": 640.4, "llm_ms": 300.0}}}
	at := func(s float64) time.Time { return time.UnixMilli(int64(s * 1000)) }
	ladder := []callview.Rung{
		{At: at(1000.3), Out: true, Peer: "192.0.2.1:5060/UDP", Line: "INVITE sip:x"}, {At: at(1001), Peer: "192.0.2.1:5060/UDP", Line: "180 Ringing"},
	}
	var out bytes.Buffer
	if err := printEvents(&out, timeline(k, turns, ladder)); err != nil {
		t.Fatal(err)
	}
	const want = `1970-01-01 00:16:40.000 UTC
    +0.000  state   queued: agent demo calls +12025550123
    +0.200  state   dialed from +12025550100
    +0.300  sip     → 192.0.2.1:5060/UDP INVITE sip:x
    +1.000  state   ringing
    +1.000  sip     ← 192.0.2.1:5060/UDP 180 Ringing
    +3.500  state   answered human
    +4.000  agent   Hello.
    +5.500  caller  Hi\u001b[2J
    +6.500  agent   Yes? [ms: turn 640, llm 300] (interrupted)
    +9.000  state   ended: callee_hangup
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	queued := call{Status: "queued", Created: 1000, Agent: "demo"}
	if got := timeline(queued, nil, nil); len(got) != 1 {
		t.Errorf("a queued call: %v", got)
	}
}
