package store

// A subgroup and a grant allow calls_per_minute starts in any 60 s. The tables subgroup_starts and grant_starts
// number the starts and keep them for two minutes. With a limit of n per minute, the next start is due one minute
// after the n-th last start. Within that limit, single calls and transfer legs start at once. Campaign calls are also
// spaced evenly by the next_dial_at of subgroup and grant. A trunk's calls_per_second spaces all its calls.
//
// A timestamp that is too far in the future was written before the clock was set back. It is ignored.

// PaceMargin stretches every interval by 1%. A carrier counts requests when they arrive, and the time between claim
// and request varies.
const PaceMargin = `1.01`

const (
	windowOfSubgroup = `(SELECT x.at + ` + PaceMargin + ` * interval '1 minute' FROM subgroup_starts x
	WHERE x.subgroup_id = s.id AND x.n = s.started + 1 - s.calls_per_minute AND x.at < clock_timestamp() + interval '2 minutes')`
	windowOfGrant = `(SELECT x.at + ` + PaceMargin + ` * interval '1 minute' FROM grant_starts x
	WHERE g.calls_per_minute > 0 AND x.grant_id = g.id AND x.n = g.started + 1 - g.calls_per_minute AND x.at < clock_timestamp() + interval '2 minutes')`
	spaceOfTrunk = `CASE WHEN t.next_dial_at < clock_timestamp() + interval '3 minutes' + coalesce(interval '2 seconds' / nullif(t.calls_per_second, 0), interval '0') THEN t.next_dial_at END`
	spaceOfWay   = `CASE WHEN s.next_dial_at < clock_timestamp() + interval '3 minutes' THEN s.next_dial_at END,
	CASE WHEN g.next_dial_at < clock_timestamp() + interval '3 minutes' THEN g.next_dial_at END`
)

// DueAt is the SQL of the time from which a single call or a transfer leg may start through subgroup s, trunk t and
// grant g; -infinity means now.
const DueAt = `coalesce(greatest(` + windowOfSubgroup + `, ` + windowOfGrant + `, ` + spaceOfTrunk + `), '-infinity')`

// EvenlyDueAt is the SQL of the time from which a campaign call may start; see DueAt.
const EvenlyDueAt = `coalesce(greatest(` + windowOfSubgroup + `, ` + windowOfGrant + `, ` + spaceOfTrunk + `, ` + spaceOfWay + `), '-infinity')`

// startsLeft is how many of $8 calls the calls_per_minute of subgroup s and grant g allow now. It counts the starts that
// must be a minute old. The trunk's calls_per_second allows one call at a time.
const startsLeft = `least(least($8::int, s.calls_per_minute) - (SELECT count(*) FROM subgroup_starts x WHERE x.subgroup_id = s.id
	  AND x.n > s.started - s.calls_per_minute AND x.n <= s.started - s.calls_per_minute + least($8::int, s.calls_per_minute)` + lastMinute + `),
	CASE WHEN g.calls_per_minute > 0 THEN least($8::int, g.calls_per_minute) - (SELECT count(*) FROM grant_starts x WHERE x.grant_id = g.id
	  AND x.n > g.started - g.calls_per_minute AND x.n <= g.started - g.calls_per_minute + least($8::int, g.calls_per_minute)` + lastMinute + `) END,
	CASE WHEN t.calls_per_second > 0 THEN 1 END)`

const lastMinute = ` AND x.at > clock_timestamp() - ` + PaceMargin + ` * interval '1 minute' AND x.at < clock_timestamp() + interval '2 minutes'`

// RecordStart records the starts in the CTE "start" (subgroup id, trunk_id, grant_id, at, number of calls, per_minute,
// per_second, lent_per_minute). Each start also deletes two expired starts, which bounds the tables. The caller must
// hold locks on subgroup and trunk.
const RecordStart = `subgroup_start AS (
	UPDATE subgroups s SET started = s.started + start.calls, next_dial_at = start.at + ` + PaceMargin + ` * interval '1 minute' / start.per_minute
	FROM start WHERE s.id = start.id RETURNING s.id, s.started, start.calls, start.at
), subgroup_log AS (
	INSERT INTO subgroup_starts (subgroup_id, n, at) SELECT id, started - i, at FROM subgroup_start, generate_series(0, calls - 1) i
), subgroup_old AS (
	DELETE FROM subgroup_starts x USING start, LATERAL (
		SELECT subgroup_id, n, at FROM subgroup_starts WHERE subgroup_id = start.id ORDER BY n LIMIT 2 * start.calls) old
	WHERE x.subgroup_id = old.subgroup_id AND x.n = old.n AND old.at NOT BETWEEN start.at - interval '2 minutes' AND start.at + interval '2 minutes'
), trunk_start AS (
	UPDATE trunks t SET next_dial_at = start.at + ` + PaceMargin + ` * interval '1 second' / start.per_second
	FROM start WHERE t.id = start.trunk_id AND start.per_second > 0
), grant_start AS (
	UPDATE grants g SET started = g.started + start.calls, next_dial_at = start.at + ` + PaceMargin + ` * interval '1 minute' / start.lent_per_minute
	FROM start WHERE g.id = start.grant_id AND start.lent_per_minute > 0 RETURNING g.id, g.started, start.calls, start.at
), grant_log AS (
	INSERT INTO grant_starts (grant_id, n, at) SELECT id, started - i, at FROM grant_start, generate_series(0, calls - 1) i
), grant_old AS (
	DELETE FROM grant_starts x USING grant_start, LATERAL (
		SELECT grant_id, n, at FROM grant_starts WHERE grant_id = grant_start.id ORDER BY n LIMIT 2 * grant_start.calls) old
	WHERE x.grant_id = old.grant_id AND x.n = old.n AND old.at NOT BETWEEN grant_start.at - interval '2 minutes' AND grant_start.at + interval '2 minutes'
)`
