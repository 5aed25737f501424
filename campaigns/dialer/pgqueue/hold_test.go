package pgqueue

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/routehealth"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/circuitbreaker"
)

// endCall takes a contact and ends its call with a reason, a second after the answer.
func (s *env) endCall(why control.Reason) {
	s.Helper()
	s.rush()
	c := s.claim(s.fresh())
	s.over(c, why)
}

func (s *env) over(c *control.Claim, why control.Reason) {
	s.Helper()
	now := time.Now()
	f := control.CallResult{
		Status: control.Ended, Reason: why, HangupBy: control.SideSystem, DialedAt: now.Add(-2 * time.Second), AnsweredAt: now.Add(-time.Second), EndedAt: now,
		Recording: control.RecordingNone,
	}
	if err := s.calls.Finish(s.Context(), c.Lease, f); err != nil {
		s.Fatal(err)
	}
	if err := s.follower().HandleEvent(s.Context(), control.Event{Kind: control.CallEnded, CallID: c.Call.ID, OrgID: s.org}); err != nil {
		s.Fatal(err)
	}
}

// TestCampaignHolds: after three broken calls a campaign calls on no node; then one
// probe at a time is made by a node whose providers answer, until one passes.
func TestCampaignHolds(t *testing.T) {
	s := open(t)
	s.fill(12, 1)
	for range 3 {
		s.endCall("agent_error")
	}
	if got := s.text("SELECT id || state || fault FROM contacts WHERE state <> 'pending' ORDER BY n"); got != "con_1exhaustedagent_error con_2exhaustedagent_error con_3exhaustedagent_error" {
		t.Errorf("contacts: %s", got)
	}
	look := &routehealth.Monitor{Pool: s.db.Pool, Rules: circuitbreaker.DefaultRules(), Owner: "duty"}
	state := func(want string) {
		t.Helper()
		if _, err := look.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := s.text(`SELECT CASE WHEN open THEN 'open ' || extract(epoch FROM wait)::int || CASE WHEN probe_call <> '' THEN ' tried' ELSE '' END ELSE 'closed' END FROM campaign_breakers`)
		if got != want {
			t.Fatalf("the breaker is %s, want %s", got, want)
		}
	}
	state("open 10")
	due := func() { s.exec("UPDATE campaign_breakers SET probe_at = now()"); s.rush() }
	s.rush()
	for _, node := range []string{"node", "other"} {
		d := s.fresh()
		d.Store = s.book(node)
		if got := s.take(d); got != "" {
			t.Errorf("%s is called by %s while the campaign holds itself", got, node)
		}
	}
	due()
	b, verified := s.book("node"), false
	b.ProvidersVerified = func(context.Context, string, int) (bool, error) { return verified, nil }
	d := s.fresh()
	d.Store = b
	if got := s.take(d); got != "" {
		t.Errorf("%s is tried while the providers do not answer", got)
	}
	verified = true
	d.Wake("cmp_1")
	probe := s.claim(d)
	s.rush()
	if got := s.take(s.fresh()); got != "" {
		t.Errorf("%s is called beside the probe", got)
	}
	state("open 10 tried")
	s.over(probe, "internal_error")
	state("open 20")
	due()
	probe = s.claim(s.fresh())
	s.exec("UPDATE contact_attempts SET outcome = 'no_answer', ended_at = now() WHERE call_id = $1", probe.Call.ID) // says nothing
	state("open 20")
	s.rush()
	probe = s.claim(s.fresh()) // at once
	state("open 20 tried")
	s.over(probe, "callee_hangup")
	state("closed")
	for range 3 { // what was before the closing counts no more
		s.endCall("callee_hangup")
	}
	state("closed")
	s.endCall("agent_error")
	s.endCall("agent_error")
	state("closed")
}
