// Package overview reads the current state of an organization: active calls, routes, and statistics of its agents.
package overview

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/trunks"
)

// Call is an active call.
type Call struct {
	ID           string
	Type         string
	Status       control.Status
	Agent        string
	To, From     string // digits
	Trunk, Route string // names; empty if deleted
	CampaignID   string
	Campaign     string            // name; empty for calls without campaign
	Since        time.Time         // answer, or else dialing or creation
	EndAsked     bool              // a request to end the call was received
	Said         string            // text of the last line
	By           string            // speaker of the last line
	Turns        []json.RawMessage // the last turns, oldest first
}

// lastTurns is the number of turns that are read for each call.
const lastTurns = 6

// Counts holds the number of an organization's calls by status.
type Counts map[control.Status]int

// ActiveCalls returns at most most active calls: first calls in conversation, then ringing and queued calls, each
// oldest first. The counts include all active calls.
func ActiveCalls(ctx context.Context, q db.Querier, orgID string, most int) ([]Call, Counts, error) {
	all, err := db.Collect(ctx, q, "active calls", pgx.RowToStructByPos[Call], `
		WITH chosen AS (
			(SELECT * FROM calls WHERE org_id = $1 AND status = 'ongoing' AND erased_at IS NULL ORDER BY created_at, id LIMIT $2)
			UNION ALL (SELECT * FROM calls WHERE org_id = $1 AND status = 'ringing' AND erased_at IS NULL ORDER BY created_at, id LIMIT $2)
			UNION ALL (SELECT * FROM calls WHERE org_id = $1 AND status = 'queued' AND erased_at IS NULL ORDER BY created_at, id LIMIT $2)
			LIMIT $2)
		SELECT c.id, c.call_type, c.status, c.agent_name, c.to_number, c.from_number, coalesce(t.name, ''), coalesce(s.name, ''),
			coalesce(c.campaign_id, ''), coalesce(k.name, ''), coalesce(c.answered_at, c.dialed_at, c.created_at), c.end_requested_at IS NOT NULL,
			coalesce(l.item->>'text', ''), coalesce(l.item->>'role', ''),
			ARRAY(SELECT item FROM (SELECT n, item FROM call_turns WHERE call_id = c.id ORDER BY n DESC LIMIT $3) x ORDER BY n)
		FROM chosen c LEFT JOIN trunks t ON t.id = c.trunk_id LEFT JOIN subgroups s ON s.id = c.route_id
		LEFT JOIN campaigns k ON k.id = c.campaign_id AND k.org_id = c.org_id
		LEFT JOIN LATERAL (SELECT item FROM call_lines WHERE call_id = c.id ORDER BY n DESC LIMIT 1) l ON true
		ORDER BY c.status = 'ongoing' DESC, c.status = 'ringing' DESC, c.created_at, c.id`, orgID, most, lastTurns)
	if err != nil {
		return nil, nil, err
	}
	n, err := count(ctx, q, orgID)
	return all, n, err
}

// CountActive returns the number of an organization's active calls.
func CountActive(ctx context.Context, q db.Querier, orgID string) (n int, err error) {
	all, err := count(ctx, q, orgID)
	for _, k := range all {
		n += k
	}
	return n, err
}

func count(ctx context.Context, q db.Querier, orgID string) (Counts, error) {
	all := Counts{}
	var status control.Status
	var n int
	err := db.Each(ctx, q, "active calls", []any{&status, &n}, func() error { all[status] = n; return nil }, `
		SELECT status, count(*) FROM calls WHERE org_id = $1 AND status IN ('queued', 'ringing', 'ongoing') AND erased_at IS NULL
		GROUP BY status`, orgID)
	return all, err
}

// Route is a subgroup with its current state.
type Route struct {
	ID, Name       string
	TrunkID, Trunk string // id and name of the trunk
	Lent           bool   // another organization lends the trunk
	Line           trunks.Trunk
	CallerNumbers  []string // allowed caller numbers; the first is the default
	Most, InUse    int      // limit and current number of concurrent calls
	PerMinute, New int      // limit, and calls in the last minute
	// Breaker is the state of the circuit breaker: closed, open or probing. Why, Since and Probe are set only if the
	// breaker is not closed.
	Breaker, Why string
	Since, Probe *time.Time
	Down         bool // at least one server cannot reach any proxy of the trunk
}

