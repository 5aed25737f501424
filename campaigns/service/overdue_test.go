package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// answerAll makes an answered call to every contact of a campaign, and returns the calls by number. Each call awaits
// its analysis.
func (o *env) answerAll(t *testing.T, campaignID string) map[string]string {
	t.Helper()
	calls := map[string]string{}
	for _, contact := range o.mustColumn(t, "SELECT id || ' ' || number FROM contacts WHERE campaign_id = $1", campaignID) {
		id, number, _ := strings.Cut(contact, " ")
		call, ok, err := o.beginCall(id)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if state, err := o.record(call, retry.Answered, true); err != nil || state != campaigns.Awaiting {
			t.Fatal(state, err)
		}
		calls[number] = call
	}
	return calls
}

// TestOverdue checks that a contact waits for the analysis of its call for 15 minutes by the database's clock, and
// then continues without it. An analysis in time decides the next state; a later one changes nothing.
func TestOverdue(t *testing.T) {
	o := newOrganization(t)
	const late, early = "+12125550101", "+12125550102"
	rules := json.RawMessage(`{"attempts": 3, "rules": [{"on": ["answered"], "when": {"analysis.again": true}, "action": "redial", "interval_s": 60}]}`)
	st := o.mustCreate(t, campaigns.Spec{Strategy: "expert", Retry: rules}, true, late, early)
	calls := o.answerAll(t, st.Campaign.ID)
	d := &outcome.OverdueSettler{Recorder: o.recorder(), Log: slog.New(slog.DiscardHandler)}
	settle := func(age string) int {
		t.Helper()
		o.exec(t, "UPDATE contacts SET awaiting_since = clock_timestamp() - $1::interval WHERE number = $2", age, late)
		n, err := d.Settle(o.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := settle("14 minutes 50 seconds"); n != 0 || o.contacts(t, late) != "awaiting" {
		t.Errorf("%d contacts were settled too early", n)
	}
	if n := settle("15 minutes"); n != 1 || o.contacts(t, late) != "done" || o.contacts(t, early) != "awaiting" {
		t.Errorf("%d are settled; %s, %s", n, o.contacts(t, late), o.contacts(t, early))
	}
	for number, want := range map[string]campaigns.State{late: campaigns.Done, early: campaigns.Pending} {
		var state campaigns.State
		err := o.tx(func(tx pgx.Tx) (fault error) {
			state, fault = o.recorder().RecordAnalysis(o.ctx, tx, calls[number], map[string]json.RawMessage{"again": json.RawMessage("true")}, 0)
			return fault
		})
		if err != nil || state != want {
			t.Errorf("%s is %s after the analysis, %v", number, state, err)
		}
	}
}

// TestOverdueSkipsFailingContact checks that a contact that cannot be settled does not delay others,
// and is not retried endlessly.
func TestOverdueSkipsFailingContact(t *testing.T) {
	o := newOrganization(t)
	const broken, other = "+12125550101", "+12125550102"
	st := o.mustCreate(t, campaigns.Spec{}, true, broken, other)
	o.answerAll(t, st.Campaign.ID)
	for _, sql := range []string{
		"UPDATE contacts SET awaiting_since = clock_timestamp() - interval '1 hour' WHERE number = '" + broken + "'",
		"UPDATE contacts SET awaiting_since = clock_timestamp() - interval '20 minutes' WHERE number = '" + other + "'",
		"DELETE FROM contact_attempts WHERE number = '" + broken + "'",
	} {
		o.exec(t, sql)
	}
	ctx, cancel := context.WithTimeout(o.ctx, 5*time.Second)
	defer cancel()
	n, err := (&outcome.OverdueSettler{Recorder: o.recorder(), Log: slog.New(slog.DiscardHandler)}).Settle(ctx)
	if n != 1 || !errors.Is(err, outcome.ErrNoContact) || o.contacts(t, other) != "done" {
		t.Errorf("%d are settled, %v; the other is %s", n, err, o.contacts(t, other))
	}
}

// TestRunDueSkipsFailingCampaign checks that a campaign that cannot be completed does not delay the
// others.
func TestRunDueSkipsFailingCampaign(t *testing.T) {
	o := newOrganization(t)
	var ids []string
	for _, number := range []string{"+12125550101", "+12125550102"} {
		st := o.mustCreate(t, campaigns.Spec{}, true, number)
		ids = append(ids, st.Campaign.ID)
	}
	for _, sql := range []string{
		"UPDATE contacts SET state = 'done'",
		"ALTER TABLE campaigns ADD CONSTRAINT stuck CHECK (status <> 'completed' OR id <> '" + min(ids[0], ids[1]) + "')",
	} {
		o.exec(t, sql)
	}
	err := o.RunDue(o.ctx)
	got, fault := o.column("SELECT status FROM campaigns ORDER BY id")
	if fault != nil || !slices.Equal(got, []string{"running", "completed"}) || err == nil || !strings.Contains(err.Error(), min(ids[0], ids[1])) {
		t.Errorf("statuses %v, %v: %v", got, fault, err)
	}
}

// TestIdleRunDue checks that RunDue is one statement while no campaign is due.
func TestIdleRunDue(t *testing.T) {
	o := newOrganization(t)
	o.mustCreate(t, campaigns.Spec{}, true, "+12125550101")
	pool, statements := dbtest.Traced(t, o.db)
	o.Pool = pool
	for _, tt := range []struct {
		sql  string
		idle bool
	}{{"SELECT", true}, {"UPDATE contacts SET state = 'done'", false}, {"SELECT", true}} {
		o.exec(t, tt.sql)
		if err := o.RunDue(o.ctx); err != nil {
			t.Fatal(err)
		}
		if all := statements(); (len(all) == 1) != tt.idle {
			t.Errorf("%s: statements %q", tt.sql, all)
		}
	}
}

// TestNumberAddedTwice checks that adding a number again creates another contact with its own attempts. Both contacts
// wait for their own next attempts, and are never in a call at the same time.
func TestNumberAddedTwice(t *testing.T) {
	o := newOrganization(t)
	const number = "+12125550101"
	st := o.mustCreate(t, campaigns.Spec{Retry: json.RawMessage(`{"attempts": 2, "interval_s": 900}`)}, true, number)
	contacts := func() []string {
		t.Helper()
		all := o.mustColumn(t, "SELECT id FROM contacts WHERE campaign_id = $1 ORDER BY created_at, id", st.Campaign.ID)
		return all
	}
	call := func(id string, want campaigns.State) {
		t.Helper()
		c, ok, fault := o.beginCall(id)
		if fault != nil || !ok {
			t.Fatal(ok, fault)
		}
		for _, other := range contacts() { // no contact of the number can be called now
			if _, ok, fault = o.beginCall(other); ok || fault != nil && !isUniqueViolation(fault) {
				t.Fatal(ok, fault)
			}
		}
		if state, fault := o.record(c, retry.NoAnswer, false); fault != nil || state != want {
			t.Fatalf("%s, %v, want %s", state, fault, want)
		}
	}
	first := contacts()[0]
	call(first, campaigns.Pending)
	o.advance(time.Second)
	if _, err := o.Add(o.ctx, o.org, st.Campaign.ID, testActor(), rowsOf(number), service.BatchHooks{}); err != nil {
		t.Fatal(err)
	}
	second := contacts()[1]
	if _, ok, fault := o.beginCall(first); ok || fault != nil {
		t.Fatalf("the first contact is called before its next attempt: %v, %v", ok, fault)
	}
	call(second, campaigns.Pending) // with an attempt left
	o.advance(20 * time.Minute)
	call(first, campaigns.Exhausted)
	call(second, campaigns.Exhausted)
}
