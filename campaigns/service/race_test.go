package service_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
)

// numbers returns n numbers of New York.
func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("+1212555%04d", i))
	}
	return all
}

// TestConcurrentTakeAndWithdraw checks that if takes and withdrawals run concurrently, each contact is either taken
// or withdrawn, and no number is in two calls.
func TestConcurrentTakeAndWithdraw(t *testing.T) {
	o := newOrganization(t)
	all := numbers(60)
	first := o.mustCreate(t, campaigns.Spec{}, true, all...)
	second, err := o.create(campaigns.Spec{}, true, all...) // the same numbers as the first campaign
	if err != nil {
		t.Fatal(err)
	}
	ids := o.mustColumn(t, "SELECT id FROM contacts WHERE org_id = $1 ORDER BY number, id", o.org)
	var tasks sync.WaitGroup
	var mu sync.Mutex
	withdrawn := map[string]bool{}
	for w := range 2 {
		tasks.Go(func() { // one takes from the first contact on, the other from the last
			for i := range ids {
				if w == 1 {
					i = len(ids) - 1 - i
				}
				if _, _, fault := o.beginCall(ids[i]); fault != nil && !isUniqueViolation(fault) {
					t.Error(fault)
				}
			}
		})
		tasks.Go(func() { // withdraws every other number
			for i := w; i < len(all); i += 4 {
				sent, _ := json.Marshal(all[i])
				done, fault := o.Withdraw(o.ctx, o.org, testActor(), service.WithdrawRequest{Phones: []json.RawMessage{sent}})
				if fault != nil {
					t.Error(fault)
				}
				mu.Lock()
				for _, x := range done.Withdrawn {
					withdrawn[x.ContactID] = true
				}
				mu.Unlock()
			}
		})
	}
	tasks.Wait()
	live := o.mustColumn(t, "SELECT contact_id FROM contact_attempts WHERE org_id = $1 AND ended_at IS NULL", o.org)
	for _, id := range live {
		if withdrawn[id] {
			t.Errorf("contact %s was withdrawn and is called", id)
		}
	}
	if len(live) == 0 || len(withdrawn) == 0 {
		t.Errorf("%d were called, %d withdrawn: there was no race", len(live), len(withdrawn))
	}
	twice, err := o.column("SELECT number FROM contact_attempts WHERE org_id = $1 AND ended_at IS NULL GROUP BY number HAVING count(*) > 1", o.org)
	if err != nil || len(twice) > 0 {
		t.Errorf("%v are in two calls, %v", twice, err)
	}
	for _, st := range []service.Status{first, second} {
		if p, err := o.Progress(o.ctx, o.org, st.Campaign.ID); err != nil || violatedInvariant(p) != "" {
			t.Errorf("%v: %s in %+v", err, violatedInvariant(p), p)
		}
	}
}

// isUniqueViolation reports whether the database forbade a second call.
func isUniqueViolation(err error) bool {
	var pg interface{ SQLState() string }
	return errors.As(err, &pg) && pg.SQLState() == "23505"
}

