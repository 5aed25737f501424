// Package store is the SQL of campaigns: campaigns, imports, contacts, and the tallies of contacts. Tallies are
// counts of contacts by state. The database appends an entry to the tallies when a contact changes. TallyFolder
// merges the entries and recounts tallies that are wrong.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// NotFound returns the refusal for an unknown campaign.
func NotFound() error { return control.Refuse(control.CodeCampaignNotFound, "no such campaign") }

// A Store reads and writes campaigns in Postgres. It is safe for concurrent use.
type Store struct {
	Pool     *pgxpool.Pool
	Imports  Imports
	Contacts Contacts
	Attempts Attempts
	Breakers Breakers
}

// Imports has the SQL statements for imports. Like the types below, it has no state: every method receives its
// connection or transaction.
type Imports struct{}

// Contacts has the SQL statements for contacts.
type Contacts struct{}

// Attempts has the SQL statements for attempts.
type Attempts struct{}

// Breakers has the SQL statements for the breakers of campaigns.
type Breakers struct{}

const columns = `c.id, c.org_id, c.status, c.status_reason, c.created_via, c.launched_via, c.name, c.agent_id,
	coalesce(a.name, c.agent_name), c.agent_version, c.timezone, c.timezone_source, c.starts_at, c.ends_at,
	c.accepts_additions, c.calls_per_minute, c.call_strategy, c.classification, c.retry, c.duplicate_action,
	c.use_contact_timezone, c.working_hours, c.trunk_id, c.route_id, c.from_number, c.dnc, c.market,
	coalesce(c.launch_import_id, ''), c.seen_fingerprint, c.created_at, c.updated_at, c.launched_at, c.completed_at, c.cancelled_at,
	coalesce(c.budget_nano, 0)`

const from = ` FROM campaigns c LEFT JOIN agents a ON a.org_id = c.org_id AND a.id = c.agent_id `

func scanCampaign(row pgx.Row) (campaigns.Campaign, error) {
	var c campaigns.Campaign
	var strategy string
	var retryJSON, hoursJSON []byte
	var starts, ends, launched, completed, cancelled *time.Time
	err := row.Scan(&c.ID, &c.OrgID, &c.Status, &c.StatusReason, &c.CreatedVia, &c.LaunchedVia, &c.Name, &c.AgentID,
		&c.AgentName, &c.AgentVersion, &c.Timezone, &c.TimezoneSource, &starts, &ends,
		&c.Open, &c.CallsPerMinute, &strategy, &c.Classification, &retryJSON, &c.Duplicates,
		&c.ContactTimezone, &hoursJSON, &c.Binding.TrunkID, &c.Binding.RouteID, &c.Binding.FromNumber, &c.DNC, &c.Market,
		&c.LaunchImportID, &c.SeenFingerprint, &c.CreatedAt, &c.UpdatedAt, &launched, &completed, &cancelled,
		&c.Budget)
	if err != nil {
		return campaigns.Campaign{}, err
	}
	for to, at := range map[*time.Time]*time.Time{
		&c.StartsAt: starts, &c.EndsAt: ends, &c.LaunchedAt: launched, &c.CompletedAt: completed, &c.CanceledAt: cancelled,
	} {
		if at != nil {
			*to = at.UTC()
		}
	}
	if err := errors.Join(json.Unmarshal(retryJSON, &c.Retry), json.Unmarshal(hoursJSON, &c.WorkingHours)); err != nil {
		return campaigns.Campaign{}, fmt.Errorf("campaign %s: %w", c.ID, err)
	}
	c.Retry.Strategy = retry.Strategy(strategy)
	c.CreatedAt, c.UpdatedAt = c.CreatedAt.UTC(), c.UpdatedAt.UTC()
	return c, nil
}

func scanRow(row pgx.CollectableRow) (campaigns.Campaign, error) { return scanCampaign(row) }

// Get returns a campaign of an organization. If lock is true, the campaign is locked until the
// transaction ends.
func (*Store) Get(ctx context.Context, q db.Querier, orgID, id string, lock bool) (campaigns.Campaign, error) {
	return getCampaign(ctx, q, orgID, id, lock)
}

