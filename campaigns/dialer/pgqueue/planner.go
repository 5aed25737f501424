package pgqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
	controlstore "github.com/parley-voice/parley/control/store"
)

// A Planner computes the earliest time at which each running campaign can have a contact to call, and writes it to the
// table campaign_plans. One node at a time has this duty; the queues of all nodes read only campaigns that are ready. A
// plan decides only whether nodes look for a contact. Take checks whether the contact may be called.
type Planner struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Markets Markets
	Owner   string // name of this node
	// Wake signals that a campaign has changed; may be nil.
	Wake <-chan struct{}
	Log  *slog.Logger

	laws      plan.LawCache
	calendars map[string]plannedCampaign // by campaign ID
	written   map[string]time.Time       // the plan that was written last, by campaign ID; nil if none
	writtenAt time.Time
}

// A plannedCampaign is the calendar of one version of a campaign.
type plannedCampaign struct {
	version string
	*plan.Calendar
}

const (
	planEvery    = time.Second            // time between two plans
	planPause    = 100 * time.Millisecond // least time between two plans
	planDuty     = 3 * time.Second        // how long the duty lasts after the last plan of a node that stopped
	rewriteEvery = 10 * time.Second       // time after which an unchanged plan is written again
	planAhead    = 2 * time.Second        // how early queues read a campaign that becomes ready
)

