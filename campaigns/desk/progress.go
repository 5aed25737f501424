package desk

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/place"
)

// Progress says how far a campaign is. All its numbers are of one instant.
func (d *Desk) Progress(ctx context.Context, orgID, id string) (progress.Progress, error) {
	var p progress.Progress
	err := d.snapshot(ctx, func(tx pgx.Tx) error {
		c, err := d.Store.Get(ctx, tx, orgID, id, false)
		if err != nil {
			return err
		}
		org, err := d.Store.Organization(ctx, tx, orgID)
		if err != nil {
			return err
		}
		pkg, err := d.market(ctx, tx, org)
		if err != nil {
			return err
		}
		lists, err := d.lists(ctx, tx, pkg)
		if err != nil {
			return err
		}
		now := d.now().UTC()
		f := progress.Facts{Now: now, Campaign: c}
		if f.Calendar, err = org.Calendar(c, pkg); err != nil {
			return err
		}
		if f.Counts, err = d.Store.Counts(ctx, tx, id); err != nil {
			return err
		}
		t, err := d.Store.Tally(ctx, tx, id, now)
		if err != nil {
			return err
		}
		f.Outcomes, f.On, f.Dialled, f.Redials, f.Held, f.Blocked = t.Outcomes, t.On, t.Dialled, t.Redials, t.Held, t.Blocked
		facts, err := d.facts(ctx, tx, org, pkg, Standing{Campaign: c, Screen: screen.None(), Counts: f.Counts}, now)
		if err != nil {
			return err
		}
		if facts.HoursOpen && !c.Status.Over() {
			f.Opens = facts.Warnings.NextWindow
		}
		f.Route = facts.Line() && !t.Shut
		f.Stale = org.RequireRegistry && lists.Unusable(now)
		if c.Status == campaigns.Running {
			err = d.running(ctx, tx, &f, t.Due)
		}
		p = progress.Of(f)
		return err
	})
	return p, err
}

// running finds who waits in a running campaign, and, where its next call is due,
// what keeps that.
func (d *Desk) running(ctx context.Context, tx pgx.Tx, f *progress.Facts, due bool) (err error) {
	c := f.Campaign
	if due {
		if f.Full, err = place.Full(ctx, tx, c.OrgID, c.Binding.RouteID); err != nil {
			return err
		}
	}
	return d.Store.Waiting(ctx, tx, c.ID, f.Now, func(w store.Waiting) error {
		f.Waiting = append(f.Waiting, progress.Group{
			Place: market.Place{States: slices.Clone(w.States), Zones: slices.Clone(w.Zones)}, Timezone: w.Timezone,
			Capped: w.Capped, Wait: w.Wait, Early: w.Early, Late: w.Late, N: w.N,
		})
		return nil
	})
}
