package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/group"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

// Alive lists the states that hold a line, for SQL.
const Alive = `('claimed', 'intent', 'sent', 'ringing', 'answered')`

// waySQL locks ways out. Among the subgroups that may dial now those that waited
// longest come first, so that a long queue of one cannot starve another. A node
// that finds a subgroup or its trunk locked looks elsewhere.
const waySQL = waiting + `
SELECT s.id ` + Ways + `
WHERE s.id IN (SELECT id FROM waiting) AND ` + mayDial + `
ORDER BY s.next_dial_at LIMIT $1
FOR UPDATE OF s, t SKIP LOCKED`

// waiting are the subgroups whose calls wait, found from one to the next in the
// index, however many calls each has.
const waiting = `
WITH RECURSIVE waiting AS (
	(SELECT subgroup_id AS id FROM attempts WHERE state = 'scheduled' ORDER BY subgroup_id LIMIT 1)
	UNION ALL
	SELECT (SELECT subgroup_id FROM attempts WHERE state = 'scheduled' AND subgroup_id > w.id ORDER BY subgroup_id LIMIT 1)
	FROM waiting w WHERE w.id IS NOT NULL
)`

// Ways are all subgroups s, each with its trunk t and the grant g of it, if any.
const Ways = `FROM subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id`

// HasLine holds the lines of a subgroup s, its trunk t and its grant g, which is
// the only one of its organization and trunk, and counts all subgroups of both.
const HasLine = `(SELECT count(*) FROM attempts x WHERE x.subgroup_id = s.id AND x.state IN ` + Alive + `) < s.concurrent_calls
  AND (coalesce(g.concurrent_calls, 0) = 0 OR
       (SELECT count(*) FROM attempts x WHERE x.trunk_id = t.id AND x.org_id = g.org_id AND x.state IN ` + Alive + `) < g.concurrent_calls)
  AND (t.concurrent_calls = 0 OR
       (SELECT count(*) FROM attempts x WHERE x.trunk_id = t.id AND x.state IN ` + Alive + `) < t.concurrent_calls)`

// DueAt is when the next call of a way is due. What its pace cannot have put so far off
// was written before the database's clock went back, and counts for nothing.
const DueAt = `coalesce(greatest(CASE WHEN s.next_dial_at < clock_timestamp() + interval '3 minutes' THEN s.next_dial_at END,
  CASE WHEN t.next_dial_at < clock_timestamp() + interval '3 minutes' + coalesce(interval '2 seconds' / nullif(t.calls_per_second, 0), interval '0') THEN t.next_dial_at END,
  CASE WHEN g.next_dial_at < clock_timestamp() + interval '3 minutes' THEN g.next_dial_at END), '-infinity')`

const mayDial = DueAt + ` <= clock_timestamp() AND ` + HasLine

// Apart stretches the pace a little: a carrier counts requests as they come, and
// from the claim to the request it takes now longer and now less.
const Apart = `1.01`

