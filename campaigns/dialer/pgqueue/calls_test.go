package pgqueue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	controlstore "github.com/parley-voice/parley/control/store"
)

// follower applies the results of calls to contacts.
func (s *env) follower() *outcome.Follower {
	return &outcome.Follower{Recorder: &outcome.Recorder{Pool: s.db.Pool, Store: &store.Store{Pool: s.db.Pool}}, Calls: s.calls}
}

// claim takes one contact, which must exist.
func (s *env) claim(d *dialer.Dialer) *control.Claim {
	s.Helper()
	claim, _, err := d.Take(s.Context())
	if err != nil || claim == nil {
		s.Fatalf("claim %v: %v", claim, err)
	}
	return claim
}

// TestUnsentCallCostsNoAttempt checks that a call costs no attempt if a fault of the service ends it before its
// INVITE leaves. Another node may soon make the call.
func TestUnsentCallCostsNoAttempt(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		end  control.CallResult
		want string
	}{
		"no INVITE":   {control.CallResult{Reason: control.ReasonInternalError}, "pending0 after 1 min"},
		"INVITE sent": {control.CallResult{Reason: control.ReasonInternalError, DialedAt: now}, "exhausted1"},
		"answered":    {control.CallResult{Reason: control.ReasonInternalError, SIPStatus: 200}, "exhausted1"},
		"route error": {control.CallResult{Reason: "route_error"}, "exhausted1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(1, 1)
			c := s.claim(s.newDialer())
			tt.end.Status, tt.end.HangupBy, tt.end.EndedAt, tt.end.Recording = control.Failed, control.SideSystem, now, control.RecordingNone
			if err := s.calls.Finish(t.Context(), c.Lease, tt.end); err != nil {
				t.Fatal(err)
			}
			if err := s.follower().HandleEvent(t.Context(), control.Event{Kind: control.CallEnded, CallID: c.Call.ID, OrgID: s.org}); err != nil {
				t.Fatal(err)
			}
			s.wantQuery(tt.want, `SELECT state || attempts || CASE WHEN due_at > now() THEN ' after ' || round(extract(epoch FROM due_at - now()) / 60) || ' min' ELSE '' END FROM contacts`)
		})
	}
}

// TestNodeCannotTalk checks that a node that cannot run the agent of a campaign takes none of
// its contacts, and that a node that can does.
func TestNodeCannotTalk(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	s.exec("UPDATE campaigns SET agent_version = 1")
	b := s.queue("node")
	able := false
	b.CanTalk = func(_ context.Context, agentID string, version int) (bool, error) {
		if agentID == "" || version != 1 {
			t.Errorf("asked about version %d of %q", version, agentID)
		}
		return able, nil
	}
	d := &dialer.Dialer{Store: b}
	s.wantTake(d, "")
	s.wantQuery("pending0", "SELECT state || attempts FROM contacts UNION ALL SELECT id FROM calls UNION ALL SELECT 'paced' FROM campaign_paces WHERE next_at > '-infinity'")
	able = true
	d.Wake("cmp_1")
	s.wantTake(d, "con_1")
}

// TestHistoryClocks checks that a call is never older than its registration in the database, even if the clock of its
// node is slow. A call that rang or was answered counts even if its INVITE is not recorded.
func TestHistoryClocks(t *testing.T) {
	s := newEnv(t)
	for name, tt := range map[string]struct {
		columns, values string
		dials           int
		dialed, talked  time.Duration // longest accepted time since the dial and since the conversation; -1 for none
	}{
		"clock ten minutes behind":       {"dialed_at, answered_at, ended_at", "now() - interval '15 minutes', now() - interval '15 minutes', now() - interval '11 minutes'", 1, 5 * time.Minute, time.Minute},
		"clock ten minutes ahead":        {"dialed_at, answered_at, ended_at", "now() + interval '5 minutes', now() + interval '5 minutes', now() + interval '9 minutes'", 1, 0, 0},
		"correct clock":                  {"dialed_at, answered_at, ended_at", "now() - interval '5 minutes', now() - interval '5 minutes', now() - interval '2 minutes'", 1, 5 * time.Minute, 2 * time.Minute},
		"INVITE not recorded, node lost": {"answered_at, ended_at, disconnection_reason, answered_by", "now() - interval '4 minutes', now(), 'node_lost', 'voicemail'", 1, 5 * time.Minute, -1},
		"INVITE not recorded, rang":      {"ringing_at, ended_at", "now() - interval '4 minutes', now()", 1, 5 * time.Minute, -1},
		"never dialed":                   {"ended_at", "now()", 0, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s.exec("DELETE FROM calls")
			s.addCall("77010000001", "ended", 5, tt.columns, tt.values)
			k := s.history(s.db.Pool, "77010000001", time.Hour)
			since := func(at time.Time, most time.Duration) bool {
				return at.IsZero() == (most < 0) && (most < 0 || time.Since(at) < most+10*time.Second)
			}
			if len(k.History.Dials) != tt.dials || tt.dials > 0 && !since(k.History.Dials[0], tt.dialed) || !since(k.History.Talked, tt.talked) {
				t.Errorf("dialed %v, talked until %v", k.History.Dials, k.History.Talked)
			}
		})
	}
}

