package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
)

// CampaignCall describes a call of a campaign. Such a call skips the dial queue and starts on a free channel.
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
	Disclosure            string // text that is spoken before the greeting
	OptOut                control.OptOutOptions
}

// definitionSQL reads the agent version, the caller numbers, and whether the agent is attached to the subgroup.
const definitionSQL = `
SELECT v.definition, s.caller_numbers, t.caller_numbers, coalesce(g.caller_numbers, '{}'),
       EXISTS (SELECT FROM subgroup_agents a WHERE a.subgroup_id = s.id AND a.agent_id = v.agent_id)
FROM agent_versions v, subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id
WHERE v.agent_id = $1 AND v.version = $2 AND s.id = $3`

// StartCampaignCall reserves a channel of the subgroup and registers the call as claimed by a node. If no channel is
// free or a cap is reached, it returns a *control.Error and writes nothing.
func StartCampaignCall(ctx context.Context, tx pgx.Tx, o CampaignCall, p control.NodeID, lease time.Duration) (control.Lease, error) {
	var w routeSlot
	var caps Caps
	var zone string
	var text []byte
	var numbers trunks.Numbers
	var attached bool
	batch := &pgx.Batch{}
	batch.Queue(lockOrganizationSQL, o.OrgID)
	batch.Queue(lockRouteSQL, o.RouteID, o.OrgID).QueryRow(func(row pgx.Row) error {
		return orNotFound(row.Scan(&w.trunk, &w.prefix, &w.allowed, &w.settings, &caps, &zone))
	})
	batch.Queue(lockGrantSQL, o.RouteID)
	batch.Queue(definitionSQL, o.AgentID, o.AgentVersion, o.RouteID).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&text, &numbers.Subgroup, &numbers.Trunk, &numbers.Grant, &attached); !errors.Is(err, pgx.ErrNoRows) {
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
	if err := caps.checkNow(ctx, tx, o.OrgID, zone, false); err != nil {
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
	c := store.CallRow{Call: control.Call{
		ID: control.NewID("call_", time.Now()), OrgID: o.OrgID, Type: control.Phone, Status: control.Queued,
		AgentID: o.AgentID, AgentName: o.AgentName, AgentVersion: o.AgentVersion,
		To: to, From: o.From, DialNumber: w.prefix + to, TrunkID: w.trunk, RouteID: o.RouteID,
		CampaignID: o.CampaignID, ContactID: o.ContactID, ImportID: o.ImportID, ExternalID: o.ExternalID,
		Attempt: o.Attempt, Name: o.Name, Metadata: orEmpty(o.Metadata), Variables: orEmpty(o.Variables),
		RingFor: defaultRing * time.Second, Voicemail: d.Voicemail, Disclosure: o.Disclosure, OptOut: o.OptOut,
		RecordingStatus: control.RecordingDisabled, AnalysisStatus: "none",
	}, CostPerMinute: w.settings.Rate(to)}
	if d.Recording {
		c.RecordingStatus = control.RecordingNone
	}
	a := store.NewAttempt(c.ID, p, lease)
	a.OrgID, a.TrunkID, a.RouteID = o.OrgID, w.trunk, o.RouteID
	args := slices.Concat([]any{o.RouteID, time.Duration(0)}, campaignColumns.Args(&c), store.AttemptColumns.Args(&a))
	tag, err := tx.Exec(ctx, campaignCallSQL, args...)
	if err != nil {
		return control.Lease{}, fmt.Errorf("register call: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return control.Lease{}, errNoChannel()
	}
	return a.Lease, nil
}

// campaignColumns are the columns of campaign calls. The database sets the call's sequence number in the subgroup.
//
//nolint:gochecknoglobals // read-only table
var campaignColumns = store.RegisteredColumns.WriteAs("created_at", "number.last_at").WriteAs("route_n", "number.registered")

// campaignCallSQL reserves a channel, registers a call with the next sequence number of the subgroup, and inserts an
// attempt that a node has claimed. If no channel is free, it writes nothing.
//
//nolint:gochecknoglobals // made once
var campaignCallSQL = paceSQL(store.EvenlyDueAt) + `, number AS (
	INSERT INTO subgroup_counts AS c (subgroup_id, registered, last_at) SELECT id, 1, clock_timestamp() FROM start
	ON CONFLICT (subgroup_id) DO UPDATE SET registered = c.registered + 1, last_at = greatest(c.last_at, clock_timestamp())
	RETURNING registered, last_at
), call AS (
	` + campaignColumns.Insert("calls", 3) + ` FROM number
)
` + store.AttemptColumns.Insert("attempts", 3+campaignColumns.ArgCount()) + ` FROM number`

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
