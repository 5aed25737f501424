package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/admission"
)

// Progress returns the progress of a campaign.
func (svc *Service) Progress(ctx context.Context, orgID, id string) (progress.Progress, error) {
	f, err := svc.ProgressFacts(ctx, orgID, id, true)
	if err != nil {
		return progress.Progress{}, err
	}
	return progress.Compute(f), nil
}

// ProgressFacts returns the facts about the progress of a campaign, all numbers from one snapshot. Contacts that
// wait and that were called are counted, and costs read, if waiting is true; that takes long if many wait for a time of their own.
func (svc *Service) ProgressFacts(ctx context.Context, orgID, id string, waiting bool) (progress.Facts, error) {
	var f progress.Facts
	err := svc.snapshot(ctx, func(tx pgx.Tx) error {
		c, err := svc.Store.Get(ctx, tx, orgID, id, false)
		if err != nil {
			return err
		}
		org, pkg, err := svc.rules(ctx, tx, orgID)
		if err != nil {
			return err
		}
		lists, openErr := svc.screener().lists(ctx, tx, pkg) // if a registry cannot be opened, no contact is called
		now := svc.now().UTC()
		f = progress.Facts{Now: now, Campaign: c}
		if f.Calendar, err = org.Calendar(c, pkg); err != nil {
			return err
		}
		if f.Counts, err = svc.Store.Contacts.Count(ctx, tx, id); err != nil {
			return err
		}
		t, err := svc.Store.Attempts.Stats(ctx, tx, id, now)
		if err != nil {
			return err
		}
		f.Outcomes, f.InProgress, f.Dialed = t.Outcomes, t.InProgress, t.Dialed
		f.Recent = progress.Recent{Calls: t.Recent, First: t.First, Last: t.Last}
		facts, err := checker{svc.Store, svc.CheckAgent}.facts(ctx, tx, org, pkg,
			Status{Campaign: c, Screen: screening.None(), Counts: f.Counts}, now)
		if err != nil {
			return err
		}
		if facts.HoursOpen && !c.Status.IsOver() {
			f.Opens = facts.Warnings.NextWindow
		}
		f.Route, f.Paused = facts.HasRoute() && !t.RouteDown, t.Paused
		f.Down, f.Failing = t.AgentDown, t.Failing
		if f.DiskFull, err = isDiskFull(ctx, svc.CanRecord, c); err != nil {
			return err
		}
		err = tx.QueryRow(ctx, "SELECT (coalesce(launched_at, '-infinity') >= dialing_since()) IS NOT TRUE FROM campaigns WHERE id = $1", id).
			Scan(&f.FailedOver)
		if err != nil {
			return err
		}
		f.Stale = openErr != nil || org.RequireRegistry && lists.IsUnusable(now)
		if !waiting {
			return nil
		}
		return addWaiting(ctx, tx, svc.Store, &f, t.Due)
	})
	return f, err
}

// isDiskFull reports whether this node cannot record the calls of the campaign now.
func isDiskFull(
	ctx context.Context, canRecord func(ctx context.Context, agentID string, version int) (bool, error), c campaigns.Campaign,
) (bool, error) {
	if canRecord == nil {
		return false, nil
	}
	can, err := canRecord(ctx, c.AgentID, c.AgentVersion)
	return !can, err
}

// addWaiting adds the contacts that wait and those that were called, the amount that was spent and, if the next call of a
// running campaign is due, the limits that are reached.
func addWaiting(ctx context.Context, tx pgx.Tx, from *store.Store, f *progress.Facts, due bool) (err error) {
	c := f.Campaign
	if f.Tried, err = from.Contacts.CountTried(ctx, tx, c.ID, f.Counts); err != nil {
		return err
	}
	if f.Spending, err = from.Spending(ctx, tx, c); err != nil {
		return err
	}
	if c.Status == campaigns.Running && due {
		if f.Full, err = admission.DialBlockers(ctx, tx, c.OrgID, c.Binding.RouteID); err != nil {
			return err
		}
	}
	return from.Contacts.EachWaiting(ctx, tx, c.ID, f.Now, func(w store.WaitingGroup) error {
		f.Waiting = append(f.Waiting, progress.Group{
			Key: w.Group, Cap: w.Cap, Wait: w.Wait, Early: w.Early, Late: w.Late, Next: w.Next, Last: w.Last, N: w.N,
		})
		return nil
	})
}
