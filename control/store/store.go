// Package store is the SQL of calls: the dial queue, attempts, the outbox of events and the call records.
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
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// Store keeps calls in Postgres. It is safe for concurrent use.
type Store struct {
	Pool *pgxpool.Pool
	// Dial is the pool for statements that delay dialing; nil means Pool.
	Dial *pgxpool.Pool
	// ExpireAfter bounds the wait in the dial queue; 0 means 15 min.
	ExpireAfter time.Duration
	// CheckRecording returns why this node cannot record now; it then claims only calls without recording. May be nil.
	CheckRecording func() error
	// Scan is the number of calls scanned for a filtered page; 0 means 1,000.
	Scan int
	// Egress limits the hosts of agent tools; HTTPClient calls them.
	Egress     safedial.Rules
	HTTPClient *http.Client

	// Agents reports which agents this node can run; calls of the others stay queued. May be nil.
	Agents AgentGate
	// PausedTrunks lists trunks through which this node must not call now. May be nil.
	PausedTrunks func() []string

	groups groupWriter
	// Undo reports whether an unsent claimed call is withdrawn; the call is then deleted,
	// else it returns to the queue. May be nil.
	Undo func(ctx context.Context, tx pgx.Tx, callID string) (bool, error)
}

// AgentGate reports which agents can be used; *providers.Monitor implements it.
type AgentGate interface {
	// UnavailableAgents returns the keys of agents that cannot be used now.
	UnavailableAgents() []string
	// MustWait reports whether a call of an agent has to wait.
	MustWait(ctx context.Context, a providers.Agent, e pipeline.Engines) bool
}

// Postgres notification channels.
const (
	ChannelQueue  = "parley_queue"  // a call may be claimed
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

// Call returns a call of an organization, or a refusal with CodeCallNotFound. An empty
// organization selects all, erased calls included.
func (s *Store) Call(ctx context.Context, orgID, id string) (control.Call, error) {
	return callIn(ctx, s.Pool, orgID, id)
}

func callIn(ctx context.Context, q db.Querier, orgID, id string) (control.Call, error) {
	c, err := scanCall(
		q.QueryRow(ctx, "SELECT "+selectCall+fromCalls+"WHERE c.id = $1 AND ($2 = '' OR c.org_id = $2 AND c.erased_at IS NULL)", id, orgID),
	)
	return c, db.RowError(err, "read call", NotFound())
}

// Recording returns the key of a call's recording, empty if there is none, and the end of
// the call. Erased calls are not found. The caller authorizes by the signed link.
func (s *Store) Recording(ctx context.Context, callID string) (key string, ended time.Time, err error) {
	err = s.Pool.QueryRow(ctx, "SELECT coalesce(recording_key, ''), ended_at FROM calls WHERE id = $1 AND erased_at IS NULL", callID).
		Scan(&key, (*zeroTime)(&ended))
	return key, ended, db.RowError(err, "read recording", NotFound())
}

// NotFound is the refusal for calls that do not exist or belong to others.
func NotFound() error { return control.Refuse(control.CodeCallNotFound, "no such call") }

// CallWithTranscript returns a call like Call does, and its transcript, in one query.
func (s *Store) CallWithTranscript(ctx context.Context, orgID, id string) (control.Call, control.Transcript, error) {
	var lines, turns []string
	c, err := scanCall(s.Pool.QueryRow(ctx, "SELECT "+selectCall+`,
		(SELECT array_agg(item::text ORDER BY n) FROM call_lines WHERE call_id = c.id),
		(SELECT array_agg(item::text ORDER BY n) FROM call_turns WHERE call_id = c.id)`+
		fromCalls+"WHERE c.id = $1 AND ($2 = '' OR c.org_id = $2 AND c.erased_at IS NULL)", id, orgID), &lines, &turns)
	if err = db.RowError(err, "read call", NotFound()); err != nil {
		return control.Call{}, control.Transcript{}, err
	}
	w := control.Transcript{Lines: make([]pipeline.Line, len(lines)), Turns: make([]json.RawMessage, len(turns))}
	for i, text := range lines {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return control.Call{}, control.Transcript{}, fmt.Errorf("read transcript: %w", err)
		}
		w.Lines[i] = pipeline.Line(l)
	}
	for i, text := range turns {
		w.Turns[i] = json.RawMessage(text)
	}
	return c, w, nil
}

// Transcript returns the transcript of a call without checking the organization.
func (s *Store) Transcript(ctx context.Context, callID string) (control.Transcript, error) {
	_, w, err := s.CallWithTranscript(ctx, "", callID)
	return w, err
}

// Turns returns the items of GET /v1/calls/{id}/turns of an organization's call.
func (s *Store) Turns(ctx context.Context, orgID, callID string) ([]json.RawMessage, error) {
	var turns []json.RawMessage
	err := s.Pool.QueryRow(ctx, `
		SELECT ARRAY(SELECT item FROM call_turns WHERE call_id = c.id ORDER BY n)
		FROM calls c WHERE c.id = $1 AND c.org_id = $2 AND c.erased_at IS NULL`, callID, orgID).Scan(&turns)
	return turns, db.RowError(err, "read turns", NotFound())
}

// dialPool is the pool for calls being dialed.
func (s *Store) dialPool() *pgxpool.Pool {
	if s.Dial == nil {
		return s.Pool
	}
	return s.Dial
}
