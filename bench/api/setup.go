package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// configure creates an organization with an agent, subgroups and an API key.
func (b *bench) configure(ctx context.Context) error {
	var file strings.Builder
	fmt.Fprintf(&file, `
organizations:
- name: bench
  agents: [{name: bench, published: true, greeting: "Hello {{first_name}}.", recording: false, analysis: {summary: false, success: false},
    speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks:
  - name: bench
    proxy: %q
    caller_numbers: ["+12025550100"]
    subgroups:
`, b.carrier.Proxy())
	for n := range b.Subgroups {
		fmt.Fprintf(&file, "    - {name: s%03d, allowed_destinations: [\"1\"], agents: [bench], %s}\n", n, unlimited)
	}
	if err := b.Configure(ctx, "bench", file.String()); err != nil {
		return err
	}
	var list struct {
		Trunks []struct {
			Subgroups []struct {
				RouteID string `json:"route_id"`
			} `json:"subgroups"`
		} `json:"trunks"`
	}
	if err := b.Request(ctx, "GET", "/v1/dialing-routes?agent_id=bench", nil, &list); err != nil {
		return err
	}
	for _, t := range list.Trunks {
		for _, s := range t.Subgroups {
			b.routes = append(b.routes, s.RouteID)
		}
	}
	if len(b.routes) != b.Subgroups {
		return fmt.Errorf("%d subgroups, want %d", len(b.routes), b.Subgroups)
	}
	return nil
}

const unlimited = "concurrent_calls: 1000000, calls_per_minute: 1000000"

// fillSQL inserts copies of the newest call, with times spread over a year.
const fillSQL = `
INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
	ring_seconds, created_at, dialed_at, answered_at, ended_at, disconnection_reason, recording_status, analysis_status)
SELECT 'call_' || upper(lpad(to_hex(n), 26, '0')), org_id, call_type, 'ended', agent_id, agent_name, agent_version,
	(12020000000 + n * 7919 % 10000000)::text, from_number, dial_number, trunk_id, route_id,
	ring_seconds, at, at, at + interval '5 s', at + interval '65 s', 'callee_hangup', 'disabled', 'none'
FROM (SELECT * FROM calls ORDER BY created_at DESC LIMIT 1) one,
     LATERAL (SELECT n, created_at - interval '1 s' * (31536000.0 * n / $2) AS at FROM generate_series($1::bigint, $1::bigint + $3 - 1) n) many`

// fillAtOnce is the number of rows per statement.
const fillAtOnce = 50_000

// fill inserts calls into the database directly.
func (b *bench) fill(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.DatabaseURL())
	if err != nil {
		return fmt.Errorf("failed to connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for n := 1; n <= b.Stored; n += fillAtOnce {
		if _, err := conn.Exec(ctx, fillSQL, n, b.Stored, min(fillAtOnce, b.Stored-n+1)); err != nil {
			return fmt.Errorf("failed to store calls: %w", err)
		}
		fmt.Fprintf(b.Options.Log, "stored %d calls\n", min(n+fillAtOnce-1, b.Stored))
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE calls"); err != nil {
		return fmt.Errorf("failed to store calls: %w", err)
	}
	return nil
}