// TestRetryClocks checks that a redial is due by the database's clock, even if a node's clock differs.
func TestRetryClocks(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"behind": -10 * time.Minute, "ahead": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(1, 1)
			s.exec(`UPDATE campaigns SET retry = '{"attempts": 3, "interval_s": 900}'`)
			c := s.claim(s.newDialer())
			at := time.Now().Add(ahead)
			if err := s.calls.Finish(t.Context(), c.Lease, control.CallResult{
				Status: control.Failed, Reason: "no_answer", SIPStatus: 480, DialedAt: at, EndedAt: at, Recording: control.RecordingNone,
			}); err != nil {
				t.Fatal(err)
			}
			all, err := (&controlstore.EventStore{Pool: s.db.Pool}).Take(t.Context(), control.FastLane, "home", time.Minute, 9)
			if err != nil || len(all) != 1 {
				t.Fatalf("%d events: %v", len(all), err)
			}
			if err = s.follower().HandleEvent(t.Context(), *all[0]); err != nil {
				t.Fatal(err)
			}
			// The delay varies by up to a tenth.
			if got := s.query("SELECT (next_attempt_at - now())::text FROM contacts WHERE abs(extract(epoch FROM next_attempt_at - now()) - 900) > 100"); got != "" {
				t.Errorf("the redial is due in %s", got)
			}
		})
	}
}

// TestClockGoesBack checks that campaigns continue after a failover to a database whose clock is behind, although the
// stored paces are in its future.
func TestClockGoesBack(t *testing.T) {
	for name, tt := range map[string]struct {
		sql  string
		want string
	}{
		"campaign": {"UPDATE campaign_paces SET next_at = now() + interval '10 minutes', last_at = now() + interval '10 minutes'", "con_1"},
		"campaign, route and trunk": {`WITH a AS (UPDATE campaign_paces SET next_at = now() + interval '10 minutes'), b AS (UPDATE subgroups SET next_dial_at = now() + interval '10 minutes')
			UPDATE trunks SET next_dial_at = now() + interval '10 minutes'`, "con_1"},
		// The next call of a slow trunk may be due that far ahead.
		"slow trunk":               {"UPDATE trunks SET calls_per_second = 0.001, next_dial_at = now() + interval '10 minutes'", ""},
		"less than a minute ahead": {"UPDATE campaign_paces SET next_at = now() + interval '50 seconds', last_at = now() + interval '49 seconds'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(1, 1)
			s.exec(tt.sql)
			s.wantTake(s.newDialer(), tt.want)
		})
	}
}

// loseNode makes a call pass the states and loses its node.
func (s *env) loseNode(c *control.Claim, states ...control.AttemptState) {
	s.Helper()
	err := s.calls.Intent(s.Context(), c.Lease)
	for _, state := range states {
		err = errors.Join(err, s.calls.Mark(s.Context(), c.Lease, state, time.Now()))
	}
	s.exec("UPDATE attempts SET lease_until = now() - interval '1 second'")
	n, fault := s.calls.Settle(s.Context(), nil)
	if err = errors.Join(err, fault, s.follower().HandleEvent(s.Context(), control.Event{Kind: control.CallEnded, CallID: c.Call.ID, OrgID: s.org})); n != 1 || err != nil {
		s.Fatalf("%d settled: %v", n, err)
	}
}

// TestLostNodeMayStillTalk checks that the number of a call on a lost node is not called for as long as that call may
// last, because the callee may still talk with the lost node.
func TestLostNodeMayStillTalk(t *testing.T) {
	for name, tt := range map[string]struct{ sql, want string }{
		"no limit":          {"SELECT", ""},
		"within the limit":  {`UPDATE agent_versions SET definition = definition || '{"max_duration_s": 600}'; UPDATE calls SET ended_at = now() - interval '9 minutes'`, ""},
		"after the limit":   {`UPDATE agent_versions SET definition = definition || '{"max_duration_s": 600}'; UPDATE calls SET ended_at = now() - interval '11 minutes'`, "con_1"},
		"after the default": {"UPDATE calls SET ended_at = now() - interval '31 minutes'", "con_1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(1, 1)
			s.exec(`UPDATE campaigns SET retry = '{"attempts": 3, "interval_s": 60}'`)
			s.loseNode(s.claim(s.newDialer()), control.Sent, control.Rang)
			s.exec("UPDATE contacts SET next_attempt_at = now() - interval '1 second', due_at = now()") // a minute later
			for sql := range strings.SplitSeq(tt.sql, "; ") {
				s.exec(sql)
			}
			s.resetPace()
			s.wantTake(s.newDialer(), tt.want)
		})
	}
}

