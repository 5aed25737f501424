package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
)

// CampaignCall is a call that skips the dial queue: it starts on a free channel.
type CampaignCall struct {
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
	Disclosure            string // spoken before the greeting
	OptOut                control.OptOutOptions
}

// definitionSQL reads the agent of a starting call, its trunk settings and caller numbers,
// and whether the agent is attached to the subgroup.
const definitionSQL = `
SELECT v.definition, t.settings, s.caller_numbers, t.caller_numbers, coalesce(g.caller_numbers, '{}'),
       EXISTS (SELECT FROM subgroup_agents a WHERE a.subgroup_id = s.id AND a.agent_id = v.agent_id)
FROM agent_versions v, subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id
WHERE v.agent_id = $1 AND v.version = $2 AND s.id = $3`

// StartCampaignCall reserves a channel of the subgroup, if one is free, and registers the
// call claimed by a node. Without a free channel, or with a reached cap, it returns a
// *control.Error and writes nothing.
func StartCampaignCall(ctx context.Context, tx pgx.Tx, o CampaignCall, p control.NodeID, lease time.Duration) (control.Lease, error) {
	var w routeSlot
	var caps Caps
	var zone string
	var text []byte
	var settings trunks.Settings
	var numbers trunks.Numbers
	var attached bool
	batch := &pgx.Batch{}
	batch.Queue(dayLock, o.OrgID)
	batch.Queue(laneSQL, o.RouteID, o.OrgID).QueryRow(func(row pgx.Row) error {
		return orNotFound(row.Scan(&w.trunk, &w.prefix, &w.allowed, &caps, &zone))
	})
	batch.Queue(lentLock, o.RouteID)
	batch.Queue(definitionSQL, o.AgentID, o.AgentVersion, o.RouteID).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&text, &settings, &numbers.Subgroup, &numbers.Trunk, &numbers.Grant, &attached); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return control.Refuse(control.CodeAgentNotPublished, "the agent version was deleted")
	})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return control.Lease{}, err
	}
	if !attached {
		return control.Lease{}, control.Refuse(control.CodeAgentNotInSubgroup, "the agent is no longer attached to the subgroup")
	}
	if err := caps.checkToday(ctx, tx, o.OrgID, zone); err != nil {
		return control.Lease{}, err
	}
	to := control.Digits(o.To)
	if err := CheckDestination(o.To, w.allowed); err != nil {
		return control.Lease{}, err
	}
	if _, ok := trunks.FindNumber(numbers.Usable(), o.From); !ok {
		return control.Lease{}, control.Refuse(control.CodeCallerNumberDenied, "the route no longer allows this caller number")
	}
	d, err := agents.Decode(text, "")
	if err != nil {
		return control.Lease{}, fmt.Errorf("agent: %w", err)
	}
	now := time.Now() // for ids only
	l := control.Lease{AttemptID: control.NewID("att_", now), CallID: control.NewID("call_", now), Owner: p.Owner, Epoch: 1}
	recording := control.RecordingDisabled
	if d.Recording {
		recording = control.RecordingNone
	}
	tag, err := tx.Exec(ctx, paceSQL(store.EvenlyDueAt)+outgoingSQL,
		o.RouteID, time.Duration(0), l.CallID, o.OrgID, o.AgentID, o.AgentName, o.AgentVersion, to, o.From, w.prefix+to,
		w.trunk, o.ExternalID, o.Attempt, o.Name, orEmpty(o.Metadata), orEmpty(o.Variables), defaultRing, d.Voicemail, recording,
		settings.Rate(to), o.Disclosure, o.CampaignID, o.ContactID, o.ImportID, o.OptOut, l.AttemptID, p.Owner, p.Home, lease)
	if err != nil {
		return control.Lease{}, fmt.Errorf("register call: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return control.Lease{}, errNoChannel()
	}
	return l, nil
}

// outgoingSQL, after paceSQL, numbers and registers a call with an attempt claimed by a
// node. Without a channel it writes nothing.
const outgoingSQL = `, number AS (
	INSERT INTO subgroup_counts AS c (subgroup_id, registered, last_at) SELECT id, 1, clock_timestamp() FROM start
	ON CONFLICT (subgroup_id) DO UPDATE SET registered = c.registered + 1, last_at = greatest(c.last_at, clock_timestamp())
	RETURNING registered, last_at
), call AS (
	INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
		trunk_id, route_id, external_id, attempt, name, metadata, variables, ring_seconds, max_duration_seconds, voicemail,
		created_at, recording_status, analysis_status, route_n, cost_per_minute, disclosure, campaign_id, contact_id, import_id, opt_out)
	SELECT $3, $4, 'phone', 'queued', $5, $6, $7, $8, $9, $10,
		$11, $1, nullif($12, ''), $13, $14, $15, $16, $17, 0, $18,
		number.last_at, $19, 'none', number.registered, $20, $21, $22, $23, $24, $25
	FROM number
)
INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no, state, owner, home, epoch, claimed_at, lease_until)
SELECT $26, $3, $4, $11, $1, 1, 'claimed', $27, $28, 1, clock_timestamp(), clock_timestamp() + $29::interval FROM number`

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