// claimSQL takes the oldest attempt of each locked way, and of each trunk and each
// grant that has a limit of its own, that of one way. The limits are looked at again: the
// statement that locked saw the calls as they were before it had the locks, and
// another node may have claimed since.
const claimSQL = `
WITH open AS (
	SELECT s.id, s.trunk_id, g.id AS grant_id, s.calls_per_minute, t.calls_per_second, g.calls_per_minute AS lent_per_minute,
	       row_number() OVER (PARTITION BY CASE WHEN t.calls_per_second > 0 OR t.concurrent_calls > 0 THEN t.id
	         WHEN g.calls_per_minute > 0 OR g.concurrent_calls > 0 THEN g.id ELSE s.id END ORDER BY s.next_dial_at) AS place
	` + Ways + `
	WHERE s.id = ANY ($4) AND ` + mayDial + `
), way AS (
	SELECT *, clock_timestamp() AS at FROM open WHERE place = 1
), pick AS (
	SELECT q.id, way.id AS way, way.at FROM way, LATERAL (
		SELECT id FROM attempts WHERE subgroup_id = way.id AND state = 'scheduled'
		ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED) q
), token AS (
	UPDATE subgroups s SET next_dial_at = way.at + ` + Apart + ` * interval '1 minute' / way.calls_per_minute
	FROM way JOIN pick ON pick.way = way.id WHERE s.id = way.id
), trunk_token AS (
	UPDATE trunks t SET next_dial_at = way.at + ` + Apart + ` * interval '1 second' / way.calls_per_second
	FROM way JOIN pick ON pick.way = way.id WHERE t.id = way.trunk_id AND way.calls_per_second > 0
), grant_token AS (
	UPDATE grants g SET next_dial_at = way.at + ` + Apart + ` * interval '1 minute' / way.lent_per_minute
	FROM way JOIN pick ON pick.way = way.id WHERE g.id = way.grant_id AND way.lent_per_minute > 0
)
UPDATE attempts SET state = 'claimed', owner = $1, home = $2, epoch = epoch + 1,
	claimed_at = pick.at, lease_until = clock_timestamp() + $3
FROM pick WHERE attempts.id = pick.id
RETURNING attempts.id, attempts.call_id, attempts.owner, attempts.epoch`

// claimTries is how often a claim looks again after the way that it locked had
// been used up meanwhile.
const claimTries = 3

// Claim implements control.Queue. Claims that it returns beside an error are
// good; the others lapse.
func (s *Store) Claim(ctx context.Context, p control.Place, lease time.Duration, most int) ([]*control.Claim, error) {
	for range claimTries {
		// Read before the database's clock starts the lease, so that ours is never
		// the later one.
		until := time.Now().Add(lease)
		held, ways, err := s.take(ctx, p, lease, most)
		if err != nil {
			return nil, fmt.Errorf("claim: %w", err)
		}
		claims, err := s.prepare(ctx, held, until)
		if err != nil {
			return claims, fmt.Errorf("claim: %w", err)
		}
		if len(claims) > 0 || ways == 0 {
			return claims, nil
		}
	}
	return nil, nil
}

// take claims what may be dialled, and says how many ways there were.
func (s *Store) take(ctx context.Context, p control.Place, lease time.Duration, most int) (held []control.Lease, ways int, err error) {
	err = db.Tx(ctx, s.dial(), func(tx pgx.Tx) error {
		rows, fault := tx.Query(ctx, waySQL, most)
		if fault != nil {
			return fault
		}
		found, fault := pgx.CollectRows(rows, pgx.RowTo[string])
		if ways = len(found); fault != nil || ways == 0 {
			return fault
		}
		if rows, fault = tx.Query(ctx, claimSQL, p.Owner, p.Home, lease, found); fault != nil {
			return fault
		}
		held, fault = pgx.CollectRows(rows, pgx.RowToStructByPos[control.Lease])
		return fault
	})
	return held, ways, err
}

// Prepare reads what calls need that were claimed elsewhere, as Claim does.
func (s *Store) Prepare(ctx context.Context, held []control.Lease, until time.Time) ([]*control.Claim, error) {
	return s.prepare(ctx, held, until)
}

// prepare reads what claimed calls need. What cannot be read for a reason of its
// own must not keep the others from being dialled: it ends. What the database
// keeps from being read goes back to the queue.
func (s *Store) prepare(ctx context.Context, held []control.Lease, until time.Time) ([]*control.Claim, error) {
	claims, err := s.fill(ctx, held)
	if err != nil && len(held) > 1 {
		var each []error
		claims = nil
		for _, l := range held {
			one, fault := s.prepare(ctx, []control.Lease{l}, until)
			claims, each = append(claims, one...), append(each, fault)
		}
		return claims, errors.Join(each...)
	}
	for _, c := range claims {
		c.Until = until
	}
	if err == nil {
		return claims, nil
	}
	if !ofTheCall(ctx, err) {
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseFor)
		defer cancel()
		return nil, errors.Join(err, s.Release(free, held[0]))
	}
	// The trunk or the agent was deleted while the call was queued, or the call
	// makes no sense.
	return nil, s.Finish(ctx, held[0], control.Final{
		Status: control.Failed, Reason: control.ReasonInternalError, HangupBy: control.SideSystem,
		EndedAt: time.Now(), Recording: control.RecordingNone,
	})
}

