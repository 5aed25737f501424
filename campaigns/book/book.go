// Package book keeps the running campaigns and their waiting contacts for the
// dialler, in Postgres: it finds the contact whose turn it is, gathers what the
// gate wants to know of it, and takes it, all in one transaction with its call.
package book

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialler"
	"github.com/parley-voice/parley/campaigns/disclosure"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// Markets finds market packages.
type Markets interface {
	Package(ctx context.Context, q db.Querier, code, version string) (*market.Package, error)
}

// Claims reads what calls need that were claimed; *control/store.Store is it.
type Claims interface {
	Prepare(ctx context.Context, held []control.Lease, until time.Time) ([]*control.Claim, error)
}

// A Book implements dialler.Book. It is for one goroutine.
type Book struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Claims  Claims
	Markets Markets
	Screen  control.Screen // the numbers that must not be called, beside the organization's own list; nil is none
	// Registries returns the registries of a market; nil is none.
	Registries func(ctx context.Context, q db.Querier, market string) ([]screen.Registry, error)
	Place      control.Place
	Lease      time.Duration
	// Unreachable tells that this node cannot reach a trunk; nil reaches all.
	Unreachable func(trunkID string) bool
	// Able says what keeps this node from talking as a version of an agent, which never
	// changes; nil is able to all.
	Able func(ctx context.Context, agentID string, version int) error
	Log  *slog.Logger

	running []dialler.Running
	details map[string]detail // of those that run
	asked   time.Time         // when they were read; zero: they are to be
	ahead   time.Duration     // the database's clock is, of ours
	able    map[voice]bool    // what Able said of those that can
	ends    time.Time         // until when the call of the last contact that was taken may begin
}

// detail is what a call of a campaign needs.
type detail struct {
	campaign campaigns.Campaign
	org      store.Organization
	market   *market.Package
	stale    bool // nobody may be called before the registry is loaded anew
	said     disclosure.Said
	waiting  []line
	version  string
}

// A voice is a version of an agent.
type voice struct {
	agentID string
	version int
}

// line is a group of a priority in which somebody waits.
type line struct {
	Priority int16
	Group    string
}

// kept is how long what was read of the running campaigns is relied on. Whether
// one runs is asked again when a contact is taken.
const kept = time.Second

// Running implements dialler.Book.
func (b *Book) Running(ctx context.Context) ([]dialler.Running, time.Time, error) {
	if b.asked.IsZero() || time.Since(b.asked) > kept {
		if err := b.read(ctx); err != nil {
			return nil, time.Time{}, err
		}
	}
	return b.running, time.Now().Add(b.ahead), nil
}

const runningSQL = `
SELECT c.org_id, c.id, p.next_at, p.last_at, clock_timestamp()
FROM campaigns c JOIN campaign_paces p ON p.campaign_id = c.id
WHERE c.status = 'running' AND (c.ends_at IS NULL OR c.ends_at > clock_timestamp())
  AND EXISTS (SELECT FROM contacts k WHERE k.campaign_id = c.id AND k.state = 'pending')
ORDER BY c.id`

// read reads which campaigns run, and who waits.
func (b *Book) read(ctx context.Context) error {
	type row struct {
		org, id    string
		next, last time.Time
	}
	began := time.Now()
	var now time.Time
	found, err := b.Pool.Query(ctx, runningSQL)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(found, func(r pgx.CollectableRow) (x row, err error) {
		return x, r.Scan(&x.org, &x.id, (*instant)(&x.next), (*instant)(&x.last), &now)
	})
	if err != nil {
		return err
	}
	if !now.IsZero() {
		b.ahead = now.Sub(began)
	}
	before := b.details
	b.running, b.details = b.running[:0], map[string]detail{}
	orgs := map[string]store.Organization{}
	for _, x := range all {
		d, r, err := b.one(ctx, x.org, x.id, orgs)
		if err == nil && before[x.id].version != r.Version {
			err = b.reconsider(ctx, x.id)
		}
		if err != nil && ctx.Err() == nil { // the others go on
			b.log().WarnContext(ctx, "a campaign is not dialled", "campaign", x.id, "err", err)
			continue
		}
		if err != nil {
			return err
		}
		r.Pace.Next, r.Pace.Last = spaced(now, x.next, x.last)
		d.version = r.Version
		b.details[x.id] = d
		b.running = append(b.running, r)
	}
	b.asked = began
	return nil
}

// spaced is when the next call is due and when the last one left, as they were kept. A
// pace of a minute from now on, or later, was kept before the database's clock went
// back: it begins anew.
func spaced(now, next, last time.Time) (time.Time, time.Time) {
	if latest := now.Add(time.Minute); next.After(latest) || last.After(latest) {
		return time.Time{}, time.Time{}
	}
	return next, last
}

// reconsider has everybody asked about again whom a cap keeps waiting: a campaign
// has changed, or what its organization allows; or did while it was not looked at.
// Nobody's retry is brought forward: who is held by a cap had waited for it.
func (b *Book) reconsider(ctx context.Context, campaignID string) error {
	_, err := b.Pool.Exec(ctx, `
		UPDATE contacts SET due_at = clock_timestamp(), next_attempt_at = clock_timestamp()
		WHERE campaign_id = $1 AND state = 'pending' AND next_attempt_at IS NOT NULL AND governing_cap <> '' AND due_at > clock_timestamp()`, campaignID)
	return err
}

