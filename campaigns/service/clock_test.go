package service_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
)

// setClockBehind connects to a database whose clock is behind that of the node.
func (o *env) setClockBehind(t *testing.T, by time.Duration) {
	t.Helper()
	if _, err := o.db.Pool.Exec(o.ctx, `CREATE SCHEMA skew; CREATE FUNCTION skew.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
		$$ SELECT pg_catalog.clock_timestamp() - interval '`+by.String()+`' $$`); err != nil {
		t.Fatal(err)
	}
	c := o.db.Pool.Config().Copy()
	c.ConnConfig.RuntimeParams["search_path"] = "skew, public, pg_catalog"
	pool, err := pgxpool.NewWithConfig(o.ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o.Pool, o.Now = pool, nil
}

// TestNodeClockAhead checks that a node whose clock is ahead neither ends a campaign early nor starts
// one early.
func TestNodeClockAhead(t *testing.T) {
	o := newOrganization(t)
	const behind = 48 * time.Hour
	o.setClockBehind(t, behind)
	soon := time.Now().Add(-behind / 2) // in the future by the database's clock, with legal hours before it
	status := func(st campaigns.Campaign, err error, want campaigns.Status) {
		t.Helper()
		if err != nil || st.Status != want {
			t.Errorf("%s, %v; want %s", st.Status, err, want)
		}
	}
	st, err := o.create(campaigns.Spec{}, true, numbers(1)...)
	status(st.Campaign, err, campaigns.Running)
	id := st.Campaign.ID
	o.exec(t, "UPDATE campaigns SET ends_at = $1", soon)
	st, err = o.Pause(o.ctx, o.org, id, testActor())
	status(st.Campaign, err, campaigns.Paused)
	st, err = o.Resume(o.ctx, o.org, id, testActor())
	status(st.Campaign, err, campaigns.Running)

	st, err = o.create(campaigns.Spec{StartsAt: soon}, true, "+12125559999")
	status(st.Campaign, err, campaigns.Scheduled)
	st, err = o.Cancel(o.ctx, o.org, st.Campaign.ID, testActor())
	status(st.Campaign, err, campaigns.Canceled)
	if at, want := st.Campaign.CanceledAt, time.Now().Add(-behind); at.Sub(want).Abs() > time.Minute {
		t.Errorf("canceled at %v, want %v", at, want)
	}
}
