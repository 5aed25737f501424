package store

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control/db"
	controlstore "github.com/parley-voice/parley/control/store"
)

// Count counts the contacts of a campaign by state.
func (Contacts) Count(ctx context.Context, q db.Querier, campaignID string) (campaigns.Counts, error) {
	c := campaigns.Counts{ByState: map[campaigns.State]int{}, ByReason: map[string]int{}, Capped: map[string]int{}}
	var state campaigns.State
	var reason, governing string
	var n, launch, ambiguous, tried int
	err := db.Each(ctx, q, "contacts", []any{&state, &reason, &governing, &n, &launch, &ambiguous, &tried}, func() error {
		c.ByState[state] += n
		if state == campaigns.Suppressed {
			c.ByReason[reason] += n
		} else {
			c.Ambiguous += ambiguous
		}
		if governing != "" {
			c.Capped[governing] += n
		}
		c.AtLaunch += launch
		c.Redials += tried
		return nil
	}, `
		SELECT state, reason, CASE WHEN reason = 'frequency_capped' THEN cap ELSE '' END, sum(n),
			coalesce(sum(n) FILTER (WHERE at_launch), 0), coalesce(sum(n) FILTER (WHERE ambiguous), 0), coalesce(sum(n) FILTER (WHERE tried), 0)
		FROM contact_tallies WHERE campaign_id = $1 GROUP BY 1, 2, 3 HAVING sum(n) <> 0`, campaignID)
	return c, err
}

// AttemptStats are the attempts of a campaign and the state of its route.
type AttemptStats struct {
	Outcomes           map[retry.Outcome]int
	InProgress, Dialed int  // active attempts, and attempts begun in the last minute
	RouteDown          bool // the breaker of the route is open
	AgentDown          bool // no node can run the agent
	Failing            bool // the campaign's own breaker is open
	Paused             bool // the carrier asked all nodes to pause the trunk
	Due                bool // the next call is due by the pace
	// Recent is the number of attempts in the hour before the last one, which included. First and Last are when the first
	// and the last of them began.
	Recent      int
	First, Last time.Time
}

// Stats returns the attempt statistics of a campaign.
func (Attempts) Stats(ctx context.Context, q db.Querier, campaignID string, now time.Time) (AttemptStats, error) {
	t := AttemptStats{Outcomes: map[retry.Outcome]int{}}
	err := q.QueryRow(ctx, `
		SELECT
			(SELECT count(*) FROM contact_attempts WHERE campaign_id = $1 AND began_at > $2::timestamptz - interval '1 minute'),
			coalesce((SELECT json_object_agg(outcome, n) FROM
				(SELECT outcome, sum(n) AS n FROM attempt_tallies WHERE campaign_id = $1 GROUP BY 1 HAVING sum(n) <> 0) x), '{}'),
			EXISTS (SELECT FROM campaigns c JOIN route_breakers b ON b.subgroup_id = c.route_id WHERE c.id = $1 AND b.open),
			coalesce((SELECT bool_and(s.down) FROM campaigns c JOIN agent_sights s ON s.agent_id = c.agent_id AND s.version = c.agent_version
				WHERE c.id = $1 AND s.at > clock_timestamp() - interval '15 seconds'), false),
			EXISTS (SELECT FROM campaign_breakers WHERE campaign_id = $1 AND open),
			EXISTS (SELECT FROM campaigns c WHERE c.id = $1 AND c.trunk_id IN `+controlstore.PausedTrunks+`),
			EXISTS (SELECT FROM campaign_paces WHERE campaign_id = $1 AND next_at <= clock_timestamp())`,
		campaignID, now).Scan(&t.Dialed, &t.Outcomes, &t.RouteDown, &t.AgentDown, &t.Failing, &t.Paused, &t.Due)
	if err != nil {
		return t, fmt.Errorf("attempts: %w", err)
	}
	t.InProgress = t.Outcomes[""]
	delete(t.Outcomes, "")
	var first, last *time.Time
	err = q.QueryRow(ctx, `
		SELECT count(*), min(began_at), max(began_at) FROM contact_attempts WHERE campaign_id = $1
			AND began_at > (SELECT max(began_at) FROM contact_attempts WHERE campaign_id = $1) - interval '1 hour'`, campaignID).
		Scan(&t.Recent, &first, &last)
	t.First, t.Last = zeroTime(first), zeroTime(last)
	return t, db.Wrap(err, "attempts")
}

// CountTried returns how many contacts of a campaign were called. counts are those of the campaign.
func (Contacts) CountTried(ctx context.Context, q db.Querier, campaignID string, counts campaigns.Counts) (n int, err error) {
	// It is the condition of the index contacts_tried_otherwise, so only the index is read.
	const odd = "(state = 'suppressed' AND attempts > 0 OR state = 'exhausted' AND attempts = 0)"
	err = q.QueryRow(ctx, "SELECT (SELECT count(*) FROM contacts WHERE campaign_id = $1 AND state = 'suppressed' AND "+odd+") - "+
		"(SELECT count(*) FROM contacts WHERE campaign_id = $1 AND state = 'exhausted' AND "+odd+")", campaignID).Scan(&n)
	if err != nil {
		return 0, db.Wrap(err, "contacts")
	}
	for _, s := range []campaigns.State{campaigns.InCall, campaigns.Awaiting, campaigns.Done, campaigns.Exhausted} {
		n += counts.ByState[s]
	}
	return n + counts.Redials, nil
}
