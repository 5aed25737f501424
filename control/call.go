// Package control places calls and keeps their records: the durable dial
// queue, the runner that takes one call from its claim to its end, the
// settlement of what crashed nodes left, and the events that others follow.
package control

import (
	"encoding/json"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// A Status is where a call stands.
type Status string

// Statuses.
const (
	Queued  Status = "queued"  // accepted; nothing rings yet
	Ringing Status = "ringing" // the party's phone rings
	Ongoing Status = "ongoing" // the party answered
	Ended   Status = "ended"   // a conversation took place
	Failed  Status = "failed"  // none did
)

// Types of calls.
const (
	Phone = "phone"
	Web   = "web" // of a browser that joins by a token; it never rings, and never fails
)

// Over reports whether nothing happens to the call any more.
func (s Status) Over() bool { return s == Ended || s == Failed }

// A Reason is why a call is over.
type Reason string

// Reasons of calls that ended beyond those of a conversation
// (pipeline.Reason), and of calls that failed beyond those of a leg
// (media.Cause).
const (
	ReasonShutdown      Reason = "shutdown"
	ReasonNodeLost      Reason = "node_lost"
	ReasonCancelled     Reason = "cancelled"
	ReasonUnknown       Reason = "unknown_after_restart"
	ReasonQueueExpired  Reason = "queue_expired"
	ReasonDNCBlocked    Reason = "dnc_blocked"
	ReasonCallerNumber  Reason = "caller_number_unavailable" // its way may not show it any more
	ReasonInternalError Reason = "internal_error"
	ReasonNeverJoined   Reason = "never_joined" // of web calls
)

// A Side is who ended a call.
type Side string

// Sides.
const (
	SideCallee  Side = "callee"
	SideAgent   Side = "agent"
	SideAPI     Side = "api"
	SideSystem  Side = "system"
	SideCarrier Side = "carrier"
)

// A RecordingStatus is where a call's recording stands.
type RecordingStatus string

// Recording statuses.
const (
	RecordingNone       RecordingStatus = "none"        // not begun
	RecordingInProgress RecordingStatus = "in_progress" // the call is on
	RecordingFinalizing RecordingStatus = "finalizing"  // the call is over
	RecordingReady      RecordingStatus = "ready"
	RecordingFailed     RecordingStatus = "failed"
	RecordingDisabled   RecordingStatus = "disabled"
)

// A Call is the record of one call. Zero times and empty strings stand for
// what has not happened or is not known.
type Call struct {
	ID, OrgID    string
	Type         string // Phone or Web
	Status       Status
	AgentID      string
	AgentName    string // as the agent is called now
	AgentVersion int

	To         string // digits, as normalised
	From       string
	DialNumber string // what the carrier is asked for: To with the prefix
	TrunkID    string
	RouteID    string

	CampaignID, ContactID, ImportID, ExternalID string

	Attempt     int
	Name        string
	Metadata    map[string]any
	Variables   map[string]any
	RingFor     time.Duration
	MaxDuration time.Duration
	Voicemail   string
	Disclosure  string // said before the greeting; empty for none
	OptOut      OptOutWays

	CreatedAt, DialedAt, RingingAt, AnsweredAt, EndedAt time.Time

	AnsweredBy string
	Reason     Reason
	HangupBy   Side
	SIPStatus  int
	SIPReason  string
	Transfer   json.RawMessage
	Quality    json.RawMessage // a quality.Quality
	AMD        json.RawMessage // how AnsweredBy is known: confidence, evidence, amd_ms

	RecordingStatus RecordingStatus
	RecordingKey    string // in the bucket
	Analysis        json.RawMessage
	AnalysisStatus  string
	AnalysisError   string // why it failed
}

// Words are what was said in a call and what its turns cost, as stored.
type Words struct {
	Lines []pipeline.Line
	Turns []json.RawMessage // items of GET /v1/calls/{id}/turns
}
