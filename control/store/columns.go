package store

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// CallRow is a row of the table calls.
type CallRow struct {
	control.Call
	RouteN        int64    // sequence number of the call in its subgroup
	CostPerMinute *float64 // rate when the call was registered; nil if the trunk has no rate for the number
	CostNano      *int64   // in billionths of a currency unit; nil before the end of the call
}

// RegisteredColumns are the columns of table calls that are known when a call is registered.
var RegisteredColumns = db.Columns[CallRow]{ //nolint:gochecknoglobals // read-only table
	text("id", func(c *CallRow) *string { return &c.ID }),
	text("org_id", func(c *CallRow) *string { return &c.OrgID }),
	text("call_type", func(c *CallRow) *string { return &c.Type }),
	text("status", func(c *CallRow) *string { return (*string)(&c.Status) }),
	text("agent_id", func(c *CallRow) *string { return &c.AgentID }),
	reading("coalesce(a.name, %s)", text("agent_name", func(c *CallRow) *string { return &c.AgentName })),
	db.Field("agent_version", "int", func(c *CallRow) *int { return &c.AgentVersion }),
	text("to_number", func(c *CallRow) *string { return &c.To }),
	text("from_number", func(c *CallRow) *string { return &c.From }),
	text("dial_number", func(c *CallRow) *string { return &c.DialNumber }),
	text("trunk_id", func(c *CallRow) *string { return &c.TrunkID }),
	text("route_id", func(c *CallRow) *string { return &c.RouteID }),
	optionalText("campaign_id", func(c *CallRow) *string { return &c.CampaignID }),
	optionalText("contact_id", func(c *CallRow) *string { return &c.ContactID }),
	optionalText("import_id", func(c *CallRow) *string { return &c.ImportID }),
	optionalText("external_id", func(c *CallRow) *string { return &c.ExternalID }),
	db.Field("attempt", "int", func(c *CallRow) *int { return &c.Attempt }),
	text("name", func(c *CallRow) *string { return &c.Name }),
	object("metadata", func(c *CallRow) *map[string]any { return &c.Metadata }),
	object("variables", func(c *CallRow) *map[string]any { return &c.Variables }),
	inSeconds("ring_seconds", func(c *CallRow) *time.Duration { return &c.RingFor }),
	inSeconds("max_duration_seconds", func(c *CallRow) *time.Duration { return &c.MaxDuration }),
	text("voicemail", func(c *CallRow) *string { return &c.Voicemail }),
	text("disclosure", func(c *CallRow) *string { return &c.Disclosure }),
	db.Field("opt_out", "jsonb", func(c *CallRow) *control.OptOutOptions { return &c.OptOut }),
	db.Field("created_at", "timestamptz", func(c *CallRow) *time.Time { return &c.CreatedAt }),
	text("recording_status", func(c *CallRow) *string { return (*string)(&c.RecordingStatus) }),
	text("analysis_status", func(c *CallRow) *string { return &c.AnalysisStatus }),
	db.Field("route_n", "bigint", func(c *CallRow) *int64 { return &c.RouteN }).WriteOnly(),
	db.Field("cost_per_minute", "float8", func(c *CallRow) **float64 { return &c.CostPerMinute }).WriteOnly(),
}

