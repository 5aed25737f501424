package follow

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
)

func TestCame(t *testing.T) {
	at := time.Unix(1795222586, 0)
	ended := func(by string, after time.Duration, why control.Reason) control.Call {
		return control.Call{Status: control.Ended, AnsweredBy: by, AnsweredAt: at, EndedAt: at.Add(after), Reason: why}
	}
	failed := func(why control.Reason) control.Call { return control.Call{Status: control.Failed, Reason: why} }
	for _, c := range []struct {
		name string
		call control.Call
		want retry.Outcome
	}{
		{"a conversation", ended("human", time.Minute, "callee_hangup"), retry.Answered},
		{"nobody looked who it was", ended("", time.Minute, "agent_hangup"), retry.Answered},
		{"a word", ended("human", 9*time.Second, "callee_hangup"), retry.ShortCall},
		{"its server was lost in the first word", ended("", time.Second, control.ReasonNodeLost), retry.Answered},
		{"a machine", ended("voicemail", time.Minute, "voicemail_dropped"), retry.Voicemail},
		{"a menu", ended("ivr", time.Minute, "ivr_reached"), retry.IVR},
		{"a fax", ended("fax", time.Minute, "agent_hangup"), retry.InvalidNumber},
		{"nobody", failed("no_answer"), retry.NoAnswer},
		{"it may have rung", failed(control.ReasonUnknown), retry.NoAnswer},
		{"its server came back", control.Call{Status: control.Failed, Reason: control.ReasonUnknown, AnsweredAt: at, EndedAt: at.Add(time.Minute)}, retry.Answered},
		{"busy", failed("busy"), retry.Busy},
		{"declined", failed("declined"), retry.Declined},
		{"ended before the answer", failed(control.ReasonCancelled), retry.Declined},
		{"no such number", failed("invalid_number"), retry.InvalidNumber},
		{"a full carrier", failed("congestion"), retry.Congestion},
		{"the route", failed("route_error"), retry.Failed},
		{"ours", failed(control.ReasonInternalError), retry.Failed},
	} {
		if got := Came(c.call); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	least, most := 1.0, -1.0
	for range 2000 {
		x := spread(control.NewID("call_", time.Now()))
		least, most = min(least, x), max(most, x)
	}
	if least < -1 || most > 1 || least > -0.9 || most < 0.9 {
		t.Errorf("%v to %v", least, most)
	}
}
