// Package store is the SQL of calls: the dial queue, the ledger of attempts,
// the outbox of events and the records themselves.
package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/egress"
)

// A Store keeps calls in Postgres. It is safe for concurrent use.
type Store struct {
	Pool *pgxpool.Pool
	// Dial is the pool of what calls wait for while they are dialled; nil is Pool.
	Dial *pgxpool.Pool
	// ExpireAfter is how long a call may wait in the dial queue; 0 means 15 min.
	ExpireAfter time.Duration
	// HomeFor is how long an event waits for the node that holds its files;
	// 0 means 10 min.
	HomeFor time.Duration
	// Anywhere are the steps that others follow in place of a node that does not
	// come for its events within 30 s.
	Anywhere []string
	// Scan is how many calls a page of a list looks at for those that pass its
	// filter; 0 means 1,000.
	Scan int
	// Reach is where tools may be served from, and Asks asks there.
	Reach egress.Rules
	Asks  *http.Client

	together together
	// Undo, where set, is asked about a call that was claimed and of which nothing
	// has left: whether it takes back that the call was ever made. The call is
	// deleted then, else it goes back to the queue.
	Undo func(ctx context.Context, tx pgx.Tx, callID string) (bool, error)
}

// The channels of the wake-up bell.
const (
	BellQueue  = "parley_queue"  // something may be claimed
	BellEnds   = "parley_ends"   // a call was asked to end
	BellEvents = "parley_events" // an event was written
)

// columns of a call, as scanCall reads them; the table is c, the agent a.
const columns = `c.id, c.org_id, c.call_type, c.status, c.agent_id, coalesce(a.name, c.agent_name), c.agent_version,
	c.to_number, c.from_number, c.dial_number, c.trunk_id, c.route_id,
	coalesce(c.campaign_id, ''), coalesce(c.contact_id, ''), coalesce(c.import_id, ''), coalesce(c.external_id, ''),
	c.attempt, c.name, c.metadata, c.variables, c.ring_seconds, c.max_duration_seconds, c.voicemail, c.disclosure, c.opt_out,
	c.created_at, c.dialed_at, c.ringing_at, c.answered_at, c.ended_at,
	coalesce(c.answered_by, ''), coalesce(c.disconnection_reason, ''), coalesce(c.hangup_by, ''),
	coalesce(c.sip_status, 0), coalesce(c.sip_reason, ''), c.transfer, c.quality, c.amd,
	c.recording_status, coalesce(c.recording_key, ''), c.call_analysis, c.analysis_status, c.analysis_error`

const fromCalls = ` FROM calls c LEFT JOIN agents a ON a.org_id = c.org_id AND a.id = c.agent_id `

func scanCall(row pgx.Row, more ...any) (control.Call, error) {
	var c control.Call
	var metadata, variables []byte
	var ring, longest int
	var dialed, ringing, answered, ended *time.Time
	err := row.Scan(append([]any{
		&c.ID, &c.OrgID, &c.Type, &c.Status, &c.AgentID, &c.AgentName, &c.AgentVersion,
		&c.To, &c.From, &c.DialNumber, &c.TrunkID, &c.RouteID,
		&c.CampaignID, &c.ContactID, &c.ImportID, &c.ExternalID,
		&c.Attempt, &c.Name, &metadata, &variables, &ring, &longest, &c.Voicemail, &c.Disclosure, &c.OptOut,
		&c.CreatedAt, &dialed, &ringing, &answered, &ended,
		&c.AnsweredBy, &c.Reason, &c.HangupBy,
		&c.SIPStatus, &c.SIPReason, &c.Transfer, &c.Quality, &c.AMD,
		&c.RecordingStatus, &c.RecordingKey, &c.Analysis, &c.AnalysisStatus, &c.AnalysisError,
	}, more...)...)
	if err != nil {
		return control.Call{}, err
	}
	if err := errors.Join(exact(metadata, &c.Metadata), exact(variables, &c.Variables)); err != nil {
		return control.Call{}, err
	}
	c.RingFor = time.Duration(ring) * time.Second
	c.MaxDuration = time.Duration(longest) * time.Second
	c.DialedAt, c.RingingAt, c.AnsweredAt, c.EndedAt = orZero(dialed), orZero(ringing), orZero(answered), orZero(ended)
	return c, nil
}

