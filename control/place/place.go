// Package place accepts calls: it checks an order in the contract's order and
// registers the call and its attempt in one transaction.
package place

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/gate"
	"github.com/parley-voice/parley/control/group"
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
	Pool *pgxpool.Pool
	// Front is where orders are looked at and registered; nil means Pool.
	Front *pgxpool.Pool
	Store *store.Store
	// Screen knows the numbers that must not be called, beside those of the
	// organization's suppression list; nil knows none.
	Screen control.Screen
	// QueueDepth is how many calls may wait to be dialled; 0 means 1000.
	QueueDepth int
	// Ring, where set, tells the nodes that a call waits; else each order does,
	// as it commits.
	Ring func()

	// Web, where set, takes web calls.
	Web *Web

	queue gauge
	gate  gate.Gate // of those that are looked at
	line  gate.Gate // of those that are written
	web   gate.Gate // of those for web calls
	once  sync.Once
	looks group.Group[*look]
	write group.Group[*entry]
}

// defaultRing is how long a party may ring, in seconds.
const defaultRing = 45

// Also queues what is written with a call, in its transaction: where one of the
// statements fails in the database the call is not registered.
type Also func(*db.Batch, control.Call) error

// Place registers the call of an order, in status queued, or refuses it with a
// *control.Error and leaves nothing behind. What also queues commits with the
// call or not at all; nil is nothing. It may be asked more than once, the last
// time for the call that is returned.
func (d *Desk) Place(ctx context.Context, orgID string, o Order, also Also) (control.Call, error) {
	d.begin()
	f, from, err := d.look(ctx, orgID, o)
	if err != nil {
		return control.Call{}, err
	}
	leave, err := d.line.Enter(ctx)
	if err != nil {
		return control.Call{}, err
	}
	defer leave()
	e := &entry{org: orgID, order: o, found: f, from: from, also: also}
	if err = d.write.Do(ctx, e); err != nil {
		return control.Call{}, err
	}
	if d.Ring != nil {
		d.Ring()
	}
	return e.call, nil
}

func (d *Desk) front() *pgxpool.Pool {
	if d.Front == nil {
		return d.Pool
	}
	return d.Front
}

// look checks an order as soon as the gate lets it in.
func (d *Desk) look(ctx context.Context, orgID string, o Order) (found, string, error) {
	leave, err := d.gate.Enter(ctx)
	if err != nil {
		return found{}, "", err
	}
	defer leave()
	return d.check(ctx, orgID, o)
}

// check goes through the contract's list as far as it needs no lock. It returns
// the caller number too.
func (d *Desk) check(ctx context.Context, orgID string, o Order) (found, string, error) {
	l := &look{org: orgID, order: o}
	if err := d.looks.Do(ctx, l); err != nil {
		return found{}, "", err
	}
	f := l.found
	from, err := f.route.caller(o.From)
	if err != nil {
		return found{}, "", err
	}
	to := control.Digits(o.To)
	if err = Destination(to, f.route.allowed); err != nil {
		return found{}, "", err
	}
	v := f.verdict
	if v.List == "" && d.Screen != nil {
		if v, err = d.Screen.Allowed(ctx, control.Number{OrgID: orgID, Digits: to}, control.ForCall); err != nil {
			return found{}, "", fmt.Errorf("do-not-call lists: %w", err)
		}
	}
	if v.List != "" {
		return found{}, "", control.Refuse(control.CodeDestinationNotAllowed, "the number is on a do-not-call list: "+v.List)
	}
	return f, from, nil
}

// allowed asks the organization's own list, and then what else there is.
func (d *Desk) allowed(ctx context.Context, n control.Number, p control.Purpose) (control.Verdict, error) {
	v, err := d.Store.Allowed(ctx, n, p)
	if err != nil || v.List != "" || d.Screen == nil {
		return v, err
	}
	return d.Screen.Allowed(ctx, n, p)
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
