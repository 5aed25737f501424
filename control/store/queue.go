package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

// alive lists the states that hold a line, for SQL.
const alive = `('claimed', 'intent', 'sent', 'ringing', 'answered')`

// waySQL locks a way out. Among the subgroups that may dial now the one that
// waited longest comes first, so that a long queue of one cannot starve another.
// A node that finds a subgroup or its trunk locked looks elsewhere.
const waySQL = waiting + `
SELECT s.id ` + ways + `
WHERE s.id IN (SELECT id FROM waiting) AND ` + mayDial + `
ORDER BY s.next_dial_at LIMIT 1
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

// ways are all subgroups s, each with its trunk t and the grant g of it, if any.
const ways = `FROM subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id`

// mayDial holds the limits of a subgroup s, its trunk t and its grant g.
const mayDial = `s.next_dial_at <= clock_timestamp() AND t.next_dial_at <= clock_timestamp()
  AND (SELECT count(*) FROM attempts x WHERE x.subgroup_id = s.id AND x.state IN ` + alive + `) < least(s.concurrent_calls, nullif(g.concurrent_calls, 0))
  AND (t.concurrent_calls = 0 OR
       (SELECT count(*) FROM attempts x WHERE x.trunk_id = t.id AND x.state IN ` + alive + `) < t.concurrent_calls)`

// apart stretches the pace a little: a carrier counts requests as they come, and
// from the claim to the request it takes now longer and now less.
const apart = `1.01`

// claimSQL takes the oldest attempt of a locked way. The limits are looked at
// again: the statement that locked saw the calls as they were before it had the
// locks, and another node may have claimed since.
const claimSQL = `
WITH way AS (
	SELECT s.id, s.trunk_id, least(s.calls_per_minute, nullif(g.calls_per_minute, 0)) AS calls_per_minute, t.calls_per_second,
	       clock_timestamp() AS at
	` + ways + `
	WHERE s.id = $4 AND ` + mayDial + `
), pick AS (
	SELECT q.id, way.at FROM attempts q JOIN way ON q.subgroup_id = way.id
	WHERE q.state = 'scheduled'
	ORDER BY q.created_at, q.id LIMIT 1
	FOR UPDATE OF q SKIP LOCKED
), token AS (
	UPDATE subgroups s SET next_dial_at = way.at + ` + apart + ` * interval '1 minute' / way.calls_per_minute
	FROM way WHERE s.id = way.id AND EXISTS (SELECT FROM pick)
), trunk_token AS (
	UPDATE trunks t SET next_dial_at = way.at + ` + apart + ` * interval '1 second' / way.calls_per_second
	FROM way WHERE t.id = way.trunk_id AND way.calls_per_second > 0 AND EXISTS (SELECT FROM pick)
)
UPDATE attempts SET state = 'claimed', owner = $1, home = $2, epoch = epoch + 1,
	claimed_at = pick.at, lease_until = clock_timestamp() + $3
