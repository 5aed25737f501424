package store

import (
	"cmp"
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
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

// ActiveStates is the SQL list of the attempt states in which an attempt occupies a trunk channel.
const ActiveStates = `('claimed', 'intent', 'sent', 'ringing', 'answered')`

// lockRoutesSQL locks up to $1 subgroups that may dial now. The subgroup that has waited longest comes first, so that
// a long queue does not starve other subgroups. It skips subgroups and trunks that other transactions have locked, and
// the paused trunks $4. It also skips a subgroup whose calls are all held after a failover, so that other subgroups of
// the trunk can dial. The second column is dialing_since(). $5 is the beginning of the queue, or NULL.
//
//nolint:gochecknoglobals // made once
var lockRoutesSQL = waitingSQL("$5") + `, epoch AS MATERIALIZED (SELECT dialing_since() AS since)
SELECT s.id, (SELECT since FROM epoch)::text ` + FromRoutes + `
WHERE s.id IN (SELECT id FROM waiting) AND NOT s.trunk_id = ANY ($4) AND ` + mayDialSQL + `
  AND ($2 AND $3::text[] = '{}' OR EXISTS (SELECT FROM attempts q WHERE q.subgroup_id = s.id AND q.state = 'scheduled'
    AND ($2 OR ` + unrecordedSQL + `) AND NOT ` + agentInSQL + `($3))))
  AND ((SELECT since FROM epoch) = '-infinity' OR EXISTS (SELECT FROM attempts q WHERE q.subgroup_id = s.id AND q.state = 'scheduled'
    AND q.created_at >= (SELECT since FROM epoch)))
ORDER BY s.next_dial_at LIMIT $1
FOR UPDATE OF s, t SKIP LOCKED`

// unrecordedSQL is true for an attempt q whose call is not recorded.
const unrecordedSQL = `EXISTS (SELECT FROM calls c WHERE c.id = q.call_id AND c.recording_status = 'disabled')`

// agentInSQL, followed by a list of agent keys in parentheses, is true for an attempt q of one of these agents.
const agentInSQL = `EXISTS (SELECT FROM calls c WHERE c.id = q.call_id AND c.agent_id || ':' || c.agent_version = ANY `

// FromRoutes joins all subgroups s with their trunk t and grant g, if any.
const FromRoutes = `FROM subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id`

const mayDialSQL = DueAt + ` <= clock_timestamp() AND ` + HasFreeChannel

// claimSQL claims the oldest attempts of each locked subgroup, at most $8 of each. If a trunk or grant has limits of its
// own, it claims attempts of only one subgroup for the trunk or grant. It checks the limits again, because another node
// may have claimed calls after the snapshot of lockRoutesSQL and before its locks. After the database reverted to an
// older state, calls that were queued before $7, the result of dialing_since(), are held; NULL holds all calls. $9 is the
// beginning of the queue, or NULL.
const claimSQL = `
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at), room AS (
	SELECT s.id, s.trunk_id, g.id AS grant_id, s.calls_per_minute AS per_minute, t.calls_per_second AS per_second, g.calls_per_minute AS lent_per_minute,
	       CASE WHEN t.calls_per_second > 0 OR t.concurrent_calls > 0 THEN t.id WHEN g.calls_per_minute > 0 OR g.concurrent_calls > 0 THEN g.id ELSE s.id END AS limited,
	       s.next_dial_at, least(` + startsLeft + `, ` + FreeChannels + `) AS most
	` + FromRoutes + `
	WHERE s.id = ANY ($4) AND ` + DueAt + ` <= clock_timestamp()
), route AS (
	SELECT DISTINCT ON (limited) room.*, now.at FROM room, now WHERE most > 0 ORDER BY limited, next_dial_at
), pick AS (
	SELECT q.id, route.id AS route FROM route, LATERAL (
		SELECT q.id FROM attempts q WHERE q.subgroup_id = route.id AND q.state = 'scheduled' AND ($5 OR ` + unrecordedSQL + `)
		  AND q.created_at >= $7::text::timestamptz AND q.created_at >= coalesce($9::timestamptz, '-infinity')
		  AND ($6::text[] = '{}' OR NOT ` + agentInSQL + `($6)))
		ORDER BY q.created_at, q.id LIMIT route.most FOR UPDATE SKIP LOCKED) q
), start AS (
	SELECT route.*, p.calls FROM route JOIN (SELECT route, count(*) AS calls FROM pick GROUP BY 1) p ON p.route = route.id
), ` + RecordStart + `
UPDATE attempts SET state = 'claimed', owner = $1, home = $2, epoch = epoch + 1,
	claimed_at = (SELECT at FROM now), lease_until = clock_timestamp() + $3
WHERE id = ANY (ARRAY(SELECT id FROM pick)) -- not a join: the plan of a join depends on a wrong estimate of pick
RETURNING id, call_id, owner, epoch`

// claimRounds limits how many statements of a transaction claim attempts. Another one is of use if subgroups share
// limits. Each checks the limits again.
const claimRounds = 4

// claimTries limits how often a claim is repeated after other nodes took the channels of the locked subgroups.
const claimTries = 3

// Claim implements control.Queue. If it returns claims and an error, the claims are valid; the other leases expire.
func (s *Store) Claim(ctx context.Context, p control.NodeID, lease time.Duration, most int) ([]*control.Claim, error) {
	for range claimTries {
		// Read the clock before the database starts the lease: the local end of the lease is then never later than
		// the stored one.
		until := time.Now().Add(lease)
		leases, routes, err := s.claimLeases(ctx, p, lease, most)
		if err != nil {
			return nil, fmt.Errorf("claim: %w", err)
		}
		claims, err := s.prepare(ctx, leases, until)
		claims, fault := s.releaseUnavailable(ctx, claims)
		if err = errors.Join(err, fault); err != nil {
			return claims, fmt.Errorf("claim: %w", err)
		}
		if len(claims) > 0 || routes == 0 {
			return claims, nil
		}
	}
	return nil, nil
}

// claimLeases claims attempts. It also returns how many subgroups could dial.
func (s *Store) claimLeases(
	ctx context.Context, p control.NodeID, lease time.Duration, most int,
) (leases []control.Lease, routes int, err error) {
	without := []string{}
	if s.Agents != nil {
		without = s.Agents.UnavailableAgents()
	}
	from := s.search.start(time.Now())
	records := s.CheckRecording == nil || s.CheckRecording() == nil
	args := []any{most, records, without, s.pausedTrunks(), orNull(from)}
	began := time.Now()
	if s.search.idle.Load() { // locks too, so that the pool leaves a server that became read-only
		found, _, fault := lockRoutes(ctx, s.dialPool(), args)
		if fault != nil {
			return nil, 0, fault
		}
		if len(found) == 0 {
			s.search.find(ctx, s.dialPool(), from, time.Since(began))
			return nil, 0, nil
		}
	}
	var took time.Duration
	err = db.Tx(ctx, s.dialPool(), func(tx pgx.Tx) error {
		began = time.Now()
		found, since, fault := lockRoutes(ctx, tx, args)
		took = time.Since(began)
		if routes = len(found); fault != nil || routes == 0 {
			return fault
		}
		leases, fault = claimEvenly(routes, most, func(each int) ([]control.Lease, error) {
			return db.Collect(ctx, tx, "", pgx.RowToStructByPos[control.Lease],
				claimSQL, p.Owner, p.Home, lease, found, records, without, since, each, orNull(from))
		})
		return fault
	})
	s.search.idle.Store(err == nil && routes == 0)
	if err == nil {
		s.search.find(ctx, s.dialPool(), from, took)
	}
	return leases, routes, err
}

// lockRoutes returns the subgroups of lockRoutesSQL and dialing_since().
func lockRoutes(ctx context.Context, q db.Querier, args []any) (found []string, since *string, err error) {
	var id string
	err = db.Each(ctx, q, "", []any{&id, &since}, func() error { found = append(found, id); return nil }, lockRoutesSQL, args...)
	return found, since, err
}

// claimEvenly claims at most the given number of attempts from that many subgroups. claim takes at most each from every
// subgroup.
func claimEvenly(routes, most int, claim func(each int) ([]control.Lease, error)) (leases []control.Lease, err error) {
	for range min(claimRounds, routes) {
		each := (most - len(leases)) / routes
		if each == 0 {
			break
		}
		claimed, err := claim(each)
		if err != nil || len(claimed) == 0 {
			return leases, err
		}
		leases = append(leases, claimed...)
	}
	return leases, nil
}

// releaseUnavailable releases calls whose agents this node cannot run now. The calls wait for a node that can run
// them, or until they expire.
func (s *Store) releaseUnavailable(ctx context.Context, claims []*control.Claim) (kept []*control.Claim, err error) {
	if s.Agents == nil {
		return claims, nil
	}
	for _, c := range claims {
		a := providers.Agent{ID: c.Call.AgentID, Version: c.Call.AgentVersion}
		if !s.Agents.MustWait(ctx, a, c.Session.Engines) {
			kept = append(kept, c)
			continue
		}
		if fault := s.Release(ctx, c.Lease); !errors.Is(fault, control.ErrFenced) {
			err = errors.Join(err, fault)
		}
	}
	return kept, err
}

// Prepare loads calls that this node leased without Claim.
func (s *Store) Prepare(ctx context.Context, held []control.Lease, until time.Time) ([]*control.Claim, error) {
	return s.prepare(ctx, held, until)
}

// prepare loads claimed calls. It ends a call with invalid data, so that the call does not block others. After a
// database error it releases the calls.
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
	if !isCallFault(ctx, err) {
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		return nil, errors.Join(err, s.Release(free, held[0]))
	}
	// The trunk or agent was deleted while the call waited, or the data is invalid.
	return nil, s.Finish(ctx, held[0], control.CallResult{
		Status: control.Failed, Reason: control.ReasonInternalError, HangupBy: control.SideSystem,
		EndedAt: time.Now(), Recording: control.RecordingNone,
	})
}

