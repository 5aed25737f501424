package service_test

import (
	"testing"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/service"
)

// TestPauseAll checks that one failure does not keep the other campaigns running, and that a campaign launched in
// between is paused too.
func TestPauseAll(t *testing.T) {
	o := newOrganization(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := o.db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]string{}
	for i, name := range []string{"late", "broken", "first", "second"} {
		st, err := o.create(campaigns.Spec{}, true, numbers(20)[5*i:5*i+5]...)
		if err != nil || st.Campaign.Status != campaigns.Running {
			t.Fatalf("%s is %s, %v", name, st.Campaign.Status, err)
		}
		ids[name] = st.Campaign.ID
		exec("UPDATE campaigns SET name = $2 WHERE id = $1", ids[name], name)
	}
	exec("UPDATE campaigns SET status = 'draft' WHERE id = $1", ids["late"])
	exec(`CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.name = 'broken' THEN RAISE 'no space left'; END IF;
		IF NEW.name = 'first' THEN UPDATE campaigns SET status = 'running' WHERE name = 'late'; END IF;
		RETURN NEW; END $$`)
	exec("CREATE TRIGGER meddle BEFORE UPDATE ON campaigns FOR EACH ROW WHEN (NEW.status = 'paused') EXECUTE FUNCTION meddle()")
	r, err := service.PauseAll(t.Context(), o.Service, o.org, testActor())
	if err != nil || len(r.Paused) != 3 || r.Paused[2].Name != "late" || len(r.Failed) != 1 || r.Failed[0].Campaign.Name != "broken" || len(r.Left) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, want := range map[string]string{"late": "paused", "broken": "running", "first": "paused", "second": "paused"} {
		if got := o.mustColumn(t, "SELECT status FROM campaigns WHERE id = $1", ids[name]); got[0] != want {
			t.Errorf("%s is %s, want %s", name, got[0], want)
		}
	}
	if n := o.mustColumn(t, "SELECT count(*)::text FROM campaign_log WHERE action = 'paused' AND actor = 'tests'"); n[0] != "3" {
		t.Errorf("%s log entries", n[0])
	}
}
