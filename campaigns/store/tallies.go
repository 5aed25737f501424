package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control/db"
)

// Counts are how many contacts of a campaign stand where.
func (s *Store) Counts(ctx context.Context, q db.Querier, campaignID string) (campaigns.Counts, error) {
	c := campaigns.Counts{ByState: map[campaigns.State]int{}, ByReason: map[string]int{}, Capped: map[string]int{}}
	all, err := q.Query(ctx, `
		SELECT state, reason, CASE WHEN reason = 'frequency_capped' THEN cap ELSE '' END, sum(n),
			coalesce(sum(n) FILTER (WHERE at_launch), 0), coalesce(sum(n) FILTER (WHERE ambiguous), 0), coalesce(sum(n) FILTER (WHERE tried), 0)
		FROM contact_tallies WHERE campaign_id = $1 GROUP BY 1, 2, 3 HAVING sum(n) <> 0`, campaignID)
	if err != nil {
		return c, fmt.Errorf("contacts: %w", err)
	}
	var state campaigns.State
	var reason, governing string
	var n, launch, ambiguous, tried int
	_, err = pgx.ForEachRow(all, []any{&state, &reason, &governing, &n, &launch, &ambiguous, &tried}, func() error {
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
	})
	if err != nil {
		return c, fmt.Errorf("contacts: %w", err)
	}
	return c, nil
}

// A Waiting is so many alike contacts.
type Waiting struct {
	Group             string // key of the hours that hold for them
	Cap               string // a frequency cap keeps them
	Wait, Early, Late bool
	N                 int
	Next              time.Time // when the first of those has its time that wait for one; zero for none
}

// Waiting are the contacts of a campaign that wait, alike ones together, as
// each sees it. Those that wait for nothing of their own are tallied; the others are
// looked at, as time changes how they stand.
func (s *Store) Waiting(ctx context.Context, q db.Querier, campaignID string, now time.Time, each func(Waiting) error) error {
	found, err := q.Query(ctx, `
		SELECT hours_group, '', false, false, false, sum(n), NULL FROM contact_tallies
		WHERE campaign_id = $1 AND state = 'pending' AND NOT timed GROUP BY 1 HAVING sum(n) <> 0
		UNION ALL
		SELECT hours_group, CASE WHEN next_attempt_at > $2 THEN governing_cap ELSE '' END, next_attempt_at > $2 IS TRUE,
			not_before > $2 IS TRUE, not_after <= $2 IS TRUE, count(*), min(greatest(next_attempt_at, not_before)) FILTER (WHERE greatest(next_attempt_at, not_before) > $2)
		FROM contacts WHERE campaign_id = $1 AND state = 'pending' AND (next_attempt_at IS NOT NULL OR not_before IS NOT NULL OR not_after IS NOT NULL)
			AND (SELECT sum(n) > 0 FROM contact_tallies WHERE campaign_id = $1 AND state = 'pending' AND timed)
		GROUP BY 1, 2, 3, 4, 5`, campaignID, now)
	if err != nil {
		return fmt.Errorf("contacts: %w", err)
	}
	var w Waiting
	var next *time.Time
	_, err = pgx.ForEachRow(found, []any{&w.Group, &w.Cap, &w.Wait, &w.Early, &w.Late, &w.N, &next}, func() error {
		w.Next = time.Time{}
		if next != nil {
			w.Next = next.UTC()
		}
		return each(w)
	})
	if err != nil {
		return fmt.Errorf("contacts: %w", err)
	}
	return nil
}

// Tallies are what is counted of a campaign's attempts, and how its line stands.
type Tallies struct {
	Outcomes    map[retry.Outcome]int
	On, Dialled int // attempts that are on, and that began in the last minute
	// Shut tells that campaigns are kept off its route, because calls through it fail.
	Shut bool
	// Due tells that its pace would have it call now.
	Due bool
}

// Tally counts the attempts of a campaign.
func (s *Store) Tally(ctx context.Context, q db.Querier, campaignID string, now time.Time) (Tallies, error) {
	t := Tallies{Outcomes: map[retry.Outcome]int{}}
	err := q.QueryRow(ctx, `
		SELECT
			(SELECT count(*) FROM contact_attempts WHERE campaign_id = $1 AND began_at > $2::timestamptz - interval '1 minute'),
			coalesce((SELECT json_object_agg(outcome, n) FROM
				(SELECT outcome, sum(n) AS n FROM attempt_tallies WHERE campaign_id = $1 GROUP BY 1 HAVING sum(n) <> 0) x), '{}'),
			EXISTS (SELECT FROM campaigns c JOIN route_breakers b ON b.subgroup_id = c.route_id WHERE c.id = $1 AND b.open),
			EXISTS (SELECT FROM campaign_paces WHERE campaign_id = $1 AND next_at <= clock_timestamp())`,
		campaignID, now).Scan(&t.Dialled, &t.Outcomes, &t.Shut, &t.Due)
	if err != nil {
		return t, fmt.Errorf("attempts: %w", err)
	}
	t.On = t.Outcomes[""]
	delete(t.Outcomes, "")
	return t, nil
}