// releaseTimeout bounds the release of a claim.
const releaseTimeout = 2 * time.Second

// isCallFault reports whether the call's own data caused an error, so that a second try would fail too.
func isCallFault(ctx context.Context, err error) bool {
	if _, ok := errors.AsType[*badCallError](err); ok {
		return true
	}
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && ctx.Err() == nil && !isDatabaseFault(refusal)
}

// badCallError is an error in the stored data of a call.
type badCallError struct {
	call string
	err  error
}

// Error implements error.
func (b *badCallError) Error() string { return "call " + b.call + ": " + b.err.Error() }

// Unwrap returns the cause for errors.Is and errors.As.
func (b *badCallError) Unwrap() error { return b.err }

// isDatabaseFault reports whether the state of the database caused an error, and not the written data.
func isDatabaseFault(err *pgconn.PgError) bool {
	switch err.Code[:min(2, len(err.Code))] {
	case "08", "40", "53", "57", "58", "XX": // connection, rollback, resources, operator intervention, system, internal
		return true
	}
	return false
}

// fillSQL reads the data of claimed calls.
//
//nolint:gochecknoglobals // made once
var fillSQL = "SELECT " + selectCall + `, v.definition, v.secrets, t.proxy, t.username, t.password, t.settings,
	coalesce((SELECT k.language FROM contacts k WHERE k.id = c.contact_id), '')` + fromCalls + `
	JOIN agent_versions v ON v.agent_id = c.agent_id AND v.version = c.agent_version
	JOIN trunks t ON t.id = c.trunk_id
	WHERE c.id = ANY ($1)`