// Run plans while this node has the duty, and takes the duty if no node has it, until ctx ends.
func (p *Planner) Run(ctx context.Context) {
	tick := time.NewTicker(planEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		if _, err := p.Step(ctx); err != nil && ctx.Err() == nil {
			p.Log.WarnContext(ctx, "failed to plan campaigns", "err", err)
		}
		wake := p.Wake
		if p.written == nil {
			wake = nil // another node has the duty
		}
		select {
		case <-tick.C:
		case <-wake:
			select {
			case <-time.After(planPause - time.Since(began)):
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			p.release(short)
			return
		}
	}
}

// planDutySQL takes or keeps the duty for node $1. It returns the database's time, and whether a campaign runs. It returns no
// row if another node has the duty. A duty that ends far in the future does not count: it was written before the clock was set back.
const planDutySQL = `
INSERT INTO duties AS d (name, owner, until) VALUES ('plans', $1, clock_timestamp() + $2::interval)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE d.owner = excluded.owner OR d.until < clock_timestamp() OR d.until > excluded.until + $2::interval
RETURNING clock_timestamp(), EXISTS (SELECT FROM campaigns WHERE status = 'running')`

// release gives up the duty.
func (p *Planner) release(ctx context.Context) {
	p.written = nil
	_, _ = p.Pool.Exec(ctx, "DELETE FROM duties WHERE name = 'plans' AND owner = $1", p.Owner) // after an error it expires
}

// Step plans all running campaigns if this node has the duty or no node has it. It reports whether this node has the
// duty. After an error another node may take it.
func (p *Planner) Step(ctx context.Context) (mine bool, err error) {
	var now time.Time
	var running bool
	err = db.Each(ctx, p.Pool, "duty to plan", []any{&now, &running}, func() error { mine = true; return nil }, planDutySQL, p.Owner, planDuty)
	if err != nil || !mine {
		p.written = nil
		return false, err
	}
	ready, faults := p.plan(ctx, now, running)
	if faults != nil && ready == nil {
		p.release(ctx)
		return false, faults
	}
	if !maps.Equal(ready, p.written) || time.Since(p.writtenAt) > rewriteEvery {
		if err = p.write(ctx, ready); err != nil {
			p.release(ctx)
			return false, err
		}
	}
	return true, faults
}

// plan returns, for each running campaign with waiting contacts, the earliest time at which it can have a contact to
// call. If it returns a plan and an error, the error is about campaigns that are not in the plan.
func (p *Planner) plan(ctx context.Context, now time.Time, running bool) (map[string]time.Time, error) {
	if !running {
		p.calendars = nil
		return map[string]time.Time{}, nil
	}
	all, faults := p.Store.Running(ctx, p.Pool)
	if faults != nil && all == nil {
		return nil, faults
	}
	in, err := readCampaigns(ctx, p.Pool, p.Store, all)
	if err != nil && in == nil {
		return nil, err
	}
	faults = errors.Join(faults, err)
	ready, calendars := map[string]time.Time{}, make(map[string]plannedCampaign, len(all))
	for _, c := range all {
		org, ok := in.orgs[c.OrgID]
		if !ok || len(in.waiting[c.ID]) == 0 {
			continue
		}
		k, fault := p.calendar(ctx, c, org)
		if fault != nil {
			faults = errors.Join(faults, fmt.Errorf("campaign %s: %w", c.ID, fault))
			continue
		}
		calendars[c.ID] = k
		keys, due := firstDue(in.waiting[c.ID])
		open, until := k.Open(now, keys)
		ready[c.ID] = readyAt(now, open, until, due).UTC() // in one location, so that plans can be compared
	}
	p.calendars = calendars
	return ready, faults
}

// readyAt returns when a contact of a campaign may be callable. If a contact of an open group is due, that is the zero
// time. Otherwise it is the earliest of the due times of open groups and until, when other groups open.
func readyAt(now time.Time, open []string, until time.Time, due map[string]time.Time) time.Time {
	at := until
	for _, group := range open {
		switch d := due[group]; {
		case !d.After(now):
			return time.Time{}
		case at.IsZero() || d.Before(at):
			at = d
		}
	}
	return at
}

// firstDue returns the calling-hours groups of waiting contacts, and when the first contact of each is due.
func firstDue(waiting []waitingGroup) (keys []string, due map[string]time.Time) {
	due = make(map[string]time.Time, len(waiting))
	for _, w := range waiting {
		first, seen := due[w.Group]
		if !seen {
			keys = append(keys, w.Group)
		}
		if !seen || w.Due.Before(first) {
			due[w.Group] = w.Due
		}
	}
	return keys, due
}

// calendar returns the calendar of a campaign. If the campaign, its organization or the rules changed since the last
// plan, contacts that wait because of a frequency cap become due.
func (p *Planner) calendar(ctx context.Context, c campaigns.Campaign, org store.Organization) (plannedCampaign, error) {
	rules, err := p.Markets.Package(ctx, p.Pool, org.Market, org.Rules)
	if err != nil {
		return plannedCampaign{}, err
	}
	d := detail{campaign: c, org: org, market: rules}
	if err = d.checkMarket(); err != nil {
		return plannedCampaign{}, err
	}
	r, err := d.dialerCampaign()
	if err != nil {
		return plannedCampaign{}, err
	}
	if k := p.calendars[c.ID]; k.version == r.Version {
		return k, nil
	}
	if err = recheckCaps(ctx, p.Pool, c.ID); err != nil {
		return plannedCampaign{}, err
	}
	return plannedCampaign{r.Version, plan.NewCalendar(*r.Plan, &p.laws)}, nil
}

// ChannelPlans is the Postgres notification channel on which the planner reports that a campaign became ready.
const ChannelPlans = "parley_plans"

// writePlanSQL stores the plan. If a campaign became ready, it wakes the nodes.
const writePlanSQL = `
WITH planned AS (
	SELECT * FROM unnest($1::text[], $2::timestamptz[]) AS x (campaign_id, ready_at)
), gone AS (
	DELETE FROM campaign_plans l WHERE NOT EXISTS (SELECT FROM planned x WHERE x.campaign_id = l.campaign_id)
), changed AS (
	INSERT INTO campaign_plans AS l (campaign_id, ready_at) SELECT campaign_id, ready_at FROM planned ORDER BY campaign_id
	ON CONFLICT (campaign_id) DO UPDATE SET ready_at = excluded.ready_at WHERE l.ready_at <> excluded.ready_at
	RETURNING ready_at
)
SELECT pg_notify('` + ChannelPlans + `', ''), pg_notify('` + controlstore.ChannelQueue + `', '')
FROM changed WHERE ready_at <= clock_timestamp() + $3::interval LIMIT 1`

func (p *Planner) write(ctx context.Context, ready map[string]time.Time) error {
	ids := slices.Sorted(maps.Keys(ready))
	times := make([]time.Time, len(ids))
	for i, id := range ids {
		times[i] = ready[id]
	}
	if _, err := db.Exec(ctx, p.Pool, "plan", writePlanSQL, ids, times, planAhead); err != nil {
		return err
	}
	p.written, p.writtenAt = ready, time.Now()
	return nil
}
