package store

import (
	"context"
	"time"

	"github.com/parley-voice/parley/control/db"
)

// A WaitingGroup counts pending contacts that have the values of its fields in common.
type WaitingGroup struct {
	Group             string // key of the contacts' calling hours
	Cap               string // frequency cap that holds the contacts
	Wait, Early, Late bool
	N                 int
	Next, Last        time.Time // earliest and latest next attempt or not_before in the future; zero for none
}

// timed selects contacts that have times of their own. It is the condition of the index contacts_timed.
const timed = "state = 'pending' AND (next_attempt_at IS NOT NULL OR not_before IS NOT NULL OR not_after IS NOT NULL)"

// timeKeys are the columns of contact_times by which contacts are counted, and timeKeysOfContacts the values of contacts.
const (
	timeKeys           = "hours_group, cap, slot, not_before, not_after"
	timeKeysOfContacts = "hours_group, governing_cap, coalesce(date_bin('10 minutes', next_attempt_at, 'epoch'), '-infinity'), " +
		"coalesce(not_before, '-infinity'), coalesce(not_after, 'infinity')"
)

// sameKey selects the contacts of a span in one of its slots. It is a range of the index contacts_timed.
const sameKey = `FROM contacts k WHERE campaign_id = $1 AND state = 'pending' AND k.hours_group = s.hours_group AND k.governing_cap = s.cap
	AND coalesce(k.not_before, '-infinity') = s.not_before AND coalesce(k.not_after, 'infinity') = s.not_after AND k.next_attempt_at `

// waitingSQL counts the contacts of contact_times. A slot in the past or in the future counts as a whole. Of the current
// slot, the contacts that still wait are read; of the first and the last slot in the future, one contact each. So the time
// does not depend on the number of contacts. If contact_times lacks contacts, all contacts with times are read.
const waitingSQL = `
WITH tallied AS MATERIALIZED (
	SELECT ` + timeKeys + `, sum(n) AS n FROM contact_times WHERE campaign_id = $1 GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0
), lacks AS MATERIALIZED (
	SELECT coalesce(sum(n), 0) <> coalesce((SELECT sum(n) FROM tallied), 0) AS any_lost
	FROM contact_tallies WHERE campaign_id = $1 AND state = 'pending' AND timed
), spans AS (
	SELECT hours_group, cap, not_before, not_after, (slot >= current)::int + (slot > current)::int AS side,
		sum(n) AS n, min(slot) AS first, max(slot) AS last
	FROM (
		SELECT * FROM tallied WHERE NOT (SELECT any_lost FROM lacks)
		UNION ALL
		SELECT ` + timeKeysOfContacts + `, count(*) FROM contacts WHERE campaign_id = $1 AND ` + timed + ` AND (SELECT any_lost FROM lacks)
		GROUP BY 1, 2, 3, 4, 5
	) x, date_bin('10 minutes', $2::timestamptz, 'epoch') current GROUP BY 1, 2, 3, 4, 5
), parts AS (
	SELECT hours_group, '' AS cap, false AS wait, not_before, not_after, n, NULL::timestamptz AS next, NULL::timestamptz AS last
	FROM spans WHERE side = 0
	UNION ALL
	SELECT hours_group, cap, true, not_before, not_after, n,
		(SELECT min(next_attempt_at) ` + sameKey + `BETWEEN s.first AND s.first + interval '10 minutes'),
		(SELECT max(next_attempt_at) ` + sameKey + `BETWEEN s.last AND s.last + interval '10 minutes')
	FROM spans s WHERE side = 2
	UNION ALL
	SELECT hours_group, x.cap, wait, not_before, not_after, x.n, x.next, x.last
	FROM spans s, LATERAL (
		SELECT count(*) AS n, min(next_attempt_at) AS next, max(next_attempt_at) AS last ` + sameKey + `> $2
			AND next_attempt_at < s.first + interval '10 minutes'
	) later, LATERAL (VALUES (s.cap, true, later.n, later.next, later.last), ('', false, s.n - later.n, NULL, NULL)) x (cap, wait, n, next, last)
	WHERE side = 1 AND x.n > 0
), dated AS (
	SELECT *, greatest(next, not_before) AS soonest, greatest(last, not_before) AS latest FROM parts
)
SELECT hours_group, cap, wait, not_before > $2, not_after <= $2, sum(n)::bigint,
	min(soonest) FILTER (WHERE soonest > $2), max(latest) FILTER (WHERE latest > $2)
FROM dated GROUP BY 1, 2, 3, 4, 5`

// EachWaiting calls each for the groups of pending contacts.
func (Contacts) EachWaiting(ctx context.Context, q db.Querier, campaignID string, now time.Time, each func(WaitingGroup) error) error {
	var w WaitingGroup
	to := []any{&w.Group, &w.N}
	err := db.Each(ctx, q, "contacts", to, func() error { return each(w) }, `
		SELECT hours_group, sum(n) FROM contact_tallies
		WHERE campaign_id = $1 AND state = 'pending' AND NOT timed GROUP BY 1 HAVING sum(n) <> 0`, campaignID)
	if err != nil {
		return err
	}
	var next, last *time.Time
	to = []any{&w.Group, &w.Cap, &w.Wait, &w.Early, &w.Late, &w.N, &next, &last}
	return db.Each(ctx, q, "contacts", to, func() error {
		w.Next, w.Last = zeroTime(next), zeroTime(last)
		return each(w)
	}, waitingSQL, campaignID, now)
}
