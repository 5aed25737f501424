package conformance_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-voice/parley/sip/siptest"
)

// TestCalls covers the life of a call.
func TestCalls(t *testing.T) {
	hold(t, "C", []statement{
		{1, "a call goes queued, ringing, ongoing, ended", lifeOfACall},
		{2, "a call that nobody answers is failed", busyCall},
		{3, "the turns of a call are an array", turnsAreAnArray},
		{4, "an unknown call is 404 call_not_found", unknownCall},
	})
}

func lifeOfACall(t *testing.T, s *service) {
	o := s.organization(t)
	ring, talk := make(chan struct{}), make(chan struct{})
	number := s.phones(func(siptest.Invite) siptest.Script {
		<-ring
		return siptest.Script{After: 500 * time.Millisecond, Status: http.StatusOK, Talk: hangsUpOn(talk)}
	})
	id := o.place(t, number)
	if c := o.await(t, id, "queued"); c["ringing_at"] != nil || c["answered_at"] != nil {
		t.Errorf("a queued call: %v", c)
	}
	close(ring)
	o.await(t, id, "ringing")
	o.await(t, id, "ongoing")
	close(talk)
	if c := o.await(t, id, "ended"); c["disconnection_reason"] != "callee_hangup" {
		t.Errorf("the call ended by %v", c["disconnection_reason"])
	}
	if n := len(s.rung(number)); n != 1 {
		t.Errorf("it rang %d times", n)
	}
}

func busyCall(t *testing.T, s *service) {
	o := s.organization(t)
	id := o.place(t, s.phone(siptest.Script{Status: 486, Reason: "Busy Here"}))
	if c := o.await(t, id, "failed"); c["disconnection_reason"] != "busy" || c["answered_at"] != nil {
		t.Errorf("%v, answered at %v", c["disconnection_reason"], c["answered_at"])
	}
}

func turnsAreAnArray(t *testing.T, s *service) {
	o := s.organization(t)
	id := o.place(t, s.phone(siptest.Script{Status: 486}))
	o.await(t, id, "failed")
	if turns := o.do(t, "GET", "/v1/calls/"+id+"/turns", "").is(t, 200).list(t); len(turns) != 0 {
		t.Errorf("a call without a conversation has %d turns", len(turns))
	}
}

func unknownCall(t *testing.T, s *service) {
	o := s.empty(t)
	for _, id := range []string{"call_00000000000000000000000000", "x", "%00", "%ff"} {
		refused(t, o.do(t, "GET", "/v1/calls/"+id, ""), 404, "call_not_found")
		refused(t, o.do(t, "GET", "/v1/calls/"+id+"/turns", ""), 404, "call_not_found")
		refused(t, o.do(t, "POST", "/v1/calls/"+id+"/end", ""), 404, "call_not_found")
	}
}