// What keeps one from knowing the law that a campaign is to go by.
var (
	errNoMarket    = errors.New("its organization has no market package")
	errOtherMarket = errors.New("its organization goes by the rules of another market")
)

// one reads a campaign.
func (b *Book) one(ctx context.Context, orgID, id string, orgs map[string]store.Organization) (d detail, r dialler.Running, err error) {
	if d.campaign, err = b.Store.Get(ctx, b.Pool, orgID, id, false); err != nil {
		return d, r, err
	}
	if _, ok := orgs[orgID]; !ok {
		if orgs[orgID], err = b.Store.Organization(ctx, b.Pool, orgID); err != nil {
			return d, r, err
		}
	}
	d.org = orgs[orgID]
	if d.market, err = b.Markets.Package(ctx, b.Pool, d.org.Market, d.org.Rules); err != nil {
		return d, r, err
	}
	if d.market == nil {
		return d, r, errNoMarket
	}
	if !d.org.GoesBy(d.campaign) {
		return d, r, fmt.Errorf("%w: %s, not %s", errOtherMarket, d.org.Market, d.campaign.Market)
	}
	if d.org.RequireRegistry && b.Registries != nil {
		l := screen.Lists{Expected: d.market.Registry, StaleAfter: d.market.StaleAfter}
		if l.Registries, err = b.Registries(ctx, b.Pool, d.market.Code); err != nil {
			return d, r, err
		}
		d.stale = l.Unusable(time.Now().Add(b.ahead))
	}
	if err = b.talks(ctx, voice{d.campaign.AgentID, d.campaign.AgentVersion}); err != nil {
		return d, r, fmt.Errorf("this server cannot talk as its agent: %w", err)
	}
	if d.said, err = disclosure.Of(ctx, b.Pool, b.Store, d.campaign, d.market); err != nil {
		return d, r, fmt.Errorf("disclosure: %w", err)
	}
	if d.waiting, err = b.lines(ctx, id); err != nil {
		return d, r, err
	}
	r, err = d.running()
	return d, r, err
}

// talks says what keeps this node from talking as an agent. Who cannot takes no
// contacts: their calls would end before they began. Others may have them.
func (b *Book) talks(ctx context.Context, v voice) error {
	if b.Able == nil || b.able[v] {
		return nil
	}
	if err := b.Able(ctx, v.agentID, v.version); err != nil {
		return err
	}
	if b.able == nil {
		b.able = map[voice]bool{}
	}
	b.able[v] = true
	return nil
}

func (b *Book) log() *slog.Logger {
	if b.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return b.Log
}

// linesSQL goes from one group to the next in the index, however many contacts
// each has.
const linesSQL = `
WITH RECURSIVE seen AS (
	(SELECT priority, hours_group FROM contacts WHERE campaign_id = $1 AND state = 'pending'
	 ORDER BY priority DESC, hours_group LIMIT 1)
	UNION ALL
	SELECT n.priority, n.hours_group FROM seen s, LATERAL (
		(SELECT priority, hours_group FROM contacts
		 WHERE campaign_id = $1 AND state = 'pending' AND priority = s.priority AND hours_group > s.hours_group
		 ORDER BY hours_group LIMIT 1)
		UNION ALL
		(SELECT priority, hours_group FROM contacts
		 WHERE campaign_id = $1 AND state = 'pending' AND priority < s.priority
		 ORDER BY priority DESC, hours_group LIMIT 1)
		LIMIT 1) n
)
SELECT priority, hours_group FROM seen`

// lines are the groups in which somebody of a campaign waits, by priority.
func (b *Book) lines(ctx context.Context, campaignID string) ([]line, error) {
	found, err := b.Pool.Query(ctx, linesSQL, campaignID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[line])
}

// running is a campaign as the dialler sees it.
func (d *detail) running() (dialler.Running, error) {
	c := d.campaign
	planned, err := d.org.Plan(c, d.market)
	if err != nil {
		return dialler.Running{}, err
	}
	version, err := json.Marshal(d.org)
	if err != nil {
		return dialler.Running{}, err
	}
	r := dialler.Running{
		ID: c.ID, Campaign: &planned, RouteID: c.Binding.RouteID,
		Version: c.UpdatedAt.Format(time.RFC3339Nano) + d.market.Version + string(version), Pace: plan.Pace{PerMinute: c.CallsPerMinute},
	}
	seen := map[string]bool{}
	for _, l := range d.waiting {
		if !seen[l.Group] {
			r.Groups = append(r.Groups, l.Group)
		}
		seen[l.Group] = true
	}
	return r, nil
}

// paced keeps when the next call of a campaign is due.
func (b *Book) paced(id string, p plan.Pace) {
	for i := range b.running {
		if b.running[i].ID == id {
			b.running[i].Pace = p
		}
	}
}

// An instant is one of the database's, of which -infinity is the zero time.
type instant time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (i *instant) ScanTimestamptz(v pgTimestamptz) error {
	*i = instant{}
	if v.Valid && v.InfinityModifier == 0 {
		*i = instant(v.Time)
	}
	return nil
}
