package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/trunks"
)

// An Outgoing is a call that does not wait in the dial queue: it is registered
// on a line that is free.
type Outgoing struct {
	OrgID                 string
	AgentID, AgentName    string
	AgentVersion          int
	To, From              string
	TrunkID, RouteID      string
	Name                  string
	Variables, Metadata   map[string]any
	CampaignID, ContactID string
	ImportID, ExternalID  string
	Attempt               int
	Disclosure            string // what it begins with
	OptOut                control.OptOutWays
}

// Begin takes a line of the subgroup, if there is one now, and registers the
// call on it, claimed by a node. No free line, and a cap of the organization
// that is reached, are a *control.Error, after which the transaction is to be
// rolled back.
func Begin(ctx context.Context, tx pgx.Tx, o Outgoing, p control.Place, lease time.Duration) (control.Lease, error) {
	line, err := takeWay(ctx, tx, calling{org: o.OrgID, route: o.RouteID}, false, 0)
	if err != nil {
		return control.Lease{}, err
	}
	to := control.Digits(o.To)
	if err = Destination(to, line.allowed); err != nil {
		return control.Lease{}, err
	}
	var text []byte
	var settings trunks.Settings
	err = tx.QueryRow(ctx, `
		SELECT v.definition, t.settings FROM agent_versions v, trunks t WHERE v.agent_id = $1 AND v.version = $2 AND t.id = $3`,
		o.AgentID, o.AgentVersion, line.trunk).Scan(&text, &settings)
	if errors.Is(err, pgx.ErrNoRows) {
		return control.Lease{}, control.Refuse(control.CodeAgentNotPublished, "the agent's version is gone")
	}
	var d agents.Definition
	if err == nil {
		d, err = agents.Read(text, "")
	}
	if err != nil {
		return control.Lease{}, fmt.Errorf("agent: %w", err)
	}
	var at placed
	if err = tx.QueryRow(ctx, countSQL, o.RouteID).Scan(&at.n, &at.at); err != nil {
		return control.Lease{}, fmt.Errorf("subgroup: %w", err)
	}
	l := control.Lease{AttemptID: control.NewID("att_", at.at), CallID: control.NewID("call_", at.at), Owner: p.Owner, Epoch: 1}
	recording := control.RecordingDisabled
	if d.Recording {
		recording = control.RecordingNone
	}
	_, err = tx.Exec(ctx, outgoingSQL, l.CallID, o.OrgID, o.AgentID, o.AgentName, o.AgentVersion, to, o.From, line.prefix+to, line.trunk, o.RouteID,
		o.ExternalID, o.Attempt, o.Name, orEmpty(o.Metadata), orEmpty(o.Variables), defaultRing, d.Voicemail, at.at.UTC(), recording, at.n,
		settings.Rate(to), o.Disclosure, o.CampaignID, o.ContactID, o.ImportID, l.AttemptID, p.Owner, p.Home, lease, o.OptOut)
	if err != nil {
		return control.Lease{}, fmt.Errorf("register call: %w", err)
	}
	return l, nil
}

// outgoingSQL registers a call and its attempt, which a node holds.
const outgoingSQL = `
WITH call AS (INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number,
	dial_number, trunk_id, route_id, external_id, attempt, name, metadata, variables, ring_seconds,
	max_duration_seconds, voicemail, created_at, recording_status, analysis_status, route_n, cost_per_minute, disclosure,
	campaign_id, contact_id, import_id, opt_out)
VALUES ($1, $2, 'phone', 'queued', $3, $4, $5, $6, $7, $8, $9, $10, nullif($11, ''), $12, $13, $14, $15, $16,
	0, $17, $18, $19, 'none', $20, $21, $22, $23, $24, $25, $30))
INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no, state, owner, home, epoch, claimed_at, lease_until)
VALUES ($26, $1, $2, $9, $10, 1, 'claimed', $27, $28, 1, clock_timestamp(), clock_timestamp() + $29::interval)`

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
