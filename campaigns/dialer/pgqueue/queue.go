// Package pgqueue is the dial queue in Postgres: it finds the next contact, collects the
// facts for the gate, and takes the contact in one transaction with its call. It also
// composes the disclosure that the law requires at the start of a call.
package pgqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/pricing"
)

// Markets returns market packages; see service.Markets.
type Markets interface {
	Package(ctx context.Context, q db.Querier, code, version string) (*market.Package, error)
}

// Claims loads the data of claimed calls; *control/store.Store implements it.
type Claims interface {
	Prepare(ctx context.Context, leases []control.Lease, until time.Time) ([]*control.Claim, error)
}

// A Queue implements dialer.Store. It is for one goroutine.
type Queue struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Claims  Claims
	Markets Markets
	Screen  control.Screener // checks the number against lists other than the organization's; nil checks none
	// Registries returns the registries of a market; nil means none.
	Registries func(ctx context.Context, q db.Querier, market string) ([]screening.Registry, error)
	Node       control.NodeID
	Lease      time.Duration
	// Unreachable reports that this node cannot reach a trunk; nil means it reaches
	// all.
	Unreachable func(trunkID string) bool
	// Paused reports that the carrier of a trunk asked this node to pause; nil means
	// never.
	Paused func(trunkID string) bool
	// CanTalk reports whether this node can run a version of an agent now; nil means always.
	// ProvidersVerified reports whether the agent's providers have answered a recent check; nil
	// means that they have.
	CanTalk, ProvidersVerified func(ctx context.Context, agentID string, version int) (bool, error)
	// SentHash hashes a number as in the table sent_facts, which has the calls that the database lost in a failover.
	// nil disables the check.
	SentHash func(orgID, number string) [16]byte
	// Planned restricts the queue to the campaigns that are ready by the plan of a Planner. If no node plans, the queue
	// reads all running campaigns.
	Planned bool
	// Wake signals that a campaign became ready; may be nil.
	Wake <-chan struct{}
	Log  *slog.Logger

	running     []dialer.Campaign
	details     map[string]detail // data of the running campaigns
	readAt      time.Time         // when running and details were read; zero forces a read
	clockOffset time.Duration     // how far the database's clock is ahead of this node's
	startBefore time.Time         // latest time of the INVITE to the contact that was taken last
}

// A detail has the data for calls of a campaign.
type detail struct {
	campaign   campaigns.Campaign
	org        store.Organization
	market     *market.Package
	stale      bool // no contact may be called before the registry is reloaded
	disclosure Disclosure
	expected   pricing.Amount // expected cost of a call; only of a campaign with a budget
	groups     []waitingGroup
	version    string
}

// refreshAfter bounds the age of the cached running campaigns. Take checks again
// whether a campaign runs.
const refreshAfter = time.Second

// Running implements dialer.Store.
func (q *Queue) Running(ctx context.Context) ([]dialer.Campaign, time.Time, error) {
	select {
	case <-q.Wake:
		q.readAt = time.Time{}
	default:
	}
	if q.readAt.IsZero() || time.Since(q.readAt) > refreshAfter {
		if err := q.refresh(ctx); err != nil {
			return nil, time.Time{}, err
		}
	}
	return q.running, time.Now().Add(q.clockOffset), nil
}

const runningSQL = `
SELECT c.id, p.next_at, p.last_at, clock_timestamp()
FROM campaigns c JOIN campaign_paces p ON p.campaign_id = c.id
WHERE c.status = 'running' AND (c.ends_at IS NULL OR c.ends_at > clock_timestamp())
  AND EXISTS (SELECT FROM contacts k WHERE k.campaign_id = c.id AND k.state = 'pending')
ORDER BY c.id`

