// Package store contains the SQL of calls: the dial queue, attempts, the outbox of events, and call records.
package store

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// Store keeps calls in Postgres. It is safe for concurrent use.
type Store struct {
	Pool *pgxpool.Pool
	// Dial is the connection pool for statements that delay dialing; nil means Pool.
	Dial *pgxpool.Pool
	// ExpireAfter limits the time that a call waits in the dial queue; 0 means 15 min.
	ExpireAfter time.Duration
	// CheckRecording returns an error if this node cannot record now. The node then claims only calls without
	// recording. CheckRecording may be nil.
	CheckRecording func() error
	// Prices is the price list for computing the cost of a call at its end; nil means that there are no prices.
	Prices *pricing.List
	// Scan is the number of calls that List scans first for a filtered page; 0 means 1,000.
	Scan int
	// Pack reports whether the transcripts of ended calls are written as packs; nil means that they are not.
	Pack func() bool
	// Egress restricts the hosts that agents' tools may call. HTTPClient sends these requests.
	Egress     safedial.Rules
	HTTPClient *http.Client

	// Agents reports which agents this node can run. Calls of other agents stay in the queue. Agents may be nil.
	Agents AgentGate
	// PausedTrunks returns the trunks that this node must not use now. It may be nil.
	PausedTrunks func() []string

	groups groupWriter
	search queueSearch
	// Undo reports whether a claimed call that was never sent is withdrawn. A withdrawn call is deleted; other calls
	// return to the queue. Undo may be nil.
	Undo func(ctx context.Context, tx pgx.Tx, callID string) (bool, error)
}

// AgentGate reports which agents can be used; *providers.Monitor implements it.
type AgentGate interface {
	// UnavailableAgents returns the keys of agents that cannot be used now.
	UnavailableAgents() []string
	// MustWait reports whether a call of the agent with these engines has to wait.
	MustWait(ctx context.Context, a providers.Agent, e pipeline.Engines) bool
}

// Postgres notification channels.
const (
	ChannelQueue  = "parley_queue"  // a call can be claimed
	ChannelEnds   = "parley_ends"   // a call was asked to end
	ChannelEvents = "parley_events" // an event was written
)

// orNull returns nil for a zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Call returns a call of an organization, or an error with CodeCallNotFound. If orgID is empty, it finds the calls of
// all organizations, including erased calls.
func (s *Store) Call(ctx context.Context, orgID, id string) (control.Call, error) {
	return callIn(ctx, s.Pool, orgID, id)
}

func callIn(ctx context.Context, q db.Querier, orgID, id string) (control.Call, error) {
	c, err := scanCall(
		q.QueryRow(ctx, "SELECT "+selectCall+fromCalls+"WHERE c.id = $1 AND ($2 = '' OR c.org_id = $2 AND c.erased_at IS NULL)", id, orgID),
	)
	return c, db.RowError(err, "read call", NotFound())
}

// Recording returns the storage key of a call's recording, which is empty if there is none, and the time at which the
// call ended. It does not find erased calls. The signed link authorizes the request, so no organization is checked.
func (s *Store) Recording(ctx context.Context, callID string) (key string, ended time.Time, err error) {
	err = s.Pool.QueryRow(ctx, "SELECT coalesce(recording_key, ''), ended_at FROM calls WHERE id = $1 AND erased_at IS NULL", callID).
		Scan(&key, (*zeroTime)(&ended))
	return key, ended, db.RowError(err, "read recording", NotFound())
}

// NotFound returns the error for a call that does not exist or belongs to another organization.
func NotFound() error { return control.Refuse(control.CodeCallNotFound, "no such call") }

// CallWithTranscript returns a call as Call does, together with its transcript, in one query.
func (s *Store) CallWithTranscript(ctx context.Context, orgID, id string) (control.Call, control.Transcript, error) {
	var rows transcriptRows
	c, err := scanCall(s.Pool.QueryRow(ctx, "SELECT "+selectCall+`,
		(SELECT array_agg(item::text ORDER BY n) FROM call_lines WHERE call_id = c.id),
		(SELECT array_agg(item::text ORDER BY n) FROM call_turns WHERE call_id = c.id),
		(SELECT pack FROM call_packs WHERE call_id = c.id)`+
		fromCalls+"WHERE c.id = $1 AND ($2 = '' OR c.org_id = $2 AND c.erased_at IS NULL)", id, orgID), &rows.lines, &rows.turns, &rows.pack)
	if err = db.RowError(err, "read call", NotFound()); err != nil {
		return control.Call{}, control.Transcript{}, err
	}
	w, err := rows.transcript()
	if err != nil {
		return control.Call{}, control.Transcript{}, fmt.Errorf("read transcript: %w", err)
	}
	return c, w, nil
}

// Transcript returns the transcript of a call. It does not check the organization.
func (s *Store) Transcript(ctx context.Context, callID string) (control.Transcript, error) {
	_, w, err := s.CallWithTranscript(ctx, "", callID)
	return w, err
}

// Turns returns the items of GET /v1/calls/{id}/turns for a call of an organization.
func (s *Store) Turns(ctx context.Context, orgID, callID string) ([]json.RawMessage, error) {
	var rows transcriptRows
	err := s.Pool.QueryRow(ctx, `
		SELECT ARRAY(SELECT item::text FROM call_turns WHERE call_id = c.id ORDER BY n), (SELECT pack FROM call_packs WHERE call_id = c.id)
		FROM calls c WHERE c.id = $1 AND c.org_id = $2 AND c.erased_at IS NULL`, callID, orgID).Scan(&rows.turns, &rows.pack)
	if err = db.RowError(err, "read turns", NotFound()); err != nil {
		return nil, err
	}
	w, err := rows.transcript()
	return w.Turns, db.Wrap(err, "read turns")
}

// dialPool returns the pool for statements that delay dialing.
func (s *Store) dialPool() *pgxpool.Pool {
	if s.Dial == nil {
		return s.Pool
	}
	return s.Dial
}