// TestNoTakeAfterPause checks that no contact is taken after a campaign was paused, was canceled or ended.
func TestNoTakeAfterPause(t *testing.T) {
	o := newOrganization(t)
	for name, stop := range map[string]func(id string) error{
		"pause": func(id string) error {
			_, err := o.Pause(o.ctx, o.org, id, testActor())
			return err
		},
		"cancel": func(id string) error {
			_, err := o.Cancel(o.ctx, o.org, id, testActor())
			return err
		},
	} {
		st := o.mustCreate(t, campaigns.Spec{}, true, numbers(40)...)
		ids := o.mustColumn(t, "SELECT id FROM contacts WHERE campaign_id = $1", st.Campaign.ID)
		begun, stopped := make(chan struct{}), make(chan struct{})
		var once sync.Once
		var tasks sync.WaitGroup
		for w := range 2 {
			tasks.Go(func() {
				for i := w; i < len(ids); i += 2 {
					late := false
					select {
					case <-stopped:
						late = true
					default:
					}
					call, ok, err := o.beginCall(ids[i])
					if err != nil || ok && late {
						t.Errorf("%s: contact %d was taken: %v %v", name, i, ok, err)
					}
					if ok {
						once.Do(func() { close(begun) })
						if _, err := o.record(call, retry.NoAnswer, false); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		<-begun
		if err := stop(st.Campaign.ID); err != nil {
			t.Error(err)
		}
		close(stopped)
		tasks.Wait()
	}
}

// createSingle creates a campaign with one contact.
func (o *env) createSingle(t *testing.T, spec campaigns.Spec) (campaign, contact string) {
	t.Helper()
	st := o.mustCreate(t, spec, true, "+12125550101")
	ids, err := o.column("SELECT id FROM contacts WHERE campaign_id = $1", st.Campaign.ID)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	return st.Campaign.ID, ids[0]
}

// TestOutcomes checks that the outcome of a call changes the state of its contact once.
func TestOutcomes(t *testing.T) {
	o := newOrganization(t)
	spec := campaigns.Spec{Strategy: "expert", Retry: json.RawMessage(`{"attempts":3,"interval_s":60,"rules":[
		{"on":["no_answer"],"action":"redial","max":1},
		{"on":["answered"],"when":{"analysis.again":true},"action":"redial","at":"analysis.when"},
		{"on":["declined"],"action":"stop"}]}`)}
	campaign, contact := o.createSingle(t, spec)
	call := func(what retry.Outcome, awaits bool, want campaigns.State) string {
		t.Helper()
		id, ok, err := o.beginCall(contact)
		if err != nil || !ok {
			t.Fatalf("taken: %v %v", ok, err)
		}
		if _, again, fault := o.beginCall(contact); again || fault != nil {
			t.Errorf("taken twice: %v", fault)
		}
		for range 2 { // the second time changes nothing
			if state, fault := o.record(id, what, awaits); fault != nil || state != want {
				t.Errorf("%s: %s, %v, want %s", what, state, fault, want)
			}
		}
		return id
	}
	analyze := func(id, analysis string, want campaigns.State) {
		t.Helper()
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(analysis), &fields); err != nil {
			t.Fatal(err)
		}
		if err := o.tx(func(tx pgx.Tx) error {
			state, fault := o.recorder().RecordAnalysis(o.ctx, tx, id, fields, 0)
			if state != want {
				t.Errorf("after the analysis the contact is %s, want %s", state, want)
			}
			return fault
		}); err != nil {
			t.Error(err)
		}
	}
	id := call(retry.NoAnswer, false, campaigns.Pending)
	if _, ok, err := o.beginCall(contact); ok || err != nil {
		t.Errorf("it was taken before its next attempt: %v", err)
	}
	analyze(id, `{"again":true}`, campaigns.Pending) // no analysis is awaited
	o.advance(time.Minute)
	id = call(retry.Answered, true, campaigns.Awaiting)
	analyze(id, fmt.Sprintf(`{"again":true,"when":%d}`, o.Now().Add(time.Hour).Unix()), campaigns.Pending)
	o.advance(59 * time.Minute)
	if _, ok, err := o.beginCall(contact); ok || err != nil {
		t.Errorf("it was taken before its next attempt: %v", err)
	}
	o.advance(time.Minute)
	if given, ok, err := o.beginCall(contact); err != nil || !ok {
		t.Fatal(ok, err)
	} else if err = o.tx(func(tx pgx.Tx) error { _, fault := o.Store.Attempts.Revert(o.ctx, tx, given, 0, o.Now()); return fault }); err != nil {
		t.Fatal(err)
	}
	call(retry.NoAnswer, false, campaigns.Exhausted) // the rule has no redial left, and no other rule matches
	if err := o.tx(func(tx pgx.Tx) error {
		_, fault := o.recorder().Record(o.ctx, tx, outcome.Outcome{CallID: "call_x", Result: retry.Busy, Ended: o.Now()})
		return fault
	}); !errors.Is(err, outcome.ErrNoContact) {
		t.Errorf("a call without a contact: %v", err)
	}
	if p, err := o.Progress(o.ctx, o.org, campaign); err != nil || p.Counters.Attempts != 3 || p.Counters.NoAnswer != 2 || p.Counters.Answered != 1 || violatedInvariant(p) != "" {
		t.Errorf("%+v %v", p, err)
	}
	if err := o.RunDue(o.ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := o.Get(o.ctx, o.org, campaign, screening.Fresh); err != nil || got.Campaign.StatusReason != campaigns.QueueDrained {
		t.Errorf("%+v %v", got.Campaign, err)
	}
}

// TestPauseWaitsForTake checks that a pause waits for a transaction that takes a contact, so that no contact is taken
// after the pause.
func TestPauseWaitsForTake(t *testing.T) {
	o := newOrganization(t)
	campaign, contact := o.createSingle(t, campaigns.Spec{})
	paused := make(chan error, 1)
	err := o.tx(func(tx pgx.Tx) error {
		if ok, fault := o.Store.Attempts.Begin(o.ctx, tx, contact, "call_1", o.Now()); !ok || fault != nil {
			t.Errorf("taken: %v %v", ok, fault)
		}
		go func() {
			_, fault := o.Pause(o.ctx, o.org, campaign, testActor())
			paused <- fault
		}()
		for {
			select {
			case fault := <-paused:
				t.Errorf("the pause did not wait for the transaction: %v", fault)
				paused <- fault
				return nil
			default:
			}
			waits, fault := o.column("SELECT wait_event_type FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
			if fault != nil || len(waits) > 0 {
				return fault
			}
		}
	})
	if err = errors.Join(err, <-paused); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := o.beginCall(contact); ok || err != nil {
		t.Errorf("taken while paused: %v %v", ok, err)
	}
}

// TestTalliesAreRepaired checks that deleted or doubled tallies are recounted while contacts change;
// correct ones are not touched.
func TestTalliesAreRepaired(t *testing.T) {
	o := newOrganization(t)
	st := o.mustCreate(t, campaigns.Spec{}, true, numbers(60)...)
	all := &store.TallyFolder{Pool: o.db.Pool}
	for _, damage := range append([]string{"SELECT 1"}, tallyDamage...) {
		o.exec(t, damage)
		var others sync.WaitGroup
		others.Go(func() {
			for i := range 60 {
				if _, fault := o.db.Pool.Exec(t.Context(), "UPDATE contacts SET attempts = 1 - attempts WHERE campaign_id = $1 AND n = $2", st.Campaign.ID, i+1); fault != nil {
					t.Error(fault)
				}
			}
		})
		others.Go(func() {
			for range 10 {
				if fault := all.Fold(t.Context()); fault != nil {
					t.Error(fault)
				}
			}
		})
		repaired, err := all.Repair(t.Context())
		others.Wait()
		if want := strings.Contains(damage, "contact_tallies"); err != nil || slices.Equal(repaired, []string{st.Campaign.ID}) != want {
			t.Errorf("%s: repaired %v, %v", damage, repaired, err)
		}
		wrong, err := o.column(`SELECT concat_ws(' ', state, tried, sum(n)) FROM (
			SELECT state, tried, -n AS n FROM contact_tallies WHERE campaign_id = $1
			UNION ALL SELECT state, state = 'pending' AND attempts > 0, count(*) FROM contacts WHERE campaign_id = $1 GROUP BY 1, 2) x
			GROUP BY state, tried HAVING sum(n) <> 0`, st.Campaign.ID)
		if err != nil || len(wrong) > 0 {
			t.Errorf("%s: off by %q, %v", damage, wrong, err)
		}
	}
}
