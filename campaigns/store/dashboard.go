package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// An ImportSummary is an import in a list.
type ImportSummary struct {
	ID, Kind, RefusalCode         string
	Accepted                      bool
	Seen, AcceptedRows, Warned    int
	Rejected, Duplicates, Matched int
	Via                           campaigns.Via
	CreatedAt                     time.Time
}

// List returns the newest imports of a campaign.
func (Imports) List(ctx context.Context, q db.Querier, campaignID string, most int) ([]ImportSummary, error) {
	return db.Collect(ctx, q, "imports", pgx.RowToStructByPos[ImportSummary], `
		SELECT id, kind, refusal_code, status = 'accepted', rows_seen, accepted, warned, rejected, duplicates,
			coalesce((screen->>'matched_rows')::integer, 0), created_via, created_at
		FROM imports WHERE campaign_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`, campaignID, most)
}

// LogEntries returns the log of a campaign, the newest entry first.
func (s *Store) LogEntries(ctx context.Context, q db.Querier, campaignID string, most int) ([]LogEntry, error) {
	const newest = "SELECT action, via, api_key_id, actor, detail, at FROM campaign_log WHERE campaign_id = $1 ORDER BY id DESC LIMIT $2"
	return db.Collect(ctx, q, "log of the campaign", pgx.RowToStructByPos[LogEntry], newest, campaignID, most)
}

// HourStats count the attempts in one hour of the day.
type HourStats struct {
	Hour             int // hour of the contact's local time, 0 to 23
	Dialed, Answered int
}

// PerHour counts the last completed attempts of a campaign by the contact's local hour of the day. The time zone is
// that of the contact's row if the campaign uses it, else the first possible zone of the number, else the campaign's
// zone.
func (Attempts) PerHour(ctx context.Context, q db.Querier, c campaigns.Campaign, last int) ([]HourStats, error) {
	return db.Collect(ctx, q, "attempts by hour", pgx.RowToStructByPos[HourStats], `
		SELECT extract(hour FROM began_at AT TIME ZONE coalesce(nullif(zone, ''), $3))::integer, count(*), count(*) FILTER (WHERE outcome IN ('answered', 'short_call'))
		FROM (SELECT zone, began_at, outcome FROM contact_attempts WHERE campaign_id = $1 AND outcome IS NOT NULL ORDER BY began_at DESC LIMIT $2) x GROUP BY 1 ORDER BY 1`, c.ID, last, c.Timezone)
}

// PerMinute counts the attempts of a campaign in each of the last minutes. The oldest minute is first.
func (Attempts) PerMinute(ctx context.Context, q db.Querier, campaignID string, minutes int, now time.Time) ([]int, error) {
	all := make([]int, minutes)
	var ago, n int
	return all, db.Each(ctx, q, "attempts by minute", []any{&ago, &n}, func() error {
		if ago >= 0 && ago < minutes {
			all[minutes-1-ago] = n
		}
		return nil
	}, `
		SELECT floor(extract(epoch FROM $3::timestamptz - began_at) / 60)::integer, count(*) FROM contact_attempts
		WHERE campaign_id = $1 AND began_at > $3::timestamptz - $2 * interval '1 minute' AND began_at <= $3 GROUP BY 1`, campaignID, minutes, now)
}

// An IdleCampaign is a running campaign without a recent call.
type IdleCampaign struct{ ID, Name string }

// Idle returns the newest running campaigns of an organization that placed no call in the last minute: those of ids, or of
// all if ids is nil.
func (s *Store) Idle(ctx context.Context, q db.Querier, orgID string, ids []string, most int) ([]IdleCampaign, error) {
	return db.Collect(ctx, q, "idle campaigns", pgx.RowToStructByPos[IdleCampaign], `
		SELECT c.id, c.name FROM campaigns c WHERE c.org_id = $1 AND c.status = 'running' AND ($2::text[] IS NULL OR c.id = ANY ($2))
			AND NOT EXISTS (SELECT FROM contact_attempts x WHERE x.campaign_id = c.id AND x.began_at > now() - interval '1 minute')
		ORDER BY c.created_at DESC, c.id DESC LIMIT $3`, orgID, ids, most)
}

// A CampaignPace is the pace of a running campaign.
type CampaignPace struct {
	ID, Name       string
	Target, Dialed int // calls per minute; calls in the last minute
	Waiting        bool
}

// Paces returns the newest running campaigns of an organization.
func (s *Store) Paces(ctx context.Context, q db.Querier, orgID string, most int) ([]CampaignPace, error) {
	return db.Collect(ctx, q, "paces", pgx.RowToStructByPos[CampaignPace], `
		SELECT c.id, c.name, c.calls_per_minute,
			(SELECT count(*) FROM contact_attempts x WHERE x.campaign_id = c.id AND x.began_at > now() - interval '1 minute'),
			EXISTS (SELECT FROM contacts k WHERE k.campaign_id = c.id AND k.state = 'pending')
		FROM campaigns c WHERE c.org_id = $1 AND c.status = 'running' ORDER BY c.created_at DESC, c.id DESC LIMIT $2`, orgID, most)
}
