package dashtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/store"
)

// CampaignColumns are the columns that a copy of a campaign needs, except id, name and status.
const CampaignColumns = "org_id, created_via, agent_id, agent_name, timezone, timezone_source, accepts_additions, calls_per_minute, " +
	"call_strategy, classification, retry, duplicate_action, use_contact_timezone, working_hours, trunk_id, route_id, from_number, dnc, " +
	"created_at, updated_at"

// FurnishFigures adds n ended calls of the last 60 days in acme: of three agents, one deleted, and of four campaigns and
// none, with all outcomes, success, costs and response times. It brings the statistics of calls up to date. Furnish
// must have run.
func (h *Env) FurnishFigures(t *testing.T, n int) {
	t.Helper()
	h.InsertFigures(t, n, 1)
	h.CountCalls(t)
}

// InsertFigures adds calls as FurnishFigures does, and does not count them. There are spread times as many campaigns.
func (h *Env) InsertFigures(t *testing.T, n, spread int) {
	t.Helper()
	h.Exec(t, `INSERT INTO agents (id, org_id, name, draft) VALUES ('agt_renewals', $1, 'renewals', '{}') `, h.Acme)
	h.Exec(t, fmt.Sprintf(`INSERT INTO campaigns (id, name, status, %[1]s) SELECT 'cmp_' || x.name, x.name, 'completed', %[1]s
		FROM (SELECT * FROM campaigns WHERE org_id = $1 ORDER BY id LIMIT 1) c,
			(SELECT name || CASE WHEN k > 0 THEN k::text ELSE '' END AS name
				FROM unnest(ARRAY['spring', 'autumn', 'reminders', 'winback']) name, generate_series(0, $2::int - 1) k) x`, CampaignColumns), h.Acme, spread)
	// Each call has independent random numbers u[1] to u[8] from 0 to 999, which are the same in each run.
	h.ExecLong(t, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, campaign_id,
			ring_seconds, created_at, dialed_at, answered_at, ended_at, answered_by, disconnection_reason, hangup_by, cost_nano, analysis_status, call_analysis)
		SELECT 'call_f' || lpad(g::text, 25, '0'), $1, 'phone', CASE WHEN y.answered THEN 'ended' ELSE 'failed' END, x.agent, x.agent_name, 1, '1212555' || lpad((g % 10000)::text, 4, '0'), '12025550100', '12125550123',
			'trk_1', 'rte_1', x.campaign, 45, x.at, CASE WHEN x.result <> 'dnc_blocked' THEN x.at + interval '1 s' END, CASE WHEN y.answered THEN x.at + interval '9 s' END,
			x.at + interval '9 s' + make_interval(secs => CASE WHEN y.answered THEN 20 + u[5] / 4 ELSE 20 END), CASE WHEN y.answered THEN CASE x.result WHEN 'voicemail_reached' THEN 'voicemail' ELSE 'human' END END,
			x.result, 'callee', CASE WHEN y.answered AND u[6] < 900 THEN 20000000 + u[5] * 100000 END, CASE WHEN y.answered THEN 'completed' ELSE 'none' END,
			CASE WHEN y.answered THEN CASE WHEN u[7] < 400 THEN '{"success":true}'::jsonb WHEN u[7] < 900 THEN '{"success":false}' ELSE '{"success":null}' END END
		FROM generate_series(1, $2::int) g,
			LATERAL (SELECT array_agg(abs(hashint4extended(g, k)) % 1000 ORDER BY k) AS u FROM generate_series(1, 8) k) r,
			LATERAL (SELECT now() - make_interval(days => ((u[1] * 60) / 1000)::int, hours => (((u[2] + u[8]) * 12) / 2000)::int, mins => ((u[3] * 60) / 1000)::int) AS at,
				(ARRAY['agt_renewals', 'agt_renewals', 'agt_renewals', $3, $3, 'agt_gone'])[1 + u[4] % 6] AS agent,
				(ARRAY['renewals', 'renewals', 'renewals', 'sales', 'sales', 'gone'])[1 + u[4] % 6] AS agent_name,
				(ARRAY['cmp_spring', 'cmp_spring', 'cmp_spring', 'cmp_autumn', 'cmp_autumn', 'cmp_reminders', 'cmp_winback', NULL])[1 + u[6] % 8] || CASE WHEN u[5] % $4::int > 0 THEN (u[5] % $4)::text ELSE '' END AS campaign,
				(ARRAY['callee_hangup', 'agent_hangup', 'callee_hangup', 'transferred', 'voicemail_reached', 'voicemail_reached', 'no_answer', 'no_answer', 'no_answer', 'busy', 'declined', 'invalid_number', 'route_error', 'dnc_blocked'])[1 + u[7] % 14] AS result) x,
			LATERAL (SELECT x.result IN ('callee_hangup', 'agent_hangup', 'transferred', 'voicemail_reached') AS answered) y`,
		h.Acme, n, h.Text(t, "SELECT min(id) FROM agents WHERE org_id = $1 AND id <> 'agt_renewals'", h.Acme), spread)
	h.ExecLong(t, `INSERT INTO call_turns (call_id, n, item)
		SELECT id, n, jsonb_build_object('turn', n, 'ending', 'answered', 'metrics', jsonb_build_object('turn_ms', 300 + abs(hashtextextended(id, n)) % 500 * (1 + abs(hashtextextended(id, 7)) % 3), 'vad_ms', 200))
		FROM calls, generate_series(1, 3) n WHERE id LIKE 'call_f%' AND answered_by = 'human' AND right(id, 1) <> '7'`)
}

// ExecLong executes a statement without a time limit.
func (h *Env) ExecLong(t *testing.T, sql string, args ...any) {
	t.Helper()
	tx, err := h.DB.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(t.Context(), "SET LOCAL statement_timeout = 0")
	if err == nil {
		_, err = tx.Exec(t.Context(), sql, args...)
	}
	if err == nil {
		err = tx.Commit(t.Context())
	}
	if err != nil {
		t.Fatalf("%.60s: %v", sql, err)
	}
}

// CountCalls brings the statistics of calls up to date.
func (h *Env) CountCalls(t *testing.T) {
	t.Helper()
	for {
		n, err := (&overview.Follower{Pool: h.DB.Pool}).Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// Say replaces the transcript of an ended call by lines such as "caller: Yes.", a second each, and stores its words.
func (h *Env) Say(t *testing.T, id string, lines ...string) {
	t.Helper()
	h.Exec(t, "DELETE FROM call_lines WHERE call_id = $1", id)
	for n, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		h.Exec(t, `INSERT INTO call_lines (call_id, n, item) VALUES ($1, $2::int, json_build_object('role', $3::text, 'text', $4::text,
			'start', $2::bigint * 1000000000, 'end', ($2::bigint + 1) * 1000000000, 'turn', $2::int))`, id, n, role, text)
	}
	h.Exec(t, "INSERT INTO call_word_changes (call_id) VALUES ($1)", id)
	h.IndexWords(t)
}

// IndexWords stores the words of ended calls.
func (h *Env) IndexWords(t *testing.T) {
	t.Helper()
	for {
		n, err := (&store.WordIndexer{Pool: h.DB.Pool}).Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}