FROM pick WHERE attempts.id = pick.id
RETURNING attempts.id, attempts.call_id, attempts.epoch`

// claimTries is how often a claim looks again after the way that it locked had
// been used up meanwhile.
const claimTries = 3

// Claim implements control.Queue.
func (s *Store) Claim(ctx context.Context, p control.Place, lease time.Duration) (*control.Claim, error) {
	for range claimTries {
		c, again, err := s.claim(ctx, p, lease)
		if err != nil {
			return nil, fmt.Errorf("claim: %w", err)
		}
		if !again {
			return c, nil
		}
	}
	return nil, nil
}

// claim tries once. It says whether to look again.
func (s *Store) claim(ctx context.Context, p control.Place, lease time.Duration) (claimed *control.Claim, again bool, err error) {
	// Read before the database's clock starts the lease, so that ours is never
	// the later one.
	c := &control.Claim{Until: time.Now().Add(lease), Lease: control.Lease{Owner: p.Owner}}
	err = db.Tx(ctx, s.Pool, func(tx pgx.Tx) error {
		var way string
		fault := tx.QueryRow(ctx, waySQL).Scan(&way)
		if fault != nil {
			return fault
		}
		again = true
		fault = tx.QueryRow(ctx, claimSQL, p.Owner, p.Home, lease, way).Scan(&c.Lease.AttemptID, &c.Lease.CallID, &c.Lease.Epoch)
		if fault != nil {
			return fault
		}
		fault = s.fillOrUndo(ctx, tx, c)
		if fault == nil {
			claimed, again = c, false
			return nil
		}
		if !ofTheCall(ctx, tx, fault) {
			return fault
		}
		// The trunk or the agent was deleted while the call was queued, or the
		// call cannot be read: it must not keep the others from being dialled.
		if fault = move(ctx, tx, c.Lease, control.Closed); fault != nil {
			return fault
		}
		return conclude(ctx, tx, c.Lease.CallID, control.Final{
			Status: control.Failed, Reason: control.ReasonInternalError, HangupBy: control.SideSystem,
			EndedAt: time.Now(), Recording: control.RecordingNone,
		})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, again, nil
	}
	if err != nil {
		return nil, false, err
	}
	return claimed, again, nil
}

// fillOrUndo is fill in a savepoint, so that the transaction outlives its error.
func (s *Store) fillOrUndo(ctx context.Context, tx pgx.Tx, c *control.Claim) error {
	return pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return s.fill(ctx, inner, c) })
}

// ofTheCall tells an error that this call will bring about again from one of
// the database, which any call could have met.
func ofTheCall(ctx context.Context, tx pgx.Tx, err error) bool {
	if ctx.Err() != nil || tx.Conn().IsClosed() {
		return false
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch refusal.Code[:min(2, len(refusal.Code))] {
		case "08", "40", "53", "57", "58", "XX": // connection, serialization, resources, intervention, system, internal
			return false
		}
	}
	return true
}

// fill reads what a claimed call needs.
func (s *Store) fill(ctx context.Context, tx pgx.Tx, c *control.Claim) error {
	var definition []byte
	var secrets media.Secret
	var trunk trunks.Trunk
	var err error
	c.Call, err = scanCall(tx.QueryRow(ctx, "SELECT "+columns+`, v.definition, v.secrets, t.proxy, t.username, t.password, t.settings`+fromCalls+`
		JOIN agent_versions v ON v.agent_id = c.agent_id AND v.version = c.agent_version
		JOIN trunks t ON t.id = c.trunk_id
		WHERE c.id = $1`, c.Lease.CallID),
		&definition, &secrets, &trunk.Proxy, &trunk.Username, &trunk.Password, &trunk.Settings)
	if err != nil {
		return fmt.Errorf("call %s: %w", c.Lease.CallID, err)
	}
	d, err := agents.Read(definition, secrets)
	if err != nil {
		return fmt.Errorf("agent of call %s: %w", c.Lease.CallID, err)
	}
	c.Target = media.Target{
		ID: c.Lease.AttemptID, To: c.Call.DialNumber, Number: c.Call.To, From: c.Call.From, Trunk: trunk.Line(), RingFor: c.Call.RingFor,
	}
	c.Brief, c.Record = brief(c.Call, d)
	if len(d.Tools) > 0 {
		c.Brief.Tools, err = tools.Build(d.Definitions(), s.Reach, s.Asks)
	}
	if err != nil {
		return fmt.Errorf("agent of call %s: %w", c.Lease.CallID, err)
	}
	return nil
}

func brief(c control.Call, d agents.Definition) (pipeline.Brief, bool) {
	values := d.Values(c.Name, c.Variables)
	longest := c.MaxDuration
	if longest == 0 {
		longest = time.Duration(d.MaxDurationS) * time.Second
	}
	return pipeline.Brief{
		CallID: c.ID, Greeting: agents.Fill(d.Greeting, values), Prompt: agents.Fill(d.Prompt, values),
		Language: d.Language, Engines: d.Speech, MaxDuration: longest, Limits: d.Limits, Pronunciation: d.Pronunciation,
		Voicemail: pipeline.Voicemail(c.Voicemail), VoicemailMessage: agents.Fill(d.VoicemailMessage, values),
	}, c.RecordingStatus != control.RecordingDisabled
}

// Due implements control.Queue.
func (s *Store) Due(ctx context.Context, limit time.Duration) (time.Duration, error) {
	var seconds *float64
	err := s.Pool.QueryRow(ctx, waiting+`
		SELECT extract(epoch FROM min(greatest(s.next_dial_at, t.next_dial_at)) - clock_timestamp())::float8
		FROM subgroups s JOIN trunks t ON t.id = s.trunk_id
		WHERE greatest(s.next_dial_at, t.next_dial_at) > clock_timestamp() AND s.id IN (SELECT id FROM waiting)`).Scan(&seconds)
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
	rows, err := s.Pool.Query(ctx, `
		UPDATE attempts SET lease_until = clock_timestamp() + $3
		WHERE owner = $1 AND state IN `+alive+`
		  AND (id = ANY ($2) OR leg = 'transfer' AND call_id IN (SELECT call_id FROM attempts WHERE id = ANY ($2)))
		RETURNING id, call_id, owner, epoch`, owner, attempts, lease)
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
	rows, err := s.Pool.Query(ctx, `
		SELECT c.id FROM attempts a JOIN calls c ON c.id = a.call_id
		WHERE a.owner = $1 AND a.state IN `+alive+` AND c.end_requested_at IS NOT NULL`, owner)
	if err != nil {
		return nil, fmt.Errorf("calls to end: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("calls to end: %w", err)
	}
	return ids, nil
}
