package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/pipeline"
)

// WebOrder is a request for a call that a browser will join.
type WebOrder struct {
	Agent        string // name of the agent
	Name         string
	Variables    map[string]any
	Metadata     map[string]any
	MaxDurationS int    // in seconds; 0 means the agent's limit
	Client       string // "browser", "sdk" or empty
}

// Ticket lets one browser join a web call.
type Ticket struct {
	Hash    []byte // hash of the token's id
	Expires time.Time
}

// WebCalls holds the functions that web calls need.
type WebCalls struct {
	// HasCapacity reports whether this node can take one more call.
	HasCapacity func() bool
	// Check returns an error if an agent's engines cannot run here.
	Check func(pipeline.Engines) error
	// Ticket creates the ticket for a call.
	Ticket func(callID string, now time.Time) Ticket
}

// maxWebDuration limits web calls of agents that set no limit, because a browser tab may stay open unnoticed.
const maxWebDuration = 2 * time.Hour

// webAgentSQL reads an agent and its published version, if there is one.
const webAgentSQL = `
SELECT a.id, coalesce(v.version, 0), v.definition FROM agents a
LEFT JOIN agent_versions v ON v.agent_id = a.id AND v.version = a.published_version
WHERE a.org_id = $1 AND a.name = $2`

// PlaceWeb registers a web call with the status "queued", together with its ticket. It refuses orders as Place does.
// The function also runs in the transaction that registers the call. A web call uses no trunk channel, but daily caps
// apply to it.
func (d *Controller) PlaceWeb(
	ctx context.Context, orgID string, o WebOrder, also func(context.Context, db.Querier, control.Call, Ticket) error,
) (control.Call, Ticket, error) {
	leave, err := d.webLimit.Enter(ctx)
	if err != nil {
		return control.Call{}, Ticket{}, err
	}
	defer leave()
	var c control.Call
	var t Ticket
	err = db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		f, fault := d.findWeb(ctx, tx, orgID, o)
		if fault != nil {
			return fault
		}
		var now time.Time
		if fault = tx.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); fault != nil {
			return fault
		}
		if c, fault = f.call(orgID, Order{
			Agent: o.Agent, Name: o.Name, Variables: o.Variables, Metadata: o.Metadata, MaxDurationS: o.MaxDurationS,
		}, "", callNumber{at: now}); fault != nil {
			return fault
		}
		c.Type, c.RingFor, c.Voicemail = control.Web, 0, "" // the user who joins is a person, so no answering machine is expected
		if c.MaxDuration == 0 {
			c.MaxDuration = cmp.Or(f.agent.longest, maxWebDuration)
		}
		t = d.Web.Ticket(c.ID, now)
		if fault = insertWeb(ctx, tx, c, t, o.Client); fault != nil {
			return fault
		}
		return also(ctx, tx, c, t)
	})
	return c, t, err
}

// findWeb checks an order in this sequence: agent (404), published version (409), variables, caps, room for a
// recording, capacity of this server (503), engines.
func (d *Controller) findWeb(ctx context.Context, tx pgx.Tx, orgID string, o WebOrder) (f resolution, err error) {
	var text []byte
	err = tx.QueryRow(ctx, webAgentSQL, orgID, o.Agent).Scan(&f.agent.id, &f.agent.version, &text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return f, control.Refuse(control.CodeAgentNotFound, "no agent with this name")
	case err != nil:
		return f, fmt.Errorf("agent: %w", err)
	case text == nil:
		return f, control.Refuse(control.CodeAgentNotPublished, "the agent has no published version")
	}
	var def agents.Definition
	if err = json.Unmarshal(text, &def); err != nil {
		return f, fmt.Errorf("agent: %w", err)
	}
	if err = f.agent.use(def, Order{Name: o.Name, Variables: o.Variables}); err != nil {
		return f, err
	}
	err = tx.QueryRow(ctx, "SELECT coalesce(settings -> 'limits', '{}'), timezone FROM organizations WHERE id = $1", orgID).
		Scan(&f.caps, &f.zone)
	if err != nil {
		return f, fmt.Errorf("organization: %w", err)
	}
	if err = d.checkCaps(ctx, tx, orgID, f); err != nil {
		return f, err
	}
	if err = d.checkRecordable(def.Recording); err != nil {
		return f, err
	}
	switch w := d.Web; {
	case w == nil || !w.HasCapacity():
		return f, &control.Error{
			Code: control.CodeVoiceBackend, Message: "this server takes no calls now; try again shortly", RetryAfter: 5 * time.Second,
		}
	case w.Check(def.Speech.For(orgID)) != nil:
		return f, control.Refuse(control.CodeAgentDispatch, "a provider of the agent is not configured on this server")
	}
	return f, nil
}

// checkCaps locks an organization that has caps, and checks its caps.
func (d *Controller) checkCaps(ctx context.Context, tx pgx.Tx, orgID string, f resolution) error {
	if f.caps == (Caps{}) {
		return nil
	}
	if _, err := tx.Exec(ctx, "SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE", orgID); err != nil {
		return fmt.Errorf("organization: %w", err)
	}
	if err := f.caps.checkNow(ctx, tx, orgID, f.zone, false); err != nil {
		return fmt.Errorf("organization: %w", err)
	}
	return nil
}

// webColumns are the columns of web calls. A web call has no subgroup, and so no sequence number in a subgroup.
var webColumns = store.RegisteredColumns.Except("route_n") //nolint:gochecknoglobals // read-only table

//nolint:gochecknoglobals // made once
var webCallSQL = "WITH call AS (" + webColumns.Insert("calls", 4) + ` RETURNING id)
INSERT INTO web_tickets (call_id, hash, client, expires_at) SELECT id, $1, $2, $3 FROM call`

func insertWeb(ctx context.Context, tx pgx.Tx, c control.Call, t Ticket, client string) error {
	args := append([]any{t.Hash, client, t.Expires}, webColumns.Args(&store.CallRow{Call: c})...)
	_, err := db.Exec(ctx, tx, "register call", webCallSQL, args...)
	return err
}