// releaseFor bounds how long a claim is tried to be given back.
const releaseFor = 2 * time.Second

// ofTheCall tells an error that this call will bring about again from one of
// the database, which any call could have met.
func ofTheCall(ctx context.Context, err error) bool {
	if _, ok := errors.AsType[*badCallError](err); ok {
		return true
	}
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && ctx.Err() == nil && !ofTheDatabase(refusal)
}

// A badCallError is what is wrong with a call that was read.
type badCallError struct {
	call string
	err  error
}

// Error implements error.
func (b *badCallError) Error() string { return "call " + b.call + ": " + b.err.Error() }

// Unwrap is for errors.Is.
func (b *badCallError) Unwrap() error { return b.err }

// ofTheDatabase tells an error that has nothing to do with what was written.
func ofTheDatabase(err *pgconn.PgError) bool {
	switch err.Code[:min(2, len(err.Code))] {
	case "08", "40", "53", "57", "58", "XX": // connection, serialization, resources, intervention, system, internal
		return true
	}
	return false
}

const fillSQL = "SELECT " + columns + `, v.definition, v.secrets, t.proxy, t.username, t.password, t.settings` + fromCalls + `
	JOIN agent_versions v ON v.agent_id = c.agent_id AND v.version = c.agent_version
	JOIN trunks t ON t.id = c.trunk_id
	WHERE c.id = ANY ($1)`

