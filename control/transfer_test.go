package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// memoryLegs implements LegStore in memory.
type memoryLegs struct {
	mu     sync.Mutex
	wrote  []string
	refuse error
	wait   time.Duration
}

// legRate is the rate of transfer legs.
var legRate = 0.02

func (s *memoryLegs) OpenLeg(_ context.Context, l Lease, number string, lease time.Duration) (TransferLeg, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = append(s.wrote, fmt.Sprintf("open %s for %s, %v", number, l.AttemptID, lease))
	return TransferLeg{Lease: Lease{AttemptID: "att_2", CallID: l.CallID, Owner: l.Owner, Epoch: 1}, Number: "12", Dial: "912", Wait: s.wait, CostPerMinute: &legRate}, s.refuse
}

func (s *memoryLegs) MoveLeg(_ context.Context, l Lease, to AttemptState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = append(s.wrote, l.AttemptID+" "+string(to))
	return nil
}

// targetDialer is a Dialer whose result depends on the target.
type targetDialer func(to media.Target, progress func(media.Progress)) (media.Leg, error)

func (p targetDialer) Dial(ctx context.Context, to media.Target, progress func(media.Progress)) (media.Leg, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return p(to, progress)
}

func TestTransferLeg(t *testing.T) {
	busy := &media.DialError{Cause: media.Busy, Status: 486}
	for _, row := range []struct {
		name   string
		book   *memoryLegs
		leg    media.Leg
		err    error
		wrote  []string
		dialed bool
	}{
		{"answered", &memoryLegs{}, &silentLeg{}, nil, []string{"open +1 2 for att_1, 15s", "att_2 sent", "att_2 ringing", "att_2 answered"}, true},
		{"after a paced start", &memoryLegs{wait: 3 * time.Second}, &silentLeg{}, nil, []string{"open +1 2 for att_1, 15s", "att_2 sent", "att_2 ringing", "att_2 answered"}, true},
		{"busy", &memoryLegs{}, nil, busy, []string{"open +1 2 for att_1, 15s", "att_2 sent", "att_2 ringing", "att_2 ended"}, true},
		{"refused", &memoryLegs{refuse: ErrFenced}, nil, ErrFenced, []string{"open +1 2 for att_1, 15s"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var second media.Target
				var took time.Duration
				r := &Runner{Attempts: &memoryStore{}, Live: &Live{}, Legs: row.book, Dialer: targetDialer(func(to media.Target, progress func(media.Progress)) (media.Leg, error) {
					if to.ID != "att_2" {
						return &silentLeg{}, nil
					}
					second = to
					progress(media.Sent)
					progress(media.Ringing)
					return row.leg, row.err
				})}
				r.Talker = talkFunc(func(ctx context.Context, b pipeline.SessionConfig) (pipeline.Outcome, error) {
					began := time.Now()
					leg, err := b.Bridge(ctx, "+1 2")
					took = time.Since(began)
					if !errors.Is(err, row.err) || (leg == nil) != (row.err != nil) {
						t.Errorf("%v, %v", leg, err)
					}
					return pipeline.Outcome{Reason: pipeline.AgentHungUp}, nil
				})
				c := newClaim()
				c.Target = media.Target{ID: "att_1", To: "1", From: "+7", Trunk: media.Trunk{Proxy: "sip:a"}, RingTimeout: time.Minute}
				began := time.Now()
				var legs []AnsweredLeg
				c.OnEnd = func(f CallResult) { legs = f.TransferLegs }
				if err := r.Run(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if row.err != nil && len(legs) > 0 ||
					row.err == nil && (len(legs) != 1 || !legs[0].AnsweredAt.Equal(began.Add(took)) || *legs[0].CostPerMinute != legRate) {
					t.Errorf("answered legs %+v", legs)
				}
				if !slices.Equal(row.book.wrote, row.wrote) {
					t.Errorf("wrote %q, want %q", row.book.wrote, row.wrote)
				}
				if took != row.book.wait {
					t.Errorf("took %v", took)
				}
				if row.dialed != (second.ID != "") {
					t.Fatalf("dialed %+v", second)
				}
				if row.dialed && (second.To != "912" || second.Number != "12" || second.From != "+7" || second.Trunk.Proxy != "sip:a" ||
					!second.NotAfter.Equal(began.Add(10*time.Second+row.book.wait))) {
					t.Errorf("dialed %+v", second)
				}
			})
		})
	}
}

// TestTransferLegEndsWithCall checks that a transfer leg that waits for pacing is not dialed after its call has
// ended.
func TestTransferLegEndsWithCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryLegs{wait: 4 * time.Second}
		r := &Runner{Attempts: &memoryStore{}, Live: &Live{}, Legs: s, Dialer: targetDialer(func(to media.Target, _ func(media.Progress)) (media.Leg, error) {
			if to.ID == "att_2" {
				t.Error("the leg was dialed")
			}
			return &silentLeg{}, nil
		})}
		r.Talker = talkFunc(func(ctx context.Context, b pipeline.SessionConfig) (pipeline.Outcome, error) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if _, err := b.Bridge(short, "2"); err == nil {
				t.Error("Bridge returned a leg")
			}
			return pipeline.Outcome{Reason: pipeline.CallerHungUp}, nil
		})
		if err := r.Run(t.Context(), newClaim()); err != nil {
			t.Fatal(err)
		}
		if want := "att_2 ended"; s.wrote[len(s.wrote)-1] != want {
			t.Errorf("wrote %q", s.wrote)
		}
	})
}