// fill loads the data of claimed calls.
func (s *Store) fill(ctx context.Context, held []control.Lease) ([]*control.Claim, error) {
	if len(held) == 0 {
		return nil, nil
	}
	rows, err := s.dialPool().Query(ctx, fillSQL, groupcommit.Column(held, func(l control.Lease) string { return l.CallID }))
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

// claimOf reads a row of fillSQL. If it returns an error, the claim may be incomplete.
func (s *Store) claimOf(row pgx.Row) (*control.Claim, error) {
	c := &control.Claim{}
	var definition []byte
	var secrets media.Secret
	var trunk trunks.Trunk
	var language string // language of the contact
	var err error
	c.Call, err = scanCall(row, &definition, &secrets, &trunk.Proxy, &trunk.Username, &trunk.Password, &trunk.Settings, &language)
	if err != nil {
		return c, err
	}
	d, err := agents.Decode(definition, secrets)
	if err != nil {
		return c, fmt.Errorf("agent: %w", err)
	}
	d.Language = cmp.Or(language, d.Language)
	c.Target = media.Target{
		To: c.Call.DialNumber, Number: c.Call.To, From: c.Call.From, Trunk: trunk.MediaTrunk(), RingTimeout: c.Call.RingFor,
	}
	c.Session, c.Record = sessionOf(c.Call, d)
	if len(d.Tools) > 0 {
		if c.Session.Tools, err = tools.Build(d.ToolDefinitions(), s.Egress, s.HTTPClient); err != nil {
			return c, fmt.Errorf("agent: %w", err)
		}
	}
	return c, nil
}

func sessionOf(c control.Call, d agents.Definition) (pipeline.SessionConfig, bool) {
	values := d.Values(c.Name, c.Variables)
	longest := c.MaxDuration
	if longest == 0 {
		longest = time.Duration(d.MaxDurationS) * time.Second
	}
	s := d.Session(c.OrgID, values)
	s.CallID, s.Disclosure, s.MaxDuration = c.ID, c.Disclosure, longest
	s.OptOuts = pipeline.OptOutConfig{Key: c.OptOut.Key, Phrases: c.OptOut.Phrases}
	s.Voicemail = pipeline.Voicemail(c.Voicemail)
	return s, c.RecordingStatus != control.RecordingDisabled
}

// Due implements control.Queue.
func (s *Store) Due(ctx context.Context, limit time.Duration) (time.Duration, error) {
	var seconds *float64
	err := s.dialPool().QueryRow(ctx, waitingSQL("$2")+`
		SELECT extract(epoch FROM min(`+DueAt+`) - clock_timestamp())::float8 `+FromRoutes+`
		WHERE `+DueAt+` > clock_timestamp() AND s.id IN (SELECT id FROM waiting) AND NOT s.trunk_id = ANY ($1)`, s.pausedTrunks(), orNull(s.search.start(time.Now()))).Scan(&seconds)
	if err != nil {
		return limit, fmt.Errorf("dial queue: %w", err)
	}
	if seconds == nil {
		return limit, nil
	}
	wait := time.Duration(*seconds*float64(time.Second)) + time.Millisecond
	return min(max(wait, time.Millisecond), limit), nil
}

// pausedTrunks returns the trunks through which this node must not call now, never nil.
func (s *Store) pausedTrunks() []string {
	none := []string{} // a nil slice would become NULL in SQL
	if s.PausedTrunks == nil {
		return none
	}
	return append(none, s.PausedTrunks()...)
}

// PausedTrunks is a subquery of trunks that no node can use now. Every node sees the trunk as down or paused, and at
// least one node sees that the carrier asked for a pause.
const PausedTrunks = `(SELECT trunk_id FROM trunk_sights WHERE at > clock_timestamp() - interval '15 seconds'
	GROUP BY trunk_id HAVING bool_and(down OR paused_until > clock_timestamp()) AND bool_or(paused_until > clock_timestamp()))`

// QueueDepth returns the number of queued calls by organization.
func (s *Store) QueueDepth(ctx context.Context) (map[string]int, error) {
	by := map[string]int{}
	var org string
	var n int
	err := db.Each(ctx, s.Pool, "dial queue", []any{&org, &n}, func() error { by[org] = n; return nil },
		"SELECT org_id, count(*) FROM attempts WHERE state = 'scheduled' GROUP BY org_id")
	if err != nil {
		return nil, err
	}
	return by, nil
}

// ClaimedLastMinute returns how many calls nodes claimed from the dial queue in the last minute.
func (s *Store) ClaimedLastMinute(ctx context.Context) (n int, err error) {
	if err = s.Pool.QueryRow(ctx, "SELECT count(*) FROM attempts WHERE claimed_at > now() - interval '1 minute'").Scan(&n); err != nil {
		return 0, fmt.Errorf("dial queue: %w", err)
	}
	return n, nil
}

// Renew implements control.Queue.
func (s *Store) Renew(ctx context.Context, owner string, attempts []string, lease time.Duration) ([]control.Lease, error) {
	return db.Collect(ctx, s.dialPool(), "renew leases", pgx.RowToStructByPos[control.Lease], `
		WITH mine AS ( -- locks in id order, as all statements do, to avoid deadlocks
			SELECT id FROM attempts WHERE owner = $1 AND state IN `+ActiveStates+`
			  AND (id = ANY ($2) OR leg = 'transfer' AND call_id IN (SELECT call_id FROM attempts WHERE id = ANY ($2)))
			ORDER BY id FOR UPDATE)
		UPDATE attempts a SET lease_until = clock_timestamp() + $3 FROM mine WHERE a.id = mine.id
		RETURNING a.id, a.call_id, a.owner, a.epoch`, owner, attempts, lease)
}

// EndRequests implements control.Queue.
func (s *Store) EndRequests(ctx context.Context, owner string) ([]string, error) {
	return db.Collect(ctx, s.dialPool(), "calls to end", pgx.RowTo[string], `
		SELECT c.id FROM attempts a JOIN calls c ON c.id = a.call_id
		WHERE a.owner = $1 AND a.state IN `+ActiveStates+` AND c.end_requested_at IS NOT NULL`, owner)
}
