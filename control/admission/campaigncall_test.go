package admission_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
)

// TestCampaignCallAndOrderDoNotDeadlock checks that a campaign call holds no lock that an order needs while it waits
// for the lock on the grant.
func TestCampaignCallAndOrderDoNotDeadlock(t *testing.T) {
	w := newFixture(t)
	if _, code := w.order("globex", admission.Order{Agent: "helpdesk"}); code != "" { // creates the subgroup's counter
		t.Fatal(code)
	}
	route := w.text("SELECT route_id FROM calls")
	o := admission.CampaignCall{
		OrgID: w.org["globex"], RouteID: route, AgentID: w.text("SELECT id FROM agents WHERE name = 'helpdesk'"), AgentName: "helpdesk",
		AgentVersion: 1, To: "+12025550123", From: "+12025550101", Attempt: 1,
	}
	began := make(chan error, 1)
	err := db.Tx(t.Context(), w.db.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SELECT FROM grants FOR NO KEY UPDATE"); err != nil {
			return err
		}
		go func() {
			began <- db.Tx(t.Context(), w.db.Pool, func(tx pgx.Tx) error {
				_, err := admission.StartCampaignCall(t.Context(), tx, o, control.NodeID{Owner: "n", Home: "h"}, time.Minute)
				return err
			})
		}()
		for waits := "0"; waits == "0"; waits = w.text("SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") {
			<-time.After(time.Millisecond) // let the campaign call reach its wait for the grant
		}
		_, err := tx.Exec(t.Context(), "UPDATE subgroup_counts SET registered = registered + 1")
		return err
	})
	if err != nil {
		t.Errorf("the order: %v", err)
	}
	if err := <-began; err != nil {
		t.Errorf("the campaign's call: %v", err)
	}
}
