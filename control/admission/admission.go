// Package admission decides whether an order becomes a call. It checks the order in the sequence that the API
// documents, limits how many orders are processed at a time, and registers the call and its first attempt in one
// transaction.
package admission

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/control/store"
)

// Order is a request for one outbound call. An empty string means that the field is not set.
type Order struct {
	Agent   string // name of the agent
	To      string // number as the client sent it
	TrunkID string
	RouteID string
	From    string
	// RingDuration is the maximum ringing time in seconds, 5 to 120; nil means 45.
	RingDuration *float64
	Name         string
	Variables    map[string]any
	Metadata     map[string]any
	MaxDurationS int // in seconds; 0 means the agent's limit
	Voicemail    string
	Record       *bool // nil means the agent's setting
	// Disclosure is the legally required statement of a campaign call. It is spoken before the greeting and cannot be
	// interrupted.
	Disclosure string
}

// MissingVariablesError names variables that the agent's texts use, but for which neither the order nor the agent has
// a value.
type MissingVariablesError struct{ Variables []string }

// Error implements error.
func (m *MissingVariablesError) Error() string {
	return "missing variables: " + strings.Join(m.Variables, ", ")
}

// Controller accepts or refuses orders.
type Controller struct {
	Pool *pgxpool.Pool
	// OrderPool is the connection pool for checking and registering orders; nil means Pool.
	OrderPool *pgxpool.Pool
	Store     *store.Store
	// Screener checks do-not-call lists other than the suppression list. It may be nil.
	Screener control.Screener
	// QueueDepth is the maximum number of calls in the dial queue; 0 means 1000. A negative number refuses all
	// orders.
	QueueDepth int
	// Notify wakes the nodes after an order was registered. If it is nil, the transaction of each order notifies
	// them.
	Notify func()

	// CheckRecording returns an error if this server cannot record now. It is called for every order. If it is nil,
	// there is no check.
	CheckRecording func() error

	// Web holds the functions that web calls need; nil disables web calls.
	Web *WebCalls

	queue      queueGauge
	checkLimit Limiter // limits orders that are being checked
	writeLimit Limiter // limits orders that are being registered
	webLimit   Limiter // limits orders of web calls
	once       sync.Once
	lookups    groupcommit.Group[*lookup]
	writes     groupcommit.Group[*entry]
}

// defaultRing is the default ringing time in seconds.
const defaultRing = 45

// InTx adds statements to the transaction that registers a call. If one of them fails, the call is not registered.
type InTx func(*db.Batch, control.Call) error

// Place registers the call of an order with the status "queued". If it refuses the order, it returns a *control.Error
// and writes nothing. If also is not nil, it adds statements to the transaction that registers the call. It may run
// more than once; its last run is for the call that Place returns.
func (d *Controller) Place(ctx context.Context, orgID string, o Order, also InTx) (control.Call, error) {
	d.init()
	f, from, err := d.lookUp(ctx, orgID, o)
	if err != nil {
		return control.Call{}, err
	}
	if f.agentErr == nil {
		if err = d.checkRecordable(f.isRecorded(o)); err != nil {
			return control.Call{}, err
		}
	}
	leave, err := d.writeLimit.Enter(ctx)
	if err != nil {
		return control.Call{}, err
	}
	defer leave()
	e := &entry{org: orgID, order: o, found: f, from: from, also: also}
	if err = d.writes.Do(ctx, e); err != nil {
		return control.Call{}, err
	}
	if d.Notify != nil {
		d.Notify()
	}
	return e.call, nil
}

// checkRecordable refuses a recorded call if this server cannot record now.
func (d *Controller) checkRecordable(records bool) error {
	if !records || d.CheckRecording == nil || d.CheckRecording() == nil {
		return nil
	}
	return &control.Error{
		Code: control.CodeVoiceBackend, RetryAfter: 30 * time.Second,
		Message: "too little free disk space to record the call; retry later, or send \"record\": false",
	}
}