// resultColumns are the columns of table calls that are set when a call ends. resultRow fills them.
var resultColumns = db.Columns[CallRow]{ //nolint:gochecknoglobals // read-only table
	optionalTime("dialed_at", func(c *CallRow) *time.Time { return &c.DialedAt }),
	optionalTime("ringing_at", func(c *CallRow) *time.Time { return &c.RingingAt }),
	optionalTime("answered_at", func(c *CallRow) *time.Time { return &c.AnsweredAt }),
	optionalTime("ended_at", func(c *CallRow) *time.Time { return &c.EndedAt }),
	optionalText("answered_by", func(c *CallRow) *string { return &c.AnsweredBy }),
	optionalText("disconnection_reason", func(c *CallRow) *string { return (*string)(&c.Reason) }),
	optionalText("hangup_by", func(c *CallRow) *string { return (*string)(&c.HangupBy) }),
	optional("0", db.Field("sip_status", "int", func(c *CallRow) *int { return &c.SIPStatus })),
	optionalText("sip_reason", func(c *CallRow) *string { return &c.SIPReason }),
	rawJSON("transfer", func(c *CallRow) *json.RawMessage { return &c.Transfer }),
	rawJSON("quality", func(c *CallRow) *json.RawMessage { return &c.Quality }),
	rawJSON("usage", func(c *CallRow) *json.RawMessage { return &c.Usage }),
	db.Field("cost_nano", "bigint", func(c *CallRow) **int64 { return &c.CostNano }).WriteOnly(),
	rawJSON("costs", func(c *CallRow) *json.RawMessage { return &c.Cost }),
	rawJSON("amd", func(c *CallRow) *json.RawMessage { return &c.AMD }),
	db.Field("recording_truncated", "boolean", func(c *CallRow) *bool { return &c.Truncated }),
}

// laterColumns are the columns of table calls that are set after the end of a call, or that control.Call lacks.
var laterColumns = db.Columns[CallRow]{ //nolint:gochecknoglobals // read-only table
	optionalText("recording_key", func(c *CallRow) *string { return &c.RecordingKey }),
	rawJSON("call_analysis", func(c *CallRow) *json.RawMessage { return &c.Analysis }),
	text("analysis_error", func(c *CallRow) *string { return &c.AnalysisError }),
	{Name: "end_requested_at"},
	{Name: "erased_at"},
	{Name: "duration_class"},
}

// callColumns are all columns of table calls. endColumns are the columns that endCall sets.
//
//nolint:gochecknoglobals // read-only tables
var (
	callColumns = slices.Concat(RegisteredColumns, resultColumns, laterColumns)
	endColumns  = slices.Concat(RegisteredColumns.Only("status", "recording_status"), resultColumns).
			WriteAs("dialed_at", "coalesce(%s, c.dialed_at)").WriteAs("ringing_at", "coalesce(%s, c.ringing_at)").
			WriteAs("answered_at", "coalesce(%s, c.answered_at)").
			WriteAs("recording_status", "CASE WHEN c.recording_status = 'disabled' THEN 'disabled' ELSE %s END")
)

// resultRow returns a row with the columns of a call's result, without its cost.
func resultRow(f *control.CallResult) CallRow {
	return CallRow{Call: control.Call{
		Status: f.Status, RecordingStatus: f.Recording,
		DialedAt: f.DialedAt, RingingAt: f.RingingAt, AnsweredAt: f.AnsweredAt, EndedAt: f.EndedAt,
		AnsweredBy: f.AnsweredBy, Reason: f.Reason, HangupBy: f.HangupBy, SIPStatus: f.SIPStatus, SIPReason: f.SIPReason,
		Transfer: f.Transfer, Quality: f.Quality, Usage: f.Usage, AMD: f.AMD, Truncated: f.Truncated,
	}}
}

// selectCall lists the expressions that scanCall reads. In SQL, c is the call and a is its agent.
var selectCall = callColumns.Select("c") //nolint:gochecknoglobals // made once

const fromCalls = ` FROM calls c LEFT JOIN agents a ON a.org_id = c.org_id AND a.id = c.agent_id `

func scanCall(row pgx.Row, more ...any) (control.Call, error) {
	var c CallRow
	if err := row.Scan(append(callColumns.Targets(&c), more...)...); err != nil {
		return control.Call{}, err
	}
	return c.Call, nil
}

// AttemptRow is a row of table attempts. A node inserts it together with a lease.
type AttemptRow struct {
	control.Lease
	OrgID, TrunkID, RouteID, Home string
	State                         control.AttemptState
	Leg                           string // "callee" or "transfer"
	Number                        string // digits of the transfer target; empty for the leg to the callee
	LeaseFor                      time.Duration
}

// NewAttempt returns the first attempt of a call, claimed by node p.
func NewAttempt(callID string, p control.NodeID, lease time.Duration) AttemptRow {
	return AttemptRow{
		Lease: control.Lease{AttemptID: control.NewID("att_", time.Now()), CallID: callID, Owner: p.Owner, Epoch: 1},
		Home:  p.Home, State: control.Claimed, Leg: "callee", LeaseFor: lease,
	}
}

