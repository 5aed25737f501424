package pgqueue

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/routehealth"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/circuitbreaker"
)

// takeAndFinish takes a contact and ends its call a second after the answer.
func (s *env) takeAndFinish(why control.Reason) {
	s.Helper()
	s.resetPace()
	c := s.claim(s.newDialer())
	s.finish(c, why)
}

func (s *env) finish(c *control.Claim, why control.Reason) {
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

// TestCampaignBreaker checks that after three broken calls no node calls for the campaign. Then nodes whose providers
// answer make one probe at a time, until one passes.
func TestCampaignBreaker(t *testing.T) {
	s := newEnv(t)
	s.addContacts(12, 1)
	for range 3 {
		s.takeAndFinish("agent_error")
	}
	s.wantQuery("con_1exhaustedagent_error con_2exhaustedagent_error con_3exhaustedagent_error", "SELECT id || state || fault FROM contacts WHERE state <> 'pending' ORDER BY n")
	monitor := &routehealth.Monitor{Pool: s.db.Pool, Rules: circuitbreaker.DefaultRules(), Owner: "duty"}
	state := func(want string) {
		t.Helper()
		if _, err := monitor.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := s.query(`SELECT CASE WHEN open THEN 'open ' || extract(epoch FROM wait)::int || CASE WHEN probe_call <> '' THEN ' probing' ELSE '' END ELSE 'closed' END FROM campaign_breakers`)
		if got != want {
			t.Fatalf("the breaker is %s, want %s", got, want)
		}
	}
	state("open 10")
	due := func() { s.exec("UPDATE campaign_breakers SET probe_at = now()"); s.resetPace() }
	s.resetPace()
	for _, node := range []string{"node", "other"} {
		d := s.newDialer()
		d.Store = s.queue(node)
		if got := s.take(d); got != "" {
			t.Errorf("%s took %s while the breaker is open", node, got)
		}
	}
	due()
	b, verified := s.queue("node"), false
	b.ProvidersVerified = func(context.Context, string, int) (bool, error) { return verified, nil }
	d := s.newDialer()
	d.Store = b
	s.wantTake(d, "")
	verified = true
	d.Wake("cmp_1")
	probe := s.claim(d)
	s.resetPace()
	s.wantTake(s.newDialer(), "")
	state("open 10 probing")
	s.finish(probe, "internal_error")
	state("open 20")
	due()
	probe = s.claim(s.newDialer())
	// An unanswered probe does not change the breaker.
	s.exec("UPDATE contact_attempts SET outcome = 'no_answer', ended_at = now() WHERE call_id = $1", probe.Call.ID)
	state("open 20")
	s.resetPace()
	probe = s.claim(s.newDialer())
	state("open 20 probing")
	s.finish(probe, "callee_hangup")
	state("closed")
	for range 3 { // calls before the breaker closed no longer count
		s.takeAndFinish("callee_hangup")
	}
	state("closed")
	s.takeAndFinish("agent_error")
	s.takeAndFinish("agent_error")
	state("closed")
}
