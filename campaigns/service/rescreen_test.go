package service_test

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/pipeline"
)

// TestRescreen checks that contacts that were skipped because of a wrong setting are called after it is corrected.
// Contacts suppressed for another reason are not called.
func TestRescreen(t *testing.T) {
	o := newOrganization(t)
	const fits, abroad, listed, asked, withdrawn, capped = "+12125550101", "+442071838750", "+12125550103", "+12125550104", "+12125550105", "+12125550106"
	st := o.mustCreate(t, campaigns.Spec{}, true, fits, abroad, listed, asked, withdrawn, capped)
	exec := func(sql string, args ...any) {
		t.Helper()
		o.exec(t, sql, args...)
	}
	id := st.Campaign.ID
	// The dialer skips a number that its subgroup does not allow.
	exec("UPDATE contacts SET state = 'suppressed', reason = 'geo_rejected' WHERE campaign_id = $1 AND number IN ($2, $3, $4)", id, fits, listed, asked)
	exec("UPDATE contacts SET state = 'suppressed', reason = 'withdrawn_by_client' WHERE campaign_id = $1 AND number = $2", id, withdrawn)
	exec("UPDATE contacts SET state = 'suppressed', reason = 'frequency_capped', governing_cap = 'daily' WHERE campaign_id = $1 AND number = $2", id, capped)
	exec("INSERT INTO suppressions (org_id, number) VALUES ($1, '2125550103')", o.org)
	out := &outcome.OptOutRecorder{Pool: o.db.Pool, Store: o.Store}
	if err := out.OptOut(o.ctx, control.OptOut{OrgID: o.org, Number: asked[1:], Source: pipeline.OptOutKey, At: o.Now()}); err != nil {
		t.Fatal(err)
	}
	exec("UPDATE subgroups SET allowed_destinations = '{44}' WHERE org_id = $1", o.org)
	if n, fault := o.Rescreen(o.ctx, o.org, id, testActor()); n != 0 || fault != nil {
		t.Errorf("while the setting is wrong: %d, %v", n, fault)
	}
	exec("UPDATE subgroups SET allowed_destinations = '{1,44}' WHERE org_id = $1", o.org)
	if err := o.RunDue(o.ctx); err != nil {
		t.Fatal(err)
	}
	if k, fault := o.Store.Get(o.ctx, o.db.Pool, o.org, id, false); fault != nil || k.Status != campaigns.Completed {
		t.Fatalf("%s, %v", k.Status, fault)
	}
	if n, fault := o.Rescreen(o.ctx, o.org, id, testActor()); n != 1 || fault != nil {
		t.Errorf("after the correction: %d, %v", n, fault)
	}
	all, err := o.column("SELECT number || ' ' || state || ' ' || reason FROM contacts WHERE campaign_id = $1 ORDER BY number", id)
	want := "+12125550101 pending ,+12125550103 suppressed geo_rejected,+12125550104 suppressed geo_rejected," +
		"+12125550105 suppressed withdrawn_by_client,+12125550106 suppressed frequency_capped,+442071838750 suppressed geo_rejected"
	if got := strings.Join(all, ","); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	k, err := o.Store.Get(o.ctx, o.db.Pool, o.org, id, false)
	if err != nil || k.Status != campaigns.Paused || !k.CompletedAt.IsZero() {
		t.Errorf("status %s, %v", k.Status, err)
	}
	if _, err = o.Resume(o.ctx, o.org, id, testActor()); err != nil {
		t.Error(err)
	}
	p, err := o.Progress(o.ctx, o.org, id)
	if err != nil || p.Ready != 1 || violatedInvariant(p) != "" {
		t.Errorf("%+v, %v", p, err)
	}
	log, err := o.column("SELECT action || ' ' || detail || ' ' || via FROM campaign_log WHERE campaign_id = $1 AND action = 'rescreened'", id)
	if err != nil || strings.Join(log, ",") != "rescreened 1 api" {
		t.Errorf("%v, %v", log, err)
	}
	if _, err = o.Cancel(o.ctx, o.org, id, testActor()); err != nil {
		t.Fatal(err)
	}
	if _, err = o.Rescreen(o.ctx, o.org, id, testActor()); control.CodeOf(err) != control.CodeCampaignTransition {
		t.Errorf("a canceled campaign: %v", err)
	}
}
