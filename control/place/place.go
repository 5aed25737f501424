// Package place accepts calls: it checks an order in the contract's order and
// registers the call and its attempt in one transaction.
package place

import (
	"context"
	"errors"
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
	// Disclosure is what the call begins with, before the greeting, and cannot be
	// interrupted in; of campaigns' calls.
	Disclosure string
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
	// Screen knows the numbers that must not be called; nil is the
	// organization's suppression list alone.
	Screen control.Screen
	// QueueDepth is how many calls may wait to be dialled; 0 means 1000.
	QueueDepth int
	// Ring, where set, tells the nodes that a call waits; else each order does,
	// as it commits.
	Ring func()

	// Web, where set, takes web calls.
	Web *Web

	queue gauge
	gate  gate
	turns turns
}

// defaultRing is how long a party may ring, in seconds.
const defaultRing = 45

// Place registers the call of an order, in status queued, or refuses it with a
// *control.Error and leaves nothing behind. What also writes, commits with the
// call or not at all; nil is nothing.
func (d *Desk) Place(ctx context.Context, orgID string, o Order, also func(context.Context, db.Querier, control.Call) error) (control.Call, error) {
	f, from, err := d.look(ctx, orgID, o)
	if err != nil {
		return control.Call{}, err
	}
	// Whoever waits for the subgroup in the database has a connection meanwhile.
	done, err := d.turns.take(ctx, f.route.id)
	if err != nil {
		return control.Call{}, err
	}
	defer done()
	var c control.Call
	err = d.Pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		// The pool drops a connection that comes back inside a transaction.
		p, fault := register(ctx, conn, orgID, f)
		if fault == nil {
			c, fault = f.call(orgID, o, from, p)
		}
		if fault == nil && also != nil {
			fault = also(ctx, conn, c)
		}
		if fault == nil {
			fault = insert(ctx, conn, c, p.n, f.route.settings.Rate(c.To), d.Ring == nil)
		}
		if fault != nil {
			return errors.Join(fault, rollback(ctx, conn))
		}
		return nil
	})
	if err != nil {
		return control.Call{}, err
	}
	if d.Ring != nil {
		d.Ring()
	}
	return c, nil
}

// rollback ends the transaction of an order that was refused, so that the
// connection serves the next.
func rollback(ctx context.Context, conn *pgxpool.Conn) error {
	if conn.Conn().IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, err := conn.Exec(ctx, "ROLLBACK")
	return err
}

// look checks an order as soon as the gate lets it in.
func (d *Desk) look(ctx context.Context, orgID string, o Order) (found, string, error) {
	leave, err := d.gate.enter(ctx)
	if err != nil {
		return found{}, "", err
	}
	defer leave()
	return d.check(ctx, orgID, o)
}

// check goes through the contract's list as far as it needs no lock. It returns
// the caller number too.
func (d *Desk) check(ctx context.Context, orgID string, o Order) (found, string, error) {
	f, err := d.find(ctx, orgID, o)
	if err != nil {
		return found{}, "", err
	}
	from, err := f.route.caller(o.From)
	if err != nil {
		return found{}, "", err
	}
	to := control.Digits(o.To)
	if err = Destination(to, f.route.allowed); err != nil {
		return found{}, "", err
	}
	v := f.verdict
	if d.Screen != nil {
		if v, err = d.Screen.Allowed(ctx, control.Number{OrgID: orgID, Digits: to}, control.ForCall); err != nil {
			return found{}, "", fmt.Errorf("do-not-call lists: %w", err)
		}
	}
	if v.List != "" {
		return found{}, "", control.Refuse(control.CodeDestinationNotAllowed, "the number is on a do-not-call list: "+v.List)
	}
	return f, from, nil
}

func (d *Desk) screen() control.Screen {
	if d.Screen != nil {
		return d.Screen
	}
	return d.Store
}

// call is the call of an order, or what is wrong with it beyond its limits.
func (f found) call(orgID string, o Order, from string, p placed) (control.Call, error) {
	ring, err := ringSeconds(o.RingDuration)
	if err != nil {
		return control.Call{}, err
	}
	if f.late != nil {
		return control.Call{}, f.late
	}
	to := control.Digits(o.To)
	c := control.Call{
		ID: control.NewID("call_", p.at), OrgID: orgID, Type: "phone", Status: control.Queued,
		AgentID: f.agent.id, AgentName: o.Agent, AgentVersion: f.agent.version,
		To: to, From: from, RingFor: time.Duration(ring) * time.Second, DialNumber: f.route.prefix + to, TrunkID: f.route.trunkID, RouteID: f.route.id,
		Attempt: 1, Name: o.Name, Metadata: clientMetadata(o.Metadata), Variables: o.Variables,
		MaxDuration: time.Duration(o.MaxDurationS) * time.Second,
		Voicemail:   o.Voicemail, Disclosure: o.Disclosure, CreatedAt: p.at.UTC(),
		RecordingStatus: control.RecordingNone, AnalysisStatus: "none",
	}
	if c.Voicemail == "" {
		c.Voicemail = f.agent.voicemail
	}
	if record := f.agent.recording; o.Record != nil && !*o.Record || o.Record == nil && !record {
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

// callSQL registers a call and its attempt.
const callSQL = `
WITH call AS (INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number,
	dial_number, trunk_id, route_id, external_id, attempt, name, metadata, variables, ring_seconds,
	max_duration_seconds, voicemail, created_at, recording_status, analysis_status, route_n, cost_per_minute, disclosure)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, nullif($13, ''), $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $27)
RETURNING id, org_id, trunk_id, route_id, attempt)
INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no)
SELECT $26, id, org_id, trunk_id, route_id, attempt FROM call`

// insert writes call and attempt, rings where it is to, and commits.
func insert(ctx context.Context, conn *pgxpool.Conn, c control.Call, n int64, cost float64, ring bool) error {
	batch := &pgx.Batch{}
	batch.Queue(callSQL, c.ID, c.OrgID, c.Type, c.Status, c.AgentID, c.AgentName, c.AgentVersion, c.To, c.From,
		c.DialNumber, c.TrunkID, c.RouteID, c.ExternalID, c.Attempt, c.Name, c.Metadata, c.Variables, int(c.RingFor/time.Second),
		int(c.MaxDuration/time.Second), c.Voicemail, c.CreatedAt, c.RecordingStatus, c.AnalysisStatus, n, cost, control.NewID("att_", c.CreatedAt), c.Disclosure)
	if ring {
		batch.Queue("SELECT pg_notify($1, '')", store.BellQueue)
	}
	batch.Queue("COMMIT")
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("register call: %w", err)
	}
	return nil
}