// fill reads what claimed calls need.
func (s *Store) fill(ctx context.Context, held []control.Lease) ([]*control.Claim, error) {
	if len(held) == 0 {
		return nil, nil
	}
	rows, err := s.dial().Query(ctx, fillSQL, group.Column(held, func(l control.Lease) string { return l.CallID }))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var claims []*control.Claim
	for rows.Next() {
		c, err := s.claimOf(rows)
		if err != nil {
			return nil, &badCallError{c.Call.ID, err}
		}
		n := slices.IndexFunc(held, func(l control.Lease) bool { return l.CallID == c.Call.ID })
		c.Lease, c.Target.ID = held[n], held[n].AttemptID
		claims = append(claims, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(claims) < len(held) {
		return nil, &badCallError{held[0].CallID, pgx.ErrNoRows}
	}
	return claims, nil
}

// claimOf reads a row of fillSQL. The claim that it returns beside an error may be
// empty.
func (s *Store) claimOf(row pgx.Row) (*control.Claim, error) {
	c := &control.Claim{}
	var definition []byte
	var secrets media.Secret
	var trunk trunks.Trunk
	var err error
	c.Call, err = scanCall(row, &definition, &secrets, &trunk.Proxy, &trunk.Username, &trunk.Password, &trunk.Settings)
	if err != nil {
		return c, err
	}
	d, err := agents.Read(definition, secrets)
	if err != nil {
		return c, fmt.Errorf("agent: %w", err)
	}
	c.Target = media.Target{
		To: c.Call.DialNumber, Number: c.Call.To, From: c.Call.From, Trunk: trunk.Line(), RingFor: c.Call.RingFor,
	}
	c.Brief, c.Record = brief(c.Call, d)
	if len(d.Tools) > 0 {
		if c.Brief.Tools, err = tools.Build(d.Definitions(), s.Reach, s.Asks); err != nil {
			return c, fmt.Errorf("agent: %w", err)
		}
	}
	return c, nil
}

func brief(c control.Call, d agents.Definition) (pipeline.Brief, bool) {
	values := d.Values(c.Name, c.Variables)
	longest := c.MaxDuration
	if longest == 0 {
		longest = time.Duration(d.MaxDurationS) * time.Second
	}
	return pipeline.Brief{
		CallID: c.ID, Disclosure: c.Disclosure, Greeting: agents.Fill(d.Greeting, values), Prompt: agents.Fill(d.Prompt, values),
		Language: d.Language, Engines: d.Speech, MaxDuration: longest, Limits: d.Limits, Pronunciation: d.Pronunciation,
		OptOuts:   pipeline.OptOuts{Key: c.OptOut.Key, Phrases: c.OptOut.Phrases},
		Voicemail: pipeline.Voicemail(c.Voicemail), VoicemailMessage: agents.Fill(d.VoicemailMessage, values),
	}, c.RecordingStatus != control.RecordingDisabled
}

// Due implements control.Queue.
func (s *Store) Due(ctx context.Context, limit time.Duration) (time.Duration, error) {
	var seconds *float64
	err := s.dial().QueryRow(ctx, waiting+`
		SELECT extract(epoch FROM min(`+DueAt+`) - clock_timestamp())::float8 `+Ways+`
		WHERE `+DueAt+` > clock_timestamp() AND s.id IN (SELECT id FROM waiting)`).Scan(&seconds)
	if err != nil {
		return limit, fmt.Errorf("dial queue: %w", err)
	}
	if seconds == nil {
		return limit, nil
	}
	wait := time.Duration(*seconds*float64(time.Second)) + time.Millisecond
	return min(max(wait, time.Millisecond), limit), nil
}

// Depth returns how many calls wait in the dial queue of the whole deployment.
func (s *Store) Depth(ctx context.Context) (n int, err error) {
	if err = s.Pool.QueryRow(ctx, "SELECT count(*) FROM attempts WHERE state = 'scheduled'").Scan(&n); err != nil {
		return 0, fmt.Errorf("dial queue: %w", err)
	}
	return n, nil
}

// Drained returns how many calls left the dial queue in the last minute.
func (s *Store) Drained(ctx context.Context) (n int, err error) {
	if err = s.Pool.QueryRow(ctx, "SELECT count(*) FROM attempts WHERE claimed_at > now() - interval '1 minute'").Scan(&n); err != nil {
		return 0, fmt.Errorf("dial queue: %w", err)
	}
	return n, nil
}

// Renew implements control.Queue.
func (s *Store) Renew(ctx context.Context, owner string, attempts []string, lease time.Duration) ([]control.Lease, error) {
	rows, err := s.dial().Query(ctx, `
		WITH mine AS ( -- in the order in which others lock
			SELECT id FROM attempts WHERE owner = $1 AND state IN `+Alive+`
			  AND (id = ANY ($2) OR leg = 'transfer' AND call_id IN (SELECT call_id FROM attempts WHERE id = ANY ($2)))
			ORDER BY id FOR UPDATE)
		UPDATE attempts a SET lease_until = clock_timestamp() + $3 FROM mine WHERE a.id = mine.id
		RETURNING a.id, a.call_id, a.owner, a.epoch`, owner, attempts, lease)
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	held, err := pgx.CollectRows(rows, pgx.RowToStructByPos[control.Lease])
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	return held, nil
}

// ToEnd implements control.Queue.
func (s *Store) ToEnd(ctx context.Context, owner string) ([]string, error) {
	rows, err := s.dial().Query(ctx, `
		SELECT c.id FROM attempts a JOIN calls c ON c.id = a.call_id
		WHERE a.owner = $1 AND a.state IN `+Alive+` AND c.end_requested_at IS NOT NULL`, owner)
	if err != nil {
		return nil, fmt.Errorf("calls to end: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("calls to end: %w", err)
	}
	return ids, nil
}
