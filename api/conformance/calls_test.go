package conformance_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-voice/parley/sip/siptest"
)

// TestCalls covers the life of a call.
func TestCalls(t *testing.T) {
	checkAll(t, "C", []statement{
		{1, "a call is queued, ringing, ongoing, ended", callLifecycle},
		{2, "a busy call fails", busyCall},
		{3, "the turns of a call are an array", turnsAreAnArray},
		{4, "an unknown call returns 404 call_not_found", unknownCall},
	})
}

func callLifecycle(t *testing.T, s *service) {
	o := s.organization(t)
	ring, talk := make(chan struct{}), make(chan struct{})
	number := s.phones(func(siptest.Invite) siptest.Script {
		<-ring
		return siptest.Script{After: 500 * time.Millisecond, Status: http.StatusOK, Talk: hangUpOn(talk)}
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
		t.Errorf("disconnection_reason %v", c["disconnection_reason"])
	}
	if n := len(s.invitesTo(number)); n != 1 {
		t.Errorf("%d INVITEs", n)
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
	if turns := o.do(t, "GET", "/v1/calls/"+id+"/turns", "").want(t, 200).list(t); len(turns) != 0 {
		t.Errorf("a call without a conversation has %d turns", len(turns))
	}
}

func unknownCall(t *testing.T, s *service) {
	o := s.empty(t)
	for _, id := range []string{"call_00000000000000000000000000", "x", "%00", "%ff"} {
		wantError(t, o.do(t, "GET", "/v1/calls/"+id, ""), 404, "call_not_found")
		wantError(t, o.do(t, "GET", "/v1/calls/"+id+"/turns", ""), 404, "call_not_found")
		wantError(t, o.do(t, "POST", "/v1/calls/"+id+"/end", ""), 404, "call_not_found")
	}
}
