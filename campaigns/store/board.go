package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// A Listed import is one in a list of them.
type Listed struct {
	ID, Kind, RefusalCode         string
	Accepted                      bool
	Seen, AcceptedRows, Warned    int
	Rejected, Duplicates, Matched int
	Via                           campaigns.Via
	CreatedAt                     time.Time
}

// Imports returns the newest lists of a campaign, at most so many.
func (s *Store) Imports(ctx context.Context, q db.Querier, campaignID string, most int) ([]Listed, error) {
	found, err := q.Query(ctx, `
		SELECT id, kind, refusal_code, status = 'accepted', rows_seen, accepted, warned, rejected, duplicates,
			coalesce((screen->>'matched_rows')::integer, 0), created_via, created_at
		FROM imports WHERE campaign_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`, campaignID, most)
	if err != nil {
		return nil, fmt.Errorf("imports: %w", err)
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[Listed])
	if err != nil {
		return nil, fmt.Errorf("imports: %w", err)
	}
	return all, nil
}

// History returns what was done to a campaign, the newest first, at most so much.
func (s *Store) History(ctx context.Context, q db.Querier, campaignID string, most int) ([]Entry, error) {
	found, err := q.Query(ctx, "SELECT action, via, api_key_id, actor, detail, at FROM campaign_log WHERE campaign_id = $1 ORDER BY id DESC LIMIT $2", campaignID, most)
	if err != nil {
		return nil, fmt.Errorf("log of the campaign: %w", err)
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("log of the campaign: %w", err)
	}
	return all, nil
}

// An Hour is one of the day, and what was dialled in it.
type Hour struct {
	Hour              int // 0 to 23, where the contact is
	Dialled, Answered int
}

// Hours counts the last so many attempts of a campaign by the hour that it was
// where the contact is: by the zone that its row names where the campaign goes by
// that, else by the first in which its number may be, else by the campaign's.
func (s *Store) Hours(ctx context.Context, q db.Querier, c campaigns.Campaign, last int) ([]Hour, error) {
	found, err := q.Query(ctx, `
		SELECT extract(hour FROM began_at AT TIME ZONE coalesce(nullif(zone, ''), $3))::integer, count(*), count(*) FILTER (WHERE outcome IN ('answered', 'short_call'))
		FROM (SELECT zone, began_at, outcome FROM contact_attempts WHERE campaign_id = $1 ORDER BY began_at DESC LIMIT $2) x GROUP BY 1 ORDER BY 1`, c.ID, last, c.Timezone)
	if err != nil {
		return nil, fmt.Errorf("attempts by hour: %w", err)
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[Hour])
	if err != nil {
		return nil, fmt.Errorf("attempts by hour: %w", err)
	}
	return all, nil
}

// Dials returns how many attempts of a campaign began in each of the last minutes,
// the oldest first.
func (s *Store) Dials(ctx context.Context, q db.Querier, campaignID string, minutes int, now time.Time) ([]int, error) {
	found, err := q.Query(ctx, `
		SELECT floor(extract(epoch FROM $3::timestamptz - began_at) / 60)::integer, count(*) FROM contact_attempts
		WHERE campaign_id = $1 AND began_at > $3::timestamptz - $2 * interval '1 minute' AND began_at <= $3 GROUP BY 1`, campaignID, minutes, now)
	if err != nil {
		return nil, fmt.Errorf("attempts by minute: %w", err)
	}
	all := make([]int, minutes)
	var ago, n int
	_, err = pgx.ForEachRow(found, []any{&ago, &n}, func() error {
		if ago >= 0 && ago < minutes {
			all[minutes-1-ago] = n
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("attempts by minute: %w", err)
	}
	return all, nil
}

// A Pace is how fast a campaign that runs dials.
type Pace struct {
	ID, Name       string
	Asked, Dialled int // a minute; in the last one
	Waiting        bool
}

// Paces returns the campaigns of an organization that run, the newest first, at most
// so many.
func (s *Store) Paces(ctx context.Context, q db.Querier, orgID string, most int) ([]Pace, error) {
	found, err := q.Query(ctx, `
		SELECT c.id, c.name, c.calls_per_minute,
			(SELECT count(*) FROM contact_attempts x WHERE x.campaign_id = c.id AND x.began_at > now() - interval '1 minute'),
			EXISTS (SELECT FROM contacts k WHERE k.campaign_id = c.id AND k.state = 'pending')
		FROM campaigns c WHERE c.org_id = $1 AND c.status = 'running' ORDER BY c.created_at DESC, c.id DESC LIMIT $2`, orgID, most)
	if err != nil {
		return nil, fmt.Errorf("paces: %w", err)
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[Pace])
	if err != nil {
		return nil, fmt.Errorf("paces: %w", err)
	}
	return all, nil
}
