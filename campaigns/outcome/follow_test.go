package outcome

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/pipeline"
)

func TestClassify(t *testing.T) {
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
		{"not detected who answered", ended("", time.Minute, "agent_hangup"), retry.Answered},
		{"a short call", ended("human", 9*time.Second, "callee_hangup"), retry.ShortCall},
		{"node lost after the answer", ended("", time.Second, control.ReasonNodeLost), retry.Answered},
		{"a machine", ended("voicemail", time.Minute, "voicemail_dropped"), retry.Voicemail},
		{"a menu", ended("ivr", time.Minute, "ivr_reached"), retry.IVR},
		{"a fax", ended("fax", time.Minute, "agent_hangup"), retry.InvalidNumber},
		{"no answer", failed("no_answer"), retry.NoAnswer},
		{"it may have rung", failed(control.ReasonUnknown), retry.NoAnswer},
		{"the node returned", control.Call{Status: control.Failed, Reason: control.ReasonUnknown, AnsweredAt: at, EndedAt: at.Add(time.Minute)}, retry.Answered},
		{"busy", failed("busy"), retry.Busy},
		{"declined", failed("declined"), retry.Declined},
		{"ended before the answer", failed(control.ReasonCanceled), retry.Declined},
		{"no such number", failed("invalid_number"), retry.InvalidNumber},
		{"congestion", failed("congestion"), retry.Congestion},
		{"the route", failed("route_error"), retry.Failed},
		{"this service", failed(control.ReasonInternalError), retry.Failed},
	} {
		if got := Classify(c.call, false); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// fakeCalls returns the words of one call.
type fakeCalls struct {
	Calls

	lines []pipeline.Line
}

func (t fakeCalls) Transcript(context.Context, string) (control.Transcript, error) {
	return control.Transcript{Lines: t.lines}, nil
}

// TestIsBroken checks that a call is a failed attempt if a fault of the service ends it before the first whole
// sentence, or within ten seconds. A call that ends later was a conversation.
func TestIsBroken(t *testing.T) {
	at := time.Unix(1795222586, 0)
	said := func(text string, interrupted bool) []pipeline.Line {
		return []pipeline.Line{{Role: pipeline.RoleAgent, Text: text, Interrupted: interrupted}}
	}
	for _, c := range []struct {
		name   string
		why    control.Reason
		by     string
		after  time.Duration
		lines  []pipeline.Line
		broken bool
		want   retry.Outcome
	}{
		{"at once", "agent_error", "", 3 * time.Millisecond, nil, true, retry.Failed},
		{"at once, another fault", control.ReasonInternalError, "", time.Second, nil, true, retry.Failed},
		{"a sentence, within ten seconds", "agent_error", "human", 9 * time.Second, said("Hello.", false), true, retry.Failed},
		{"silence for longer", "agent_error", "human", 12 * time.Second, nil, true, retry.Failed},
		{"the callee alone talked", "agent_error", "human", 12 * time.Second, []pipeline.Line{{Role: pipeline.RoleCaller, Text: "Hello?"}}, true, retry.Failed},
		{"part of a sentence", "agent_error", "human", 12 * time.Second, said("Hello, this", true), true, retry.Failed},
		{"a sentence and a part", "agent_error", "human", 12 * time.Second, said("Hello. This", true), false, retry.Answered},
		{"a sentence", "agent_error", "human", 10 * time.Second, said("Hello there", false), false, retry.Answered},
		{"a machine, at once", "agent_error", "voicemail", time.Second, nil, true, retry.Failed},
		{"a fax", "agent_error", "fax", time.Second, nil, true, retry.InvalidNumber},
		{"not by a fault", "callee_hangup", "human", time.Second, nil, false, retry.ShortCall},
		{"node lost", control.ReasonNodeLost, "", time.Second, nil, false, retry.Answered},
	} {
		call := control.Call{Status: control.Ended, AnsweredBy: c.by, AnsweredAt: at, EndedAt: at.Add(c.after), Reason: c.why}
		f := Follower{Calls: fakeCalls{lines: c.lines}}
		broken, err := f.isBroken(t.Context(), call)
		if got := Classify(call, broken); err != nil || broken != c.broken || got != c.want {
			t.Errorf("%s: %v %s %v, want %v %s", c.name, broken, got, err, c.broken, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	least, most := 1.0, -1.0
	for range 2000 {
		x := spreadOf(control.NewID("call_", time.Now()))
		least, most = min(least, x), max(most, x)
	}
	if least < -1 || most > 1 || least > -0.9 || most < 0.9 {
		t.Errorf("%v to %v", least, most)
	}
}