// Routes returns the routes of an organization, ordered by trunk name and route name.
func Routes(ctx context.Context, q db.Querier, orgID string) ([]Route, error) {
	return db.Collect(ctx, q, "routes", func(row pgx.CollectableRow) (r Route, err error) {
		err = row.Scan(
			&r.ID, &r.Name, &r.TrunkID, &r.Trunk, &r.Lent, &r.Line.Proxy, &r.Line.Settings, &r.CallerNumbers, &r.Most,
			&r.InUse, &r.PerMinute, &r.New, &r.Breaker, &r.Why, &r.Since, &r.Probe, &r.Down,
		)
		r.Line.ID, r.Line.Name = r.TrunkID, r.Trunk
		return r, err
	}, `
		SELECT s.id, s.name, t.id, t.name, s.grant_id IS NOT NULL, t.proxy, t.settings,
			CASE WHEN cardinality(s.caller_numbers) > 0 THEN s.caller_numbers WHEN cardinality(g.caller_numbers) > 0 THEN g.caller_numbers ELSE t.caller_numbers END,
			least(s.concurrent_calls, nullif(g.concurrent_calls, 0)), 
			(SELECT count(*) FROM calls WHERE route_id = s.id AND status IN ('queued', 'ringing', 'ongoing')),
			least(s.calls_per_minute, nullif(g.calls_per_minute, 0)),
			(SELECT count(*) FROM calls WHERE route_id = s.id AND created_at > now() - interval '1 minute'),
			CASE WHEN NOT coalesce(b.open, false) THEN 'closed' WHEN b.probe_call <> '' THEN 'probing' ELSE 'open' END,
			coalesce(b.why, ''), b.since, b.probe_at,
			EXISTS (SELECT FROM trunk_sights v WHERE v.trunk_id = t.id AND v.down AND v.at > now() - interval '30 seconds')
		FROM subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id
		LEFT JOIN route_breakers b ON b.subgroup_id = s.id
		WHERE s.org_id = $1 ORDER BY t.name, t.id, s.name, s.id LIMIT 200`, orgID)
}

// Agent is an agent with statistics of the turns in its last calls.
type Agent struct {
	Name          string
	ASR, LLM, TTS string // providers of the published version
	Calls, Turns  int
	Failed        int // number of turns that failed because of a provider
	P50, P95      *float64
}

// Agents evaluates the newest recentCalls calls of the last recentWindow.
const (
	recentWindow = 15 * time.Minute
	recentCalls  = 200
)

// Agents returns the agents of an organization that had conversations recently. P50 and P95 are response times in
// milliseconds, without greetings.
func Agents(ctx context.Context, q db.Querier, orgID string) ([]Agent, error) {
	byName := map[string]*agentTurns{}
	var a Agent
	var turns []string
	var pack []byte
	add := func() error {
		s := byName[a.Name]
		if s == nil {
			s = &agentTurns{Agent: Agent{Name: a.Name}}
			byName[a.Name] = s
		}
		s.ASR, s.LLM, s.TTS = max(s.ASR, a.ASR), max(s.LLM, a.LLM), max(s.TTS, a.TTS)
		return s.add(turns, pack)
	}
	// The turns of an ended call may be in a pack, which only this program can read.
	err := db.Each(ctx, q, "agents", []any{&a.Name, &a.ASR, &a.LLM, &a.TTS, &turns, &pack}, add, `
		WITH newest AS (
			SELECT id, agent_id, agent_name, agent_version FROM calls
			WHERE org_id = $1 AND created_at > now() - $2::interval ORDER BY created_at DESC, id DESC LIMIT $3)
		SELECT c.agent_name, coalesce(v.definition->'speech'->'asr'->>'provider', ''), coalesce(v.definition->'speech'->'llm'->>'provider', ''),
			coalesce(v.definition->'speech'->'tts'->>'provider', ''), ARRAY(SELECT item::text FROM call_turns WHERE call_id = c.id ORDER BY n), p.pack
		FROM newest c LEFT JOIN agent_versions v ON v.agent_id = c.agent_id AND v.version = c.agent_version
		LEFT JOIN call_packs p ON p.call_id = c.id`, orgID, recentWindow, recentCalls)
	if err != nil {
		return nil, err
	}
	all := make([]Agent, 0, len(byName))
	for _, s := range byName {
		all = append(all, s.result())
	}
	slices.SortFunc(all, func(a, b Agent) int { return cmp.Or(b.Turns-a.Turns, strings.Compare(a.Name, b.Name)) })
	return all[:min(len(all), maxAgents)], nil
}

// maxAgents is the maximum number of agents that Agents returns.
const maxAgents = 20

// agentTurns collects the turns of an agent.
type agentTurns struct {
	Agent

	times []float64
}

// add adds the turns of a call: JSON texts, or a pack with the transcript of the call.
func (s *agentTurns) add(turns []string, pack []byte) error {
	s.Calls++
	if pack != nil {
		lists, err := db.Unpack(pack)
		if err != nil || len(lists) != 2 {
			return fmt.Errorf("a pack of %d lists: %w", len(lists), err)
		}
		for _, text := range lists[1] {
			turns = append(turns, string(text))
		}
	}
	for n, text := range turns {
		var t struct {
			Ending  string `json:"ending"`
			Metrics struct {
				Turn *float64        `json:"turn_ms"`
				VAD  json.RawMessage `json:"vad_ms"`
			} `json:"metrics"`
		}
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			return fmt.Errorf("turn: %w", err)
		}
		s.Turns++
		if t.Ending == "failed" {
			s.Failed++
		}
		if took := t.Metrics.Turn; took != nil && (n > 0 || t.Metrics.VAD != nil) {
			s.times = append(s.times, *took)
		}
	}
	return nil
}

func (s *agentTurns) result() Agent {
	slices.Sort(s.times)
	if n := len(s.times); n > 0 {
		s.P50, s.P95 = &s.times[(n+1)/2-1], &s.times[(95*n+99)/100-1]
	}
	return s.Agent
}