// exact decodes JSON and leaves its numbers as they are written.
func exact(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// orNull makes a zero value NULL.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Call returns a call of an organization, or a refusal with CodeCallNotFound.
// An empty organization stands for all of them, erased calls included.
func (s *Store) Call(ctx context.Context, orgID, id string) (control.Call, error) {
	return callIn(ctx, s.Pool, orgID, id)
}

func callIn(ctx context.Context, q db.Querier, orgID, id string) (control.Call, error) {
	c, err := scanCall(q.QueryRow(ctx, "SELECT "+columns+fromCalls+"WHERE c.id = $1 AND ($2 = '' OR c.org_id = $2 AND c.erased_at IS NULL)", id, orgID))
	if errors.Is(err, pgx.ErrNoRows) {
		return control.Call{}, NotFound()
	}
	if err != nil {
		return control.Call{}, fmt.Errorf("read call: %w", err)
	}
	return c, nil
}

// Recording returns under which key a call's recording lies, empty where there is
// none, and when the call ended. Whose call it is, its signed link tells; of one
// that was erased there is none.
func (s *Store) Recording(ctx context.Context, callID string) (key string, ended time.Time, err error) {
	var at *time.Time
	err = s.Pool.QueryRow(ctx, "SELECT coalesce(recording_key, ''), ended_at FROM calls WHERE id = $1 AND erased_at IS NULL", callID).Scan(&key, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", time.Time{}, NotFound()
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("read recording: %w", err)
	}
	return key, orZero(at), nil
}

// NotFound is the refusal for calls that do not exist or belong to others.
func NotFound() error { return control.Refuse(control.CodeCallNotFound, "no such call") }

// Whole returns a call of an organization with what was said in it, by one
// question to the database; else it is like Call.
func (s *Store) Whole(ctx context.Context, orgID, id string) (control.Call, control.Words, error) {
	var lines, turns []string
	c, err := scanCall(s.Pool.QueryRow(ctx, "SELECT "+columns+`,
		(SELECT array_agg(item::text ORDER BY n) FROM call_lines WHERE call_id = c.id),
		(SELECT array_agg(item::text ORDER BY n) FROM call_turns WHERE call_id = c.id)`+
		fromCalls+"WHERE c.id = $1 AND ($2 = '' OR c.org_id = $2 AND c.erased_at IS NULL)", id, orgID), &lines, &turns)
	if errors.Is(err, pgx.ErrNoRows) {
		return control.Call{}, control.Words{}, NotFound()
	}
	if err != nil {
		return control.Call{}, control.Words{}, fmt.Errorf("read call: %w", err)
	}
	w := control.Words{Lines: make([]pipeline.Line, len(lines)), Turns: make([]json.RawMessage, len(turns))}
	for i, text := range lines {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return control.Call{}, control.Words{}, fmt.Errorf("read transcript: %w", err)
		}
		w.Lines[i] = pipeline.Line(l)
	}
	for i, text := range turns {
		w.Turns[i] = json.RawMessage(text)
	}
	return c, w, nil
}

// Words returns what was said in a call. It does not ask whose call it is.
func (s *Store) Words(ctx context.Context, callID string) (control.Words, error) {
	_, w, err := s.Whole(ctx, "", callID)
	return w, err
}

// Turns returns the items of the turns of an organization's call, as
// GET /v1/calls/{id}/turns shows them.
func (s *Store) Turns(ctx context.Context, orgID, callID string) ([]json.RawMessage, error) {
	var turns []json.RawMessage
	err := s.Pool.QueryRow(ctx, `
		SELECT ARRAY(SELECT item FROM call_turns WHERE call_id = c.id ORDER BY n)
		FROM calls c WHERE c.id = $1 AND c.org_id = $2 AND c.erased_at IS NULL`, callID, orgID).Scan(&turns)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, NotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("read turns: %w", err)
	}
	return turns, nil
}

// dial is where calls that are dialled are written.
func (s *Store) dial() *pgxpool.Pool {
	if s.Dial == nil {
		return s.Pool
	}
	return s.Dial
}
