// Package place accepts calls: it checks an order in the contract's order and
// registers the call and its attempt in one transaction.
package place

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/store"
)

// An Order asks for one outbound call. Empty strings stand for what is not
// said.
type Order struct {
	Agent   string // name
	To      string // as sent
	TrunkID string
	RouteID string
	From    string
	// RingDuration is in seconds, 5 to 120; nil means 45.
	RingDuration *float64
	Name         string
	Variables    map[string]any
	Metadata     map[string]any
	MaxDurationS int // 0: the agent's
	Voicemail    string
	Record       *bool // nil: the agent's
}

// A MissingError names the variables that the agent's texts need and that neither
// the order nor the agent has.
type MissingError struct{ Variables []string }

// Error implements error.
func (m *MissingError) Error() string {
	return "variables are missing: " + strings.Join(m.Variables, ", ")
}

// A Desk accepts orders.
type Desk struct {
	Pool  *pgxpool.Pool
	Store *store.Store
	// QueueDepth is how many calls may wait to be dialled; 0 means 1000.
	QueueDepth int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// defaultRing is how long a party may ring, in seconds.
const defaultRing = 45

// Room refuses with CodeDialQueueFull while the dial queue is at its ceiling.
func (d *Desk) Room(ctx context.Context) error {
	depth, err := d.Store.Depth(ctx)
	if err != nil {
		return err
	}
	ceiling := d.QueueDepth
	if ceiling == 0 {
		ceiling = 1000
	}
	if depth < ceiling {
		return nil
	}
	drained, err := d.Store.Drained(ctx)
	if err != nil {
		return err
	}
	return &control.Error{
		Code: control.CodeDialQueueFull, Message: "the dial queue is full; repeat the request with the same Idempotency-Key",
		RetryAfter: drainTime(depth, drained),
	}
}

// drainTime estimates how long a queue takes of which drained left in the last
// minute: 1 to 60 s.
func drainTime(depth, drained int) time.Duration {
	if drained == 0 {
		return time.Minute
	}
	seconds := (depth*60 + drained - 1) / drained
	return time.Duration(min(max(seconds, 1), 60)) * time.Second
}

// Place registers the call of an order, in status queued, or refuses it with a
// *control.Error and leaves nothing behind. What also writes, commits with the
// call or not at all; nil is nothing.
func (d *Desk) Place(ctx context.Context, orgID string, o Order, also func(context.Context, db.Querier, control.Call) error) (control.Call, error) {
	now := time.Now()
	if d.Now != nil {
		now = d.Now()
	}
	var c control.Call
	err := db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		var err error
		if c, err = check(ctx, tx, orgID, o, now); err != nil {
			return err
		}
		if err = insert(ctx, tx, c); err != nil {
			return fmt.Errorf("register call: %w", err)
		}
		if also != nil {
			if err = also(ctx, tx, c); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", store.BellQueue)
		return err
	})
	if err != nil {
		return control.Call{}, err
	}
	return c, nil
}

// check goes through the contract's list. The call it returns is whole.
func check(ctx context.Context, tx pgx.Tx, orgID string, o Order, now time.Time) (control.Call, error) {
	r, err := findRoute(ctx, tx, orgID, o)
	if err != nil {
		return control.Call{}, err
	}
	from, err := r.caller(o.From)
	if err != nil {
		return control.Call{}, err
	}
	to := control.Digits(o.To)
	if err = Destination(to, r.allowed); err != nil {
		return control.Call{}, err
	}
	suppressed, err := store.Suppressed(ctx, tx, orgID, to)
	if err != nil {
		return control.Call{}, fmt.Errorf("suppression list: %w", err)
	}
	if suppressed {
		return control.Call{}, control.Refuse(control.CodeDestinationNotAllowed, "the number is on the organization's do-not-call list")
	}
	if err = r.limits(ctx, tx, now); err != nil {
		return control.Call{}, err
	}
	ring, err := ringSeconds(o.RingDuration)
	if err != nil {
		return control.Call{}, err
	}
	a, err := published(ctx, tx, orgID, o)
	if err != nil {
		return control.Call{}, err
	}
	c := control.Call{
		ID: control.NewID("call_", now), OrgID: orgID, Type: "phone", Status: control.Queued,
		AgentID: a.id, AgentName: o.Agent, AgentVersion: a.version,
		To: to, From: from, DialNumber: r.prefix + to, TrunkID: r.trunkID, RouteID: r.id,
		Attempt: 1, Name: o.Name, Metadata: clientMetadata(o.Metadata), Variables: o.Variables,
		RingFor: time.Duration(ring) * time.Second, MaxDuration: time.Duration(o.MaxDurationS) * time.Second,
		Voicemail: o.Voicemail, CreatedAt: now.UTC().Truncate(time.Microsecond),
		RecordingStatus: control.RecordingNone, AnalysisStatus: "none",
	}
	if c.Voicemail == "" {
		c.Voicemail = a.voicemail
	}
	if record := a.recording; o.Record != nil && !*o.Record || o.Record == nil && !record {
		c.RecordingStatus = control.RecordingDisabled
	}
	if c.Variables == nil {
		c.Variables = map[string]any{}
	}
	c.ExternalID, _ = o.Metadata["external_id"].(string)
	return c, nil
}

// clientMetadata drops the keys that are ours to set.
func clientMetadata(m map[string]any) map[string]any {
	kept := map[string]any{}
	for k, v := range m {
		switch k {
		case "contact_id", "campaign_id", "import_id":
		default:
			kept[k] = v
		}
	}
	return kept
}

func ringSeconds(asked *float64) (int, error) {
	if asked == nil {
		return defaultRing, nil
	}
	s := int(*asked)
	if float64(s) != *asked || s < 5 || s > 120 {
		return 0, control.Refuse(control.CodeRingDurationInvalid, "ring_duration is a whole number of seconds from 5 to 120")
	}
	return s, nil
}

func insert(ctx context.Context, tx pgx.Tx, c control.Call) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number,
			dial_number, trunk_id, route_id, external_id, attempt, name, metadata, variables, ring_seconds,
			max_duration_seconds, voicemail, created_at, recording_status, analysis_status)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, nullif($13, ''), $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`,
		c.ID, c.OrgID, c.Type, c.Status, c.AgentID, c.AgentName, c.AgentVersion, c.To, c.From,
		c.DialNumber, c.TrunkID, c.RouteID, c.ExternalID, c.Attempt, c.Name, c.Metadata, c.Variables, int(c.RingFor/time.Second),
		int(c.MaxDuration/time.Second), c.Voicemail, c.CreatedAt, c.RecordingStatus, c.AnalysisStatus)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no) VALUES ($1, $2, $3, $4, $5, $6)",
		control.NewID("att_", c.CreatedAt), c.ID, c.OrgID, c.TrunkID, c.RouteID, c.Attempt)
	return err
}
