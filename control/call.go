// Package control places calls and keeps their records: the durable dial queue, the runner that takes a call from its
// claim to its end, the settlement of calls of lost nodes, and the events of calls.
package control

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// Status is the status of a call.
type Status string

// Statuses.
const (
	Queued  Status = "queued"  // accepted, not ringing yet
	Ringing Status = "ringing" // the callee's phone rings
	Ongoing Status = "ongoing" // the callee answered
	Ended   Status = "ended"   // after a conversation
	Failed  Status = "failed"  // without a conversation
)

// Types of calls.
const (
	Phone = "phone"
	Web   = "web" // joined by a browser with a token; never rings or fails
)

// Over reports whether the call has ended or failed.
func (s Status) Over() bool { return s == Ended || s == Failed }

// Reason is the disconnection reason of a call.
type Reason string

// Reasons in addition to those of a conversation (pipeline.Reason) and of a leg (media.Cause).
const (
	ReasonShutdown      Reason = "shutdown"
	ReasonNodeLost      Reason = "node_lost"
	ReasonCanceled      Reason = "cancelled"
	ReasonUnknown       Reason = "unknown_after_restart"
	ReasonQueueExpired  Reason = "queue_expired"
	ReasonDNCBlocked    Reason = "dnc_blocked"
	ReasonCallerNumber  Reason = "caller_number_unavailable" // the route may no longer show it
	ReasonInternalError Reason = "internal_error"
	// ReasonNotConfigured: the server lacks a provider of the agent.
	ReasonNotConfigured Reason = "provider_not_configured"
	ReasonAgentError           = Reason(pipeline.AgentError)
	ReasonNeverJoined   Reason = "never_joined" // of web calls
)

// Side is the party that ended a call.
type Side string

// Sides.
const (
	SideCallee  Side = "callee"
	SideAgent   Side = "agent"
	SideAPI     Side = "api"
	SideSystem  Side = "system"
	SideCarrier Side = "carrier"
)

// RecordingStatus is the status of a call's recording.
type RecordingStatus string

// Recording statuses.
const (
	RecordingNone       RecordingStatus = "none"        // not started
	RecordingInProgress RecordingStatus = "in_progress" // during the call
	RecordingFinalizing RecordingStatus = "finalizing"  // after the call
	RecordingReady      RecordingStatus = "ready"
	RecordingFailed     RecordingStatus = "failed"
	RecordingDisabled   RecordingStatus = "disabled"
)

// Call is the record of one call. Zero values mean "not yet" or "unknown".
type Call struct {
	ID, OrgID    string
	Type         string // Phone or Web
	Status       Status
	AgentID      string
	AgentName    string // the agent's current name
	AgentVersion int

	To         string // normalized digits
	From       string
	DialNumber string // To with the dial prefix, as sent to the carrier
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
	Disclosure  string // spoken before the greeting; empty means none
	OptOut      OptOutOptions

	CreatedAt, DialedAt, RingingAt, AnsweredAt, EndedAt time.Time

	AnsweredBy string
	Reason     Reason
	HangupBy   Side
	SIPStatus  int
	SIPReason  string
	Transfer   json.RawMessage
	Quality    json.RawMessage // an AudioQuality
	Usage      json.RawMessage // a list of pipeline.EngineUsage
	AMD        json.RawMessage // basis of AnsweredBy: confidence, evidence, amd_ms

	RecordingStatus RecordingStatus
	Truncated       bool   // the recording holds only the beginning of the call
	RecordingKey    string // key in the bucket
	Analysis        json.RawMessage
	AnalysisStatus  string
	AnalysisError   string // reason of a failed analysis
}

// EndedByFault reports whether the call was answered and ended by a fault of this service.
func (c *Call) EndedByFault() bool {
	return !c.AnsweredAt.IsZero() && (c.Reason == ReasonAgentError || c.Reason == ReasonInternalError)
}

// Transcript holds the stored lines of a call and the metrics of its turns.
type Transcript struct {
	Lines []pipeline.Line
	Turns []json.RawMessage // items of GET /v1/calls/{id}/turns
}

// HasCompleteSentence reports whether the agent finished a sentence. The lines hold only words that were played.
func (w Transcript) HasCompleteSentence() bool {
	return slices.ContainsFunc(w.Lines, func(l pipeline.Line) bool {
		return l.Role == pipeline.RoleAgent && l.Text != "" && (!l.Interrupted || strings.ContainsAny(l.Text, ".?!…。？！"))
	})
}