// plannedSQL returns the campaigns of runningSQL that can have a contact to call within $1, by plan and pace. If no node
// has planned for $2, it returns all. Times that are far in the future are not trusted; see dropFutureTimes.
const plannedSQL = `
SELECT c.id, p.next_at, p.last_at, clock_timestamp()
FROM campaigns c JOIN campaign_paces p ON p.campaign_id = c.id
WHERE c.status = 'running' AND (c.ends_at IS NULL OR c.ends_at > clock_timestamp())
  AND (p.next_at <= clock_timestamp() + $1::interval OR greatest(p.next_at, p.last_at) > clock_timestamp() + interval '1 minute')
  AND (c.id IN (SELECT campaign_id FROM campaign_plans WHERE ready_at <= clock_timestamp() + $1::interval)
    OR NOT EXISTS (SELECT FROM duties WHERE name = 'plans' AND until > clock_timestamp() - $2::interval)
      AND EXISTS (SELECT FROM contacts k WHERE k.campaign_id = c.id AND k.state = 'pending'))
ORDER BY c.id`

// unplannedAfter is how long plans stay in use after a node's duty to plan has ended.
const unplannedAfter = 5 * time.Second

// A listedCampaign is a running campaign with the times of its next and last call.
type listedCampaign struct {
	id         string
	next, last time.Time
}

// list returns the running campaigns and the time of the database. It measures the difference between the clocks.
func (q *Queue) list(ctx context.Context) (all []listedCampaign, now time.Time, err error) {
	sql, args := runningSQL, []any{}
	if q.Planned {
		sql, args = plannedSQL, []any{planAhead, unplannedAfter}
	}
	began := time.Now()
	var x listedCampaign
	err = db.Each(ctx, q.Pool, "running campaigns", []any{&x.id, (*instant)(&x.next), (*instant)(&x.last), &now}, func() error {
		all = append(all, x)
		return nil
	}, sql, args...)
	if err == nil && !now.IsZero() {
		q.clockOffset = now.Sub(began)
	}
	return all, now, err
}

// refresh loads the running campaigns and their waiting groups.
func (q *Queue) refresh(ctx context.Context) error {
	began := time.Now()
	all, now, err := q.list(ctx)
	if err != nil {
		return err
	}
	before := q.details
	q.running, q.details = q.running[:0], map[string]detail{}
	ids := make([]string, len(all))
	for i, x := range all {
		ids[i] = x.id
	}
	in, err := q.read(ctx, ids)
	if err != nil && in == nil {
		return err
	}
	if err != nil { // the other campaigns continue
		q.log().WarnContext(ctx, "failed to read some running campaigns", "err", err)
	}
	for _, x := range all {
		if !in.has(x.id) {
			continue
		}
		d, r, err := q.newDetail(ctx, in, x.id)
		if err == nil && !q.Planned && before[x.id].version != r.Version {
			err = recheckCaps(ctx, q.Pool, x.id)
		}
		if err != nil && ctx.Err() == nil { // the other campaigns continue
			q.log().WarnContext(ctx, "failed to read a running campaign", "campaign", x.id, "err", err)
			continue
		}
		if err != nil {
			return err
		}
		r.Pace.Next, r.Pace.Last = dropFutureTimes(now, x.next, x.last)
		d.version = r.Version
		q.details[x.id] = d
		q.running = append(q.running, r)
	}
	q.readAt = began
	return nil
}

// dropFutureTimes returns zero times if the time of the next or the last call is more than a minute ahead. Such times
// were stored before the database's clock went back.
func dropFutureTimes(now, next, last time.Time) (time.Time, time.Time) {
	if latest := now.Add(time.Minute); next.After(latest) || last.After(latest) {
		return time.Time{}, time.Time{}
	}
	return next, last
}

// recheckCaps makes contacts due that wait because of a frequency cap. The campaign or the caps have changed, perhaps
// while no node ran. Contacts with a later next attempt keep waiting.
func recheckCaps(ctx context.Context, pool *pgxpool.Pool, campaignID string) error {
	_, err := pool.Exec(ctx, `
		UPDATE contacts SET due_at = clock_timestamp(), next_attempt_at = clock_timestamp()
		WHERE campaign_id = $1 AND state = 'pending' AND next_attempt_at IS NOT NULL AND governing_cap <> '' AND due_at > clock_timestamp()`, campaignID)
	return err
}