func (f resolution) isRecorded(o Order) bool {
	if o.Record != nil {
		return *o.Record
	}
	return f.agent.recording
}

func (d *Controller) orderPool() *pgxpool.Pool {
	if d.OrderPool == nil {
		return d.Pool
	}
	return d.OrderPool
}

// lookUp checks an order as soon as the limiter admits it.
func (d *Controller) lookUp(ctx context.Context, orgID string, o Order) (resolution, string, error) {
	leave, err := d.checkLimit.Enter(ctx)
	if err != nil {
		return resolution{}, "", err
	}
	defer leave()
	return d.check(ctx, orgID, o)
}

// check runs all checks that need no lock. It also returns the caller number for the call.
func (d *Controller) check(ctx context.Context, orgID string, o Order) (resolution, string, error) {
	l := &lookup{org: orgID, order: o}
	if err := d.lookups.Do(ctx, l); err != nil {
		if control.CodeOf(err) == control.CodeAgentNotInSubgroup {
			err = d.explain(ctx, l, err)
		}
		return resolution{}, "", err
	}
	f := l.found
	from, err := f.route.caller(o.From)
	if err != nil {
		return resolution{}, "", err
	}
	to := control.Digits(o.To)
	if err = CheckDestination(o.To, f.route.allowed); err != nil {
		return resolution{}, "", err
	}
	v := f.screened
	if v.List == "" && d.Screener != nil {
		if v, err = d.Screener.Screen(ctx, control.Number{OrgID: orgID, Digits: to}, control.ForCall); err != nil {
			return resolution{}, "", fmt.Errorf("do-not-call lists: %w", err)
		}
	}
	if v.List != "" {
		return resolution{}, "", control.Refuse(control.CodeDestinationNotAllowed, "the number is on a do-not-call list: "+v.List)
	}
	return f, from, nil
}

// screen checks a number against the organization's suppression list, and then against the other lists.
func (d *Controller) screen(ctx context.Context, n control.Number, p control.Purpose) (control.ScreenResult, error) {
	v, err := d.Store.Screen(ctx, n, p)
	if err != nil || v.List != "" || d.Screener == nil {
		return v, err
	}
	return d.Screener.Screen(ctx, n, p)
}

// call builds the call of an order. It checks no limits.
func (f resolution) call(orgID string, o Order, from string, p callNumber) (control.Call, error) {
	ring, err := ringSeconds(o.RingDuration)
	if err != nil {
		return control.Call{}, err
	}
	if f.agentErr != nil {
		return control.Call{}, f.agentErr
	}
	to := control.Digits(o.To)
	c := control.Call{
		ID: control.NewID("call_", p.at), OrgID: orgID, Type: "phone", Status: control.Queued,
		AgentID: f.agent.id, AgentName: o.Agent, AgentVersion: f.agent.version,
		To: to, From: from, RingFor: time.Duration(ring) * time.Second, DialNumber: f.route.prefix + to,
		TrunkID: f.route.trunkID, RouteID: f.route.id,
		Attempt: 1, Name: o.Name, Metadata: clientMetadata(o.Metadata), Variables: o.Variables,
		MaxDuration: time.Duration(o.MaxDurationS) * time.Second,
		Voicemail:   o.Voicemail, Disclosure: o.Disclosure, CreatedAt: p.at.UTC(),
		RecordingStatus: control.RecordingNone, AnalysisStatus: "none",
	}
	if c.Voicemail == "" {
		c.Voicemail = f.agent.voicemail
	}
	if !f.isRecorded(o) {
		c.RecordingStatus = control.RecordingDisabled
	}
	if c.Variables == nil {
		c.Variables = map[string]any{}
	}
	c.ExternalID, _ = o.Metadata["external_id"].(string)
	return c, nil
}

// clientMetadata returns metadata without reserved keys.
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
		return 0, control.Refuse(control.CodeRingDurationInvalid, "ring_duration must be a whole number of seconds from 5 to 120")
	}
	return s, nil
}
