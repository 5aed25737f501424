package dashtest

import (
	"fmt"
	"testing"

	"github.com/parley-voice/parley/control/operator"
)

// long is a name of maximum length in several scripts.
const long = "Продление договоров обслуживания · تجديد عقود الصيانة · First renewals"

// names are sample names in several scripts.
var names = []string{ //nolint:gochecknoglobals // read-only table
	"spring renewals", "Весеннее продление договоров", "حملة تجديد الاشتراكات لفصل الربيع",
	"O’Brien & Sons, second reminder of those not reached before",
	"Überfällige-Rechnungen-Erinnerungsanruf-Süd", "שלום מהמכירות", "春の更新キャンペーン", "Kazakhstan – Алматы, вечер",
}

// FurnishMany fills acme with many objects of each kind and returns the same IDs as Furnish.
func (h *Env) FurnishMany(t *testing.T) map[string]string {
	t.Helper()
	ids := h.Furnish(t, long)
	// more copies a row n times with different columns. g is the number of the copy, $1 the names.
	more := func(table string, n int, id, differs string) {
		t.Helper()
		var columns string
		err := h.DB.Pool.QueryRow(t.Context(), "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns "+
			"WHERE table_name = $1 AND is_generated = 'NEVER'", table).Scan(&columns)
		if err != nil {
			t.Fatal(err)
		}
		h.Exec(t, fmt.Sprintf(`INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM (SELECT (jsonb_populate_record(t, %[3]s)).* FROM %[1]s t, generate_series(1, %[4]d) g,
			LATERAL (SELECT ($1::text[])[1 + g %% 8] || ' ' || g AS name, now() - g * interval '3 hours' AS at) x WHERE t.id = '%[5]s') p`, table, columns, differs, n, id), names)
	}
	more("agents", 60, ids["agents"], `jsonb_build_object('id', 'agt_' || g, 'name', x.name, 'updated_at', x.at, 'published_version', CASE WHEN g % 4 > 0 THEN g END)`)
	more("trunks", 20, ids["trunks"], `jsonb_build_object('id', 'trk_' || g, 'name', x.name, 'proxy', 'sip:sbc' || g || '.carrier-of-the-north.example.com:5061;transport=tls')`)
	more("subgroups", 40, ids["subgroups"], `jsonb_build_object('id', 'rte_' || g, 'trunk_id', 'trk_' || (1 + g % 20), 'name', x.name, 'allowed_destinations', ARRAY['1', '44', '7' || g, '966', '49' || g])`)
	more("api_keys", 300, ids["keys"], `jsonb_build_object('id', 'key_01M820ZG2Y1VTG38CEQ47' || lpad((301 - g)::text, 5, '0'), 'name', x.name, 'hash', '\x' || md5(g::text), 'created_at', x.at, 'last_used_at', CASE WHEN g % 3 > 0 THEN now() - g * interval '1 minute' END, 'revoked_at', CASE WHEN g % 7 = 0 THEN now() END, 'rate_limit', g % 4 * 60)`)
	more("campaigns", 40, ids["campaigns"], `jsonb_build_object('id', 'cmp_' || g, 'name', x.name, 'agent_name', x.name, 'created_at', x.at, 'status', (ARRAY['draft', 'scheduled', 'running', 'paused', 'completed', 'cancelled'])[1 + g % 6])`)
	more("webhook_endpoints", 12, ids["webhooks"], `jsonb_build_object('id', 'whe_' || g, 'url', 'https://hooks' || g || '.crm.example.com/services/parley/notices/of/ended/calls?tenant=' || g, 'last_success_at', x.at, 'disabled_at', CASE WHEN g % 5 = 0 THEN x.at END)`)
	h.Exec(t, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, campaign_id, ring_seconds, created_at, dialed_at,
			answered_at, ended_at, name, disconnection_reason)
		SELECT 'call_' || g, org_id, call_type, CASE WHEN g < 30 THEN (ARRAY['ongoing', 'ringing', 'queued'])[1 + g % 3] WHEN g % 3 = 0 THEN 'failed' ELSE 'ended' END, agent_id, agent_name, 1, '1212555' || lpad(g::text, 4, '0'),
			from_number, dial_number, trunk_id, 'rte_' || (1 + g % 40), 'cmp_' || (1 + g % 40), 45, now() - g * interval '1 minute', now() - g * interval '1 minute',
			CASE WHEN (g < 30) = (g % 3 = 0) THEN now() - g * interval '55 s' END, CASE WHEN g >= 30 THEN now() - g * interval '50 s' END, ($1::text[])[1 + g % 8],
			CASE WHEN g < 30 THEN NULL WHEN g % 3 = 0 THEN (ARRAY['no_answer', 'busy', 'auth_failed', 'unknown_after_restart'])[1 + g % 4]
				ELSE (ARRAY['callee_hangup', 'agent_hangup', 'voicemail_reached', 'transferred'])[1 + g % 4] END
		FROM calls, generate_series(3, 300) g WHERE id = 'call_1'`, names)
	h.Exec(t, `INSERT INTO call_lines (call_id, n, item) SELECT 'call_1', 1 + g, jsonb_build_object('role', (ARRAY['agent', 'caller'])[1 + g % 2], 'text', repeat(($1::text[])[1 + g % 8] || '. ', 1 + g % 4), 'start', g * 4000000000, 'end', g * 4000000000 + 3000000000, 'turn', g)
		FROM generate_series(1, 40) g`, names)
	h.Exec(t, `INSERT INTO webhook_deliveries (id, endpoint_id, call_id, type, payload, state, tries, next_at, created_at, last_status, last_error, settled_at, org_id)
		SELECT 'evt_01M820ZG2Y1VTG38CEQ47' || lpad((121 - g)::text, 5, '0'), endpoint_id, 'call_' || (29 + g), type, payload, (ARRAY['pending', 'delivered', 'dead'])[1 + g % 3], g % 12, now(), created_at - g * interval '1 minute',
			CASE WHEN g % 3 = 1 THEN 200 WHEN g % 6 = 2 THEN 502 END, CASE WHEN g % 6 IN (3, 5) THEN 'connection to hooks.example.com:443 failed: connection refused' ELSE '' END, now(), org_id FROM webhook_deliveries, generate_series(1, 120) g WHERE id = 'evt_1'`)
	h.Exec(t, `INSERT INTO audit_log (org_id, operator_id, who, address, action, object, after, at)
		SELECT $2, '', 'konstantin.konstantinopolsky+' || g || '@operations.example.com', '2001:db8:85a3::8a2e:370:' || g, (ARRAY['campaign.launch', 'key.create', 'agent.edit', 'trunk.edit', 'suppression.add'])[1 + g % 5],
			($1::text[])[1 + g % 8], jsonb_build_object('name', ($1::text[])[1 + g % 8]), now() - (121 - g) * interval '7 hours' FROM generate_series(1, 120) g`, names, h.Acme)
	h.Exec(t, `INSERT INTO registries (name, file, sha256, numbers, area_codes, downloaded_at)
		SELECT (ARRAY['us_national', 'us_state_in', 'us_state_tx'])[g], 'x', '', 221000000 / g, ARRAY['212', '646'], now() - g * interval '14 days' FROM generate_series(1, 3) g`)
	h.Exec(t, `INSERT INTO list_loads (name, org_id, files, sha256, replaced, added, deleted, numbers, downloaded_at, loaded_by)
		SELECT 'org_suppression', $1, ARRAY['numbers of the autumn campaign, asked by letter ' || g || '.csv'], ARRAY[''], g % 5 = 0, g * 1000, g, g * 1500, now(), 'konstantin.konstantinopolsky@operations.example.com' FROM generate_series(1, 30) g`, h.Acme)
	h.Exec(t, "INSERT INTO suppressions (org_id, number) SELECT $1, '1212' || (2000000 + g * 7) FROM generate_series(1, 12345) g", h.Acme)
	for i := range 30 {
		h.AddOperator(t, fmt.Sprintf("konstantin.konstantinopolsky+%d@operations.example.com", i),
			h.Acme, []operator.Role{operator.Viewer, operator.Operator, operator.Owner}[i%3])
	}
	return ids
}
