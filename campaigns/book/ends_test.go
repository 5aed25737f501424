package book

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/dialler"
	"github.com/parley-voice/parley/campaigns/follow"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
)

// follower tells contacts what came of their calls.
func (s *shop) follower() *follow.Follower {
	return &follow.Follower{Ledger: &outcome.Ledger{Pool: s.db.Pool, Store: &store.Store{Pool: s.db.Pool}}, Calls: s.calls}
}

// claim takes one contact, who must be there.
func (s *shop) claim(d *dialler.Dialler) *control.Claim {
	s.Helper()
	claim, _, err := d.Take(s.Context())
	if err != nil || claim == nil {
		s.Fatalf("claim %v: %v", claim, err)
	}
	return claim
}

// TestNothingSent: a call that ended for a fault of ours before its request left
// costs its contact no attempt; another server may make it in a moment.
func TestNothingSent(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		end  control.Final
		want string
	}{
		"its agent cannot talk here": {control.Final{Reason: control.ReasonInternalError}, "pending0 after 1 min"},
		"its request left":           {control.Final{Reason: control.ReasonInternalError, DialedAt: now}, "exhausted1"},
		"it was answered":            {control.Final{Reason: control.ReasonInternalError, SIPStatus: 200}, "exhausted1"},
		"the route failed it":        {control.Final{Reason: "route_error"}, "exhausted1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.fill(1, 1)
			c := s.claim(s.fresh())
			tt.end.Status, tt.end.HangupBy, tt.end.EndedAt, tt.end.Recording = control.Failed, control.SideSystem, now, control.RecordingNone
			if err := s.calls.Finish(t.Context(), c.Lease, tt.end); err != nil {
				t.Fatal(err)
			}
			if err := s.follower().Follow(t.Context(), control.Event{Kind: control.CallEnded, CallID: c.Call.ID, OrgID: s.org}); err != nil {
				t.Fatal(err)
			}
			if got := s.text(`SELECT state || attempts || CASE WHEN due_at > now() THEN ' after ' || round(extract(epoch FROM due_at - now()) / 60) || ' min' ELSE '' END FROM contacts`); got != tt.want {
				t.Errorf("the contact is %s, want %s", got, tt.want)
			}
		})
	}
}

// TestCannotTalk: a server that cannot talk as the agent of a campaign takes none
// of its contacts; one that can does.
func TestCannotTalk(t *testing.T) {
	s := open(t)
	s.fill(1, 1)
	s.exec("UPDATE campaigns SET agent_version = 1")
	b := s.book("node")
	asked, able := 0, false
	b.Able = func(_ context.Context, agentID string, version int) error {
		asked++
		if agentID == "" || version != 1 {
			t.Errorf("asked about version %d of %q", version, agentID)
		}
		if !able {
			return errors.New("speech.tts: no such provider")
		}
		return nil
	}
	d := &dialler.Dialler{Book: b}
	if got := s.take(d); got != "" {
		t.Errorf("%s is called by a server that cannot talk", got)
	}
	if got := s.text("SELECT state || attempts FROM contacts UNION ALL SELECT id FROM calls UNION ALL SELECT 'paced' FROM campaign_paces WHERE next_at > '-infinity'"); got != "pending0" {
		t.Errorf("left behind: %s", got)
	}
	able, asked = true, 0
	for range 3 {
		b.asked = time.Time{}
		if _, _, err := b.Running(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.take(d); got != "con_1" || asked != 1 {
		t.Errorf("%q is called by a server that can talk, which was asked %d times", got, asked)
	}
}
