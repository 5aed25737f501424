package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// web places a web call. The hash of its ticket is the call's id.
func (b *fixture) web() string {
	b.t.Helper()
	b.controller.Web = &admission.WebCalls{
		HasCapacity: func() bool { return true }, Check: func(pipeline.Engines) error { return nil },
		Ticket: func(callID string, now time.Time) admission.Ticket {
			return admission.Ticket{Hash: []byte(callID), Expires: now.Add(time.Minute)}
		},
	}
	c, _, err := b.controller.PlaceWeb(b.t.Context(), b.org, admission.WebOrder{Agent: "a"}, func(context.Context, db.Querier, control.Call, admission.Ticket) error { return nil })
	if err != nil {
		b.t.Fatal(err)
	}
	return c.ID
}

func (b *fixture) join(id, hash string) (*control.Claim, control.Code) {
	b.t.Helper()
	c, err := b.store.Join(b.t.Context(), id, []byte(hash), control.NodeID{Owner: "n1", Home: "home"}, time.Minute)
	if err != nil {
		return nil, control.CodeOf(err)
	}
	return c, ""
}

func (b *fixture) expireTicket(id string) {
	b.t.Helper()
	b.exec("UPDATE web_tickets SET expires_at = now() WHERE call_id = $1", id)
}

// TestWebTicket checks that a ticket is valid once, for a limited time, and only for its call.
func TestWebTicket(t *testing.T) {
	b := newFixture(t, 10, 100, "a")
	id := b.web()
	if c := b.call(id); c.Type != control.Web || c.Status != control.Queued || c.MaxDuration == 0 {
		t.Errorf("%+v", c)
	}
	if _, code := b.join(id, "another"); code != control.CodeTicketInvalid {
		t.Errorf("another's token: %s", code)
	}
	if _, code := b.join("call_none", "x"); code != control.CodeCallNotFound {
		t.Errorf("no call: %s", code)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	codes := map[control.Code]int{}
	for range 20 {
		all.Go(func() {
			_, code := b.join(id, id)
			mu.Lock()
			codes[code]++
			mu.Unlock()
		})
	}
	all.Wait()
	if codes[""] != 1 || codes[control.CodeTicketUsed] != 19 {
		t.Errorf("20 at once: %v", codes)
	}
	expired := b.web()
	b.expireTicket(expired)
	if _, code := b.join(expired, expired); code != control.CodeTicketExpired {
		t.Errorf("late: %s", code)
	}
	ended := b.web()
	if c, err := b.store.End(t.Context(), b.org, ended); err != nil || c.Status != control.Ended || c.Reason != control.ReasonCanceled || c.HangupBy != control.SideAPI {
		t.Errorf("ended before it was joined: %+v %v", c, err)
	}
	if _, code := b.join(ended, ended); code != control.CodeCallOver {
		t.Errorf("of a call that is over: %s", code)
	}
	if b.events(ended) != 1 {
		t.Error("want one event of the canceled call")
	}
}

// TestWebNeverJoined checks that a web call that nobody joins in time ends as never joined, and that a web call never
// gets the status "failed".
func TestWebNeverJoined(t *testing.T) {
	b := newFixture(t, 10, 100, "a")
	fresh, left, joined := b.web(), b.web(), b.web()
	b.expireTicket(left)
	if _, code := b.join(joined, joined); code != "" {
		t.Fatal(code)
	}
	b.expireTicket(joined)
	for range 2 {
		if _, err := b.store.Settle(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if c := b.call(left); c.Status != control.Ended || c.Reason != control.ReasonNeverJoined || b.events(left) != 1 {
		t.Errorf("%+v", c)
	}
	for _, id := range []string{fresh, joined} {
		if c := b.call(id); c.Status != control.Queued {
			t.Errorf("%+v", c)
		}
	}
	// The node is lost before the conversation. A browser cannot be called again.
	b.exec("UPDATE attempts SET lease_until = now() - interval '1 s'")
	if _, err := b.store.Settle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if c := b.call(joined); c.Status != control.Ended || c.Reason != control.ReasonNodeLost {
		t.Errorf("%+v", c)
	}
	if b.claim("n2") != nil {
		t.Error("a web call is claimed from the queue")
	}
}

// TestWebOngoing checks that a web call is ongoing from its first words on.
func TestWebOngoing(t *testing.T) {
	b := newFixture(t, 10, 100, "a")
	id := b.web()
	c, code := b.join(id, id)
	if code != "" {
		t.Fatal(code)
	}
	ctx := t.Context()
	if err := b.store.Intent(ctx, c.Lease); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Mark(ctx, c.Lease, control.Answered, time.Now()); err != nil {
		t.Fatal(err)
	}
	if c := b.call(id); c.Status != control.Queued || c.AnsweredAt.IsZero() || c.RecordingStatus != control.RecordingInProgress {
		t.Errorf("joined: %+v", c)
	}
	if err := b.store.Note(ctx, c.Lease, control.Notes{Lines: []pipeline.Line{{Role: pipeline.RoleAgent, Text: "Hello."}}, Begins: true}); err != nil {
		t.Fatal(err)
	}
	if c := b.call(id); c.Status != control.Ongoing {
		t.Errorf("after the first words: %+v", c)
	}
	if c, err := b.store.End(ctx, b.org, id); err != nil || c.Status.Over() {
		t.Errorf("the API ended an ongoing call, which only its node may end: %+v %v", c, err)
	}
	if ids, err := b.store.EndRequests(ctx, "n1"); err != nil || len(ids) != 1 {
		t.Errorf("%v %v", ids, err)
	}
}