// AttemptColumns are all columns of the table attempts.
var AttemptColumns = db.Columns[AttemptRow]{ //nolint:gochecknoglobals // read-only table
	text("id", func(a *AttemptRow) *string { return &a.AttemptID }),
	text("call_id", func(a *AttemptRow) *string { return &a.CallID }),
	text("org_id", func(a *AttemptRow) *string { return &a.OrgID }),
	text("trunk_id", func(a *AttemptRow) *string { return &a.TrunkID }),
	text("subgroup_id", func(a *AttemptRow) *string { return &a.RouteID }),
	{Name: "attempt_no", Type: "int", Write: "1"},
	text("state", func(a *AttemptRow) *string { return (*string)(&a.State) }),
	text("owner", func(a *AttemptRow) *string { return &a.Owner }),
	text("home", func(a *AttemptRow) *string { return &a.Home }),
	db.Field("epoch", "bigint", func(a *AttemptRow) *int64 { return &a.Epoch }),
	{Name: "claimed_at", Type: "timestamptz", Write: "clock_timestamp()"},
	writing("clock_timestamp() + %s", db.Field("lease_until", "interval", func(a *AttemptRow) *time.Duration { return &a.LeaseFor })),
	text("leg", func(a *AttemptRow) *string { return &a.Leg }),
	text("number", func(a *AttemptRow) *string { return &a.Number }),
	{Name: "created_at"}, // the database sets it
}

var insertAttemptSQL = AttemptColumns.Insert("attempts", 1) //nolint:gochecknoglobals // made once

func text[T any](name string, field func(*T) *string) db.Column[T] {
	return db.Field(name, "text", field)
}

// optionalText returns a text column that is NULL for the empty string.
func optionalText[T any](name string, field func(*T) *string) db.Column[T] {
	return optional("''", text(name, field))
}

// optional returns column c with NULL in place of the value none.
func optional[T any](none string, c db.Column[T]) db.Column[T] {
	return writing("nullif(%s, "+none+")", reading("coalesce(%s, "+none+")", c))
}

func reading[T any](as string, c db.Column[T]) db.Column[T] {
	c.Read = as
	return c
}

func writing[T any](as string, c db.Column[T]) db.Column[T] {
	c.Write = as
	return c
}

// object returns a column that holds a JSON object. Numbers keep their digits as written.
func object[T any](name string, field func(*T) *map[string]any) db.Column[T] {
	return db.Converted(name, "json", field, func(m map[string]any) map[string]any { return m },
		func(m *map[string]any) any { return (*exactJSON)(m) })
}

func rawJSON[T any](name string, field func(*T) *json.RawMessage) db.Column[T] {
	return db.Field(name, "jsonb", field)
}

func inSeconds[T any](name string, field func(*T) *time.Duration) db.Column[T] {
	return db.Converted(name, "int", field, func(d time.Duration) int { return int(d / time.Second) },
		func(d *time.Duration) any { return (*seconds)(d) })
}

// optionalTime returns a time column that is NULL for the zero time.
func optionalTime[T any](name string, field func(*T) *time.Time) db.Column[T] {
	return db.Converted(name, "timestamptz", field, orNull, func(t *time.Time) any { return (*zeroTime)(t) })
}

// exactJSON scans a JSON object. Numbers keep their digits as written.
type exactJSON map[string]any

// ScanBytes implements pgtype.BytesScanner.
func (j *exactJSON) ScanBytes(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode((*map[string]any)(j))
}

// seconds scans a whole number of seconds into a duration.
type seconds time.Duration

// ScanInt64 implements pgtype.Int64Scanner.
func (s *seconds) ScanInt64(n pgtype.Int8) error {
	*s = seconds(time.Duration(n.Int64) * time.Second)
	return nil
}

// zeroTime scans a time, and NULL as the zero time.
type zeroTime time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (z *zeroTime) ScanTimestamptz(t pgtype.Timestamptz) error {
	*z = zeroTime(t.Time)
	return nil
}
