package desk

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
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
		org, pkg, err := d.law(ctx, tx, orgID)
		if err != nil {
			return err
		}
		lists, closed := d.lists(ctx, tx, pkg) // a registry that cannot be opened keeps everybody waiting
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
		f.Outcomes, f.On, f.Dialled = t.Outcomes, t.On, t.Dialled
		facts, err := d.facts(ctx, tx, org, pkg, Standing{Campaign: c, Screen: screen.None(), Counts: f.Counts}, now)
		if err != nil {
			return err
		}
		if facts.HoursOpen && !c.Status.Over() {
			f.Opens = facts.Warnings.NextWindow
		}
		f.Route = facts.Line() && !t.Shut
		f.Stale = closed != nil || org.RequireRegistry && lists.Unusable(now)
		err = d.waiting(ctx, tx, &f, t.Due)
		p = progress.Of(f)
		return err
	})
	return p, err
}

// waiting finds who waits in a campaign, and, where the next call of one that runs is
// due, what keeps that.
func (d *Desk) waiting(ctx context.Context, tx pgx.Tx, f *progress.Facts, due bool) (err error) {
	c := f.Campaign
	if c.Status == campaigns.Running && due {
		if f.Full, err = place.Full(ctx, tx, c.OrgID, c.Binding.RouteID); err != nil {
			return err
		}
	}
	return d.Store.Waiting(ctx, tx, c.ID, f.Now, func(w store.Waiting) error {
		f.Waiting = append(f.Waiting, progress.Group{Key: w.Group, Cap: w.Cap, Wait: w.Wait, Early: w.Early, Late: w.Late, Next: w.Next, N: w.N})
		return nil
	})
}