var (
	errNoMarket    = errors.New("the organization has no market rules")
	errOtherMarket = errors.New("the organization uses the rules of another market")
)

// checkMarket returns an error if the campaign cannot call by the rules of the organization's market.
func (d *detail) checkMarket() error {
	if d.market == nil {
		return errNoMarket
	}
	if !d.org.UsesMarketOf(d.campaign) {
		return fmt.Errorf("%w: %s, not %s", errOtherMarket, d.org.Market, d.campaign.Market)
	}
	return nil
}

// newDetail returns the data for calls of a campaign.
func (q *Queue) newDetail(ctx context.Context, in *readings, id string) (d detail, r dialer.Campaign, err error) {
	d.campaign, d.groups = in.campaigns[id], in.waiting[id]
	d.org = in.orgs[d.campaign.OrgID]
	if d.market, err = q.Markets.Package(ctx, q.Pool, d.org.Market, d.org.Rules); err != nil {
		return d, r, err
	}
	if err = d.checkMarket(); err != nil {
		return d, r, err
	}
	if d.org.RequireRegistry && q.Registries != nil {
		l := screening.Lists{Expected: d.market.Registry, StaleAfter: d.market.StaleAfter}
		if l.Registries, err = q.Registries(ctx, q.Pool, d.market.Code); err != nil {
			return d, r, err
		}
		d.stale = l.IsUnusable(time.Now().Add(q.clockOffset))
	}
	d.disclosure = Disclosure{pkg: d.market, settings: in.disclosures[id]}
	if d.campaign.Budget > 0 {
		if d.expected, err = q.Store.ExpectedCost(ctx, q.Pool, d.campaign); err != nil {
			return d, r, err
		}
	}
	r, err = d.dialerCampaign()
	return d, r, err
}

// checkAgent calls check with the campaign's agent. A nil check returns true.
func (d detail) checkAgent(ctx context.Context, check func(ctx context.Context, agentID string, version int) (bool, error)) (bool, error) {
	if check == nil {
		return true, nil
	}
	return check(ctx, d.campaign.AgentID, d.campaign.AgentVersion)
}

func (q *Queue) log() *slog.Logger {
	if q.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return q.Log
}

// dialerCampaign returns the campaign for the dialer.
func (d *detail) dialerCampaign() (dialer.Campaign, error) {
	c := d.campaign
	planned, err := d.org.Plan(c, d.market)
	if err != nil {
		return dialer.Campaign{}, err
	}
	version, err := json.Marshal(d.org)
	if err != nil {
		return dialer.Campaign{}, err
	}
	r := dialer.Campaign{
		ID: c.ID, Plan: &planned, RouteID: c.Binding.RouteID,
		Version: c.UpdatedAt.Format(time.RFC3339Nano) + d.market.Version + string(version), Pace: plan.Pace{PerMinute: c.CallsPerMinute},
	}
	seen := map[string]bool{}
	for _, l := range d.groups {
		if !seen[l.Group] {
			r.Groups = append(r.Groups, l.Group)
		}
		seen[l.Group] = true
	}
	return r, nil
}

// setPace stores when the next call of a campaign is due.
func (q *Queue) setPace(id string, p plan.Pace) {
	for i := range q.running {
		if q.running[i].ID == id {
			q.running[i].Pace = p
		}
	}
}

// An instant is a timestamp of the database; -infinity is the zero time.
type instant time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (i *instant) ScanTimestamptz(v pgtype.Timestamptz) error {
	*i = instant{}
	if v.Valid && v.InfinityModifier == 0 {
		*i = instant(v.Time)
	}
	return nil
}