// TestLostConversationMayContinue checks that no other campaign calls the number of a conversation whose node was lost for
// as long as it may last. A node that only lost the database continues its conversations.
func TestLostConversationMayContinue(t *testing.T) {
	for name, tt := range map[string]struct{ sql, want string }{
		"no limit":          {"SELECT", ""},
		"within the limit":  {`UPDATE agent_versions SET definition = definition || '{"max_duration_s": 600}'; UPDATE calls SET created_at = now() - interval '10 minutes', answered_at = now() - interval '9 minutes'`, ""},
		"clock behind":      {`UPDATE agent_versions SET definition = definition || '{"max_duration_s": 600}'; UPDATE calls SET answered_at = now() - interval '20 minutes'`, ""},
		"after the limit":   {`UPDATE agent_versions SET definition = definition || '{"max_duration_s": 600}'; UPDATE calls SET created_at = now() - interval '12 minutes', answered_at = now() - interval '11 minutes'`, "con_second"},
		"after the default": {"UPDATE calls SET created_at = now() - interval '32 minutes', answered_at = now() - interval '31 minutes'", "con_second"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(1, 1)
			s.loseNode(s.claim(s.newDialer()), control.Sent, control.Rang, control.Answered)
			s.wantQuery("awaiting node_lost", "SELECT k.state || ' ' || c.disconnection_reason FROM contacts k JOIN calls c ON c.contact_id = k.id")
			s.addSecondCampaign()
			s.exec("UPDATE contacts SET state = 'pending', number = '+77010000001' WHERE id = 'con_second'")
			for sql := range strings.SplitSeq(tt.sql, "; ") {
				s.exec(sql)
			}
			s.resetPace()
			s.wantTake(s.newDialer(), tt.want)
		})
	}
}

// TestLateConversation checks a node that was declared lost, returns and reports a conversation. The conversation
// counts, and the contact is not called again.
func TestLateConversation(t *testing.T) {
	for _, tt := range []struct{ by, want string }{
		{"human", "done 1 answered"}, {"", "done 1 answered"}, {"voicemail", "pending 1 no_answer"},
	} {
		s := newEnv(t)
		s.addContacts(1, 1)
		s.exec(`UPDATE campaigns SET retry = '{"attempts": 3, "interval_s": 60}'`)
		c := s.claim(s.newDialer())
		s.loseNode(c, control.Sent, control.Rang)
		now := time.Now()
		s.exec("UPDATE calls SET cost_per_minute = 0.5")
		late := &outcome.LateRecorder{AttemptStore: s.calls, Outcomes: s.follower().Recorder, Costs: &controlstore.Costs{Pool: s.db.Pool}}
		for range 2 { // repeating it has no effect
			err := late.Finish(t.Context(), c.Lease, control.CallResult{
				Status: control.Ended, DialedAt: now.Add(-time.Minute), AnsweredAt: now.Add(-30 * time.Second), EndedAt: now, AnsweredBy: tt.by, Recording: control.RecordingNone,
			})
			if !errors.Is(err, control.ErrFenced) {
				t.Fatal(err)
			}
		}
		if got := s.query("SELECT concat_ws(' ', k.state, k.attempts, x.outcome) FROM contacts k JOIN contact_attempts x ON x.contact_id = k.id"); got != tt.want {
			t.Errorf("%q answered: the contact is %s, want %s", tt.by, got, tt.want)
		}
		s.wantQuery("250000000 0.25 30", "SELECT concat_ws(' ', cost_nano, costs ->> 'amount', costs -> 'trunk' ->> 'seconds') FROM calls")
		k := s.history(s.db.Pool, "77010000001", time.Hour)
		if k.Engaged || len(k.History.Dials) != 1 || k.History.Talked.IsZero() != (tt.by == "voicemail") {
			t.Errorf("%q answered: engaged %v, %+v", tt.by, k.Engaged, k.History)
		}
	}
	// Only the node that holds the lease of a call may report its end, unless the node was declared lost.
	s := newEnv(t)
	s.addContacts(1, 1)
	c := s.claim(s.newDialer())
	late := &outcome.LateRecorder{AttemptStore: s.calls, Outcomes: s.follower().Recorder}
	other := c.Lease
	other.Epoch += 7
	if err := late.Finish(t.Context(), other, control.CallResult{Status: control.Ended, AnsweredAt: time.Now(), EndedAt: time.Now()}); !errors.Is(err, control.ErrFenced) {
		t.Error(err)
	}
	s.wantQuery("in_call queued", "SELECT k.state || ' ' || c.status FROM contacts k, calls c WHERE c.answered_at IS NULL")
}
