package pgqueue

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// addSecondCall adds a single call to the number of con_1, whose attempt is in a state.
func (s *env) addSecondCall(state control.AttemptState) (second control.Lease) {
	s.Helper()
	s.addCall("77010000001", "queued", 0, "name", "'second'")
	second = control.Lease{AttemptID: "att_second", CallID: s.query("SELECT id FROM calls WHERE name = 'second'"), Owner: "other", Epoch: 1}
	s.exec("UPDATE calls c SET trunk_id = s.trunk_id, route_id = s.id, from_number = '+77010000000' FROM subgroups s WHERE c.id = $1", second.CallID)
	s.exec(`INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, state, owner, epoch, lease_until)
		SELECT $1, id, org_id, trunk_id, route_id, $3, $4, $5, now() + interval '1 minute' FROM calls WHERE id = $2`,
		second.AttemptID, second.CallID, state, second.Owner, second.Epoch)
	return second
}

// optOut stores an opt-out in a call to con_1.
func (s *env) optOut(callID string) error {
	return (&outcome.OptOutRecorder{Pool: s.db.Pool, Store: &store.Store{Pool: s.db.Pool}}).OptOut(s.Context(), control.OptOut{
		OrgID: s.org, Number: "77010000001", CallID: callID, Source: pipeline.OptOutSpeech, At: time.Now(),
	})
}

// TestOptOutEndsOtherCalls checks that after an opt-out no other call of the organization reaches the number: calls whose
// phone may ring end, and calls whose INVITE has not left are not dialed.
func TestOptOutEndsOtherCalls(t *testing.T) {
	for state, ends := range map[control.AttemptState]bool{
		control.Claimed: false, control.Intent: true, control.Sent: true, control.Rang: true, control.Answered: false,
	} {
		t.Run(string(state), func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(1, 1)
			first := s.claim(s.newDialer())
			second := s.addSecondCall(state)
			if err := s.optOut(first.Call.ID); err != nil {
				t.Fatal(err)
			}
			asked, err := s.calls.EndRequests(t.Context(), second.Owner)
			if err != nil || (len(asked) == 1) != ends {
				t.Errorf("calls to end: %v, %v", asked, err)
			}
			var halt *control.HaltError
			if state == control.Claimed && (!errors.As(s.calls.Intent(t.Context(), second), &halt) || halt.Reason != control.ReasonDNCBlocked) {
				t.Errorf("the call is dialed: %v", halt)
			}
			if asked, err = s.calls.EndRequests(t.Context(), "node"); len(asked) != 0 || err != nil {
				t.Errorf("the call with the opt-out ends: %v, %v", asked, err)
			}
		})
	}
}

// TestOptOutDuringIntent checks an opt-out while the intent of another call is committed: the intent did not see the opt-out.
func TestOptOutDuringIntent(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	first := s.claim(s.newDialer())
	second := s.addSecondCall(control.Claimed)
	stored := make(chan error, 1)
	err := db.Tx(t.Context(), s.db.Pool, func(tx pgx.Tx) error { // as Intent does, in two steps
		if _, err := tx.Exec(t.Context(), "SELECT FROM attempts WHERE id = $1 FOR UPDATE", second.AttemptID); err != nil {
			return err
		}
		go func() { stored <- s.optOut(first.Call.ID) }()
		for {
			select {
			case err := <-stored:
				t.Error("the opt-out did not wait")
				stored <- err
				return err
			default:
			}
			waits := s.query("SELECT wait_event_type FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
			if waits == "" {
				continue
			}
			_, err := tx.Exec(t.Context(), "UPDATE attempts SET state = 'intent' WHERE id = $1", second.AttemptID)
			return err
		}
	})
	if err = errors.Join(err, <-stored); err != nil {
		t.Fatal(err)
	}
	if asked, err := s.calls.EndRequests(t.Context(), second.Owner); len(asked) != 1 || err != nil {
		t.Errorf("calls to end: %v, %v", asked, err)
	}
}