func getCampaign(ctx context.Context, q db.Querier, orgID, id string, lock bool) (campaigns.Campaign, error) {
	sql := "SELECT " + columns + from + "WHERE c.org_id = $1 AND c.id = $2"
	if lock {
		sql += " FOR UPDATE OF c"
	}
	c, err := scanCampaign(q.QueryRow(ctx, sql, orgID, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return campaigns.Campaign{}, NotFound()
	}
	if err != nil {
		return campaigns.Campaign{}, fmt.Errorf("campaign: %w", err)
	}
	return c, nil
}

// Insert writes a new campaign.
func (s *Store) Insert(ctx context.Context, q db.Querier, c campaigns.Campaign) error {
	retryJSON, err := json.Marshal(c.Retry)
	if err != nil {
		return err
	}
	hoursJSON, err := json.Marshal(c.WorkingHours)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, q, "campaign", `
		WITH pace AS (INSERT INTO campaign_paces (campaign_id) VALUES ($1))
		INSERT INTO campaigns (id, org_id, status, created_via, name, agent_id, agent_name, timezone, timezone_source,
			starts_at, ends_at, accepts_additions, calls_per_minute, call_strategy, classification, retry, duplicate_action,
			use_contact_timezone, working_hours, trunk_id, route_id, from_number, dnc, market, launch_import_id, created_at, updated_at, budget_nano)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, nullif($25, ''), $26, $26, nullif($27::bigint, 0))`,
		c.ID, c.OrgID, c.Status, c.CreatedVia, c.Name, c.AgentID, c.AgentName, c.Timezone, c.TimezoneSource,
		nullTime(c.StartsAt), nullTime(c.EndsAt), c.Open, c.CallsPerMinute, c.Retry.Strategy, c.Classification, retryJSON, c.Duplicates,
		c.ContactTimezone, hoursJSON, c.Binding.TrunkID, c.Binding.RouteID, c.Binding.FromNumber, c.DNC, c.Market, c.LaunchImportID, c.CreatedAt,
		int64(c.Budget))
	return err
}

// SetMarket sets the market of a campaign that was created without one.
func (s *Store) SetMarket(ctx context.Context, q db.Querier, c *campaigns.Campaign, market string) error {
	if c.Market != "" {
		return nil
	}
	c.Market = market
	_, err := db.Exec(ctx, q, "campaign "+c.ID, "UPDATE campaigns SET market = $2 WHERE id = $1", c.ID, market)
	return err
}

// ChannelCampaigns is the Postgres notification channel on which changes of campaigns are reported.
const ChannelCampaigns = "parley_campaigns"

// SaveStatus writes the status of a campaign and the fields that change with it, and wakes the planner.
func (s *Store) SaveStatus(ctx context.Context, q db.Querier, c campaigns.Campaign) error {
	_, err := db.Exec(ctx, q, "campaign "+c.ID, `
		WITH saved AS (
			UPDATE campaigns SET status = $2, status_reason = $3, launched_via = $4, agent_version = $5, dnc = $6,
				launch_import_id = nullif($7, ''), launched_at = $8, completed_at = $9, cancelled_at = $10, updated_at = $11
			WHERE id = $1 RETURNING id)
		SELECT pg_notify('`+ChannelCampaigns+`', '') FROM saved`,
		c.ID, c.Status, c.StatusReason, c.LaunchedVia, c.AgentVersion, c.DNC,
		c.LaunchImportID, nullTime(c.LaunchedAt), nullTime(c.CompletedAt), nullTime(c.CanceledAt), c.UpdatedAt)
	return err
}

// nullTime returns NULL for the zero time.
func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// zeroTime returns the zero time for NULL.
func zeroTime(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// SaveLaunchScreen stores the screening of a launch.
func (s *Store) SaveLaunchScreen(ctx context.Context, q db.Querier, campaignID string, x screening.Screen) error {
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, q, "screen", "UPDATE campaigns SET frozen_screen = $2 WHERE id = $1", campaignID, text)
	return err
}

// LaunchScreen returns the screening of the launch, nil before it.
func (s *Store) LaunchScreen(ctx context.Context, q db.Querier, campaignID string) (*screening.Screen, error) {
	var text []byte
	if err := q.QueryRow(ctx, "SELECT frozen_screen FROM campaigns WHERE id = $1", campaignID).Scan(&text); err != nil {
		return nil, fmt.Errorf("screen: %w", err)
	}
	if text == nil {
		return nil, nil //nolint:nilnil // not launched
	}
	var x screening.Screen
	return &x, json.Unmarshal(text, &x)
}
