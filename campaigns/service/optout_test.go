package service_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/pipeline"
)

// contacts returns the states of a number's contacts by campaign.
func (o *env) contacts(t *testing.T, number string) string {
	t.Helper()
	all := o.mustColumn(t, "SELECT state || CASE WHEN reason = '' THEN '' ELSE ':' || reason END FROM contacts WHERE org_id = $1 AND number = $2 ORDER BY created_at, id", o.org, number)
	return strings.Join(all, " ")
}

// TestOptOut checks that after an opt-out is confirmed, the number is on the organization's list and waits in no live
// campaign. The contact in the call is suppressed when the call ends. Replacing the list or repeating the opt-out
// changes nothing.
func TestOptOut(t *testing.T) {
	o := newEnv(t)
	other := newEnv(t) // with another organization in the same database
	other.db, other.Service = o.db, o.Service
	const number, second = "+12125550101", "+12125550102"
	for _, x := range []*env{other, o} {
		if err := x.addOrganization(); err != nil {
			t.Fatal(err)
		}
	}
	other.mustCreate(t, campaigns.Spec{}, true, number)
	var all []string
	for i := range 4 { // contacts that are in a call, awaiting and pending, and one of a draft
		st := o.mustCreate(t, campaigns.Spec{Retry: json.RawMessage(`{"attempts": 3}`)}, i < 3, number, second)
		ids := o.mustColumn(t, "SELECT id FROM contacts WHERE campaign_id = $1 ORDER BY number", st.Campaign.ID)
		all = append(all, ids[0])
		o.advance(time.Millisecond)
	}
	awaited, ok, err := o.beginCall(all[1])
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err = o.record(awaited, retry.Answered, true); err != nil {
		t.Fatal(err)
	}
	call, ok, err := o.beginCall(all[0])
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if got := o.contacts(t, number); got != "in_call awaiting pending pending" {
		t.Fatal(got)
	}
	d := &outcome.OptOutRecorder{Pool: o.db.Pool, Store: o.Store}
	for range 2 {
		if err = d.OptOut(o.ctx, control.OptOut{OrgID: o.org, Number: "12125550101", CallID: call, Source: pipeline.OptOutKey, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if got := o.contacts(t, number); got != "in_call suppressed:opted_out suppressed:opted_out pending" { // a draft is screened at its launch
		t.Errorf("%s", got)
	}
	if state, fault := o.record(call, retry.Answered, true); fault != nil || state != campaigns.Suppressed {
		t.Errorf("%s, %v after the call", state, fault)
	}
	if got := o.contacts(t, number); got != "suppressed:opted_out suppressed:opted_out suppressed:opted_out pending" {
		t.Errorf("after the call: %s", got)
	}
	if got := o.contacts(t, second) + " " + other.contacts(t, number); got != "pending pending pending pending pending" {
		t.Errorf("others: %s", got)
	}
	if _, err = o.create(campaigns.Spec{}, true, number); err != nil { // the campaign is a draft, because the number is listed
		t.Fatal(err)
	}
	// The operator's list replaces only the operator's entries, not the opt-out.
	spec, err := apply.Parse(strings.NewReader("organizations: [{name: " + o.name(t) + `, suppression: ["+12125550199"]}]`))
	if err == nil {
		err = apply.Apply(o.ctx, o.db.Pool, spec, apply.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	listed, err := o.column("SELECT number FROM suppressions WHERE org_id = $1 ORDER BY number", o.org)
	if got := strings.Join(listed, " "); err != nil || got != "12125550101 12125550199" {
		t.Errorf("list: %s, %v", got, err)
	}
	logged, err := o.column("SELECT detail FROM campaign_log WHERE org_id = $1 AND action = 'opted_out'", o.org)
	kept, fault := o.column("SELECT number || ' ' || source FROM opt_outs WHERE call_id = $1", call)
	if err != nil || fault != nil || strings.Join(logged, " ") != call+" "+call || strings.Join(kept, ",") != "12125550101 key" {
		t.Errorf("logged %q, kept %q, %v, %v", logged, kept, err, fault)
	}
	if _, err = o.db.Pool.Exec(o.ctx, "DELETE FROM opt_outs"); err == nil {
		t.Error("an opt-out can be deleted")
	}
}

func (o *env) name(t *testing.T) string {
	t.Helper()
	all, err := o.column("SELECT name FROM organizations WHERE id = $1", o.org)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}
