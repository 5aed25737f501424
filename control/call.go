// Package control places calls and keeps their records. A node claims calls from the durable dial queue, and the
// runner makes each claimed call and writes its result. If a node is lost, another node settles its calls: it ends
// them or returns them to the queue.
package control

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// Status is the status of a call.
type Status string

// Statuses of a call.
const (
	Queued  Status = "queued"  // accepted, but not ringing yet
	Ringing Status = "ringing" // the callee's phone is ringing
	Ongoing Status = "ongoing" // the call is answered
	Ended   Status = "ended"   // over, after a conversation
	Failed  Status = "failed"  // over, without a conversation
)

// Types of calls.
const (
	Phone = "phone"
	Web   = "web" // a browser joins the call with a token; it never rings and never fails
)

// Over reports whether the call has ended or failed.
func (s Status) Over() bool { return s == Ended || s == Failed }

// Reason says why a call ended.
type Reason string

// Reasons that the system adds. A Reason may also be a pipeline.Reason (why a conversation ended) or a media.Cause
// (why a leg failed or ended).
const (
	ReasonShutdown      Reason = "shutdown"
	ReasonNodeLost      Reason = "node_lost"
	ReasonCanceled      Reason = "cancelled"
	ReasonUnknown       Reason = "unknown_after_restart"
	ReasonQueueExpired  Reason = "queue_expired"
	ReasonDNCBlocked    Reason = "dnc_blocked"
	ReasonCallerNumber  Reason = "caller_number_unavailable" // the route no longer permits the caller number
	ReasonInternalError Reason = "internal_error"
	// ReasonNotConfigured means that the server lacks a provider of the agent.
	ReasonNotConfigured Reason = "provider_not_configured"
	ReasonAgentError           = Reason(pipeline.AgentError)
	ReasonNeverJoined   Reason = "never_joined" // nobody joined the web call
)

// Side is the side that ended a call.
type Side string

// Sides that may end a call.
const (
	SideCallee  Side = "callee"
	SideAgent   Side = "agent"
	SideAPI     Side = "api"
	SideSystem  Side = "system"
	SideCarrier Side = "carrier"
)

// RecordingStatus is the status of a call's recording.
type RecordingStatus string

// Statuses of a recording.
const (
	RecordingNone       RecordingStatus = "none"        // recording has not started
	RecordingInProgress RecordingStatus = "in_progress" // the call is being recorded
	RecordingFinalizing RecordingStatus = "finalizing"  // the call is over and the recording is being stored
	RecordingReady      RecordingStatus = "ready"
	RecordingFailed     RecordingStatus = "failed"
	RecordingDisabled   RecordingStatus = "disabled"
)

// Call is the record of one call. A zero value means "not yet" or "unknown".
type Call struct {
	ID, OrgID    string
	Type         string // Phone or Web
	Status       Status
	AgentID      string
	AgentName    string // current name of the agent
	AgentVersion int

	To         string // digits of the called number
	From       string
	DialNumber string // To with the dial prefix, as the carrier receives it
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
	Disclosure  string // text that is spoken before the greeting; empty means none
	OptOut      OptOutOptions

	CreatedAt, DialedAt, RingingAt, AnsweredAt, EndedAt time.Time

	AnsweredBy string
	Reason     Reason
	HangupBy   Side
	SIPStatus  int
	SIPReason  string
	Transfer   json.RawMessage
	Quality    json.RawMessage // JSON of an AudioQuality
	Usage      json.RawMessage // JSON of a []pipeline.EngineUsage
	Cost       json.RawMessage // JSON of a pricing.Cost
	AMD        json.RawMessage // how AnsweredBy was determined: confidence, evidence, amd_ms

	RecordingStatus RecordingStatus
	Truncated       bool   // the recording contains only the beginning of the call
	RecordingKey    string // key of the recording in the bucket
	Analysis        json.RawMessage
	AnalysisStatus  string
	AnalysisError   string // why the analysis failed
}

// Since returns the time of the answer, or else of the dialing or creation. The timer of an active call counts from it.
func (c *Call) Since() time.Time { return cmp.Or(c.AnsweredAt, c.DialedAt, c.CreatedAt) }

// EndedByFault reports whether the call was answered and then ended because of a fault of Parley or a provider.
func (c *Call) EndedByFault() bool {
	return !c.AnsweredAt.IsZero() && (c.Reason == ReasonAgentError || c.Reason == ReasonInternalError)
}

// Transcript is a call's stored lines and the metrics of its turns.
type Transcript struct {
	Lines []pipeline.Line
	Turns []json.RawMessage // items of GET /v1/calls/{id}/turns
}

// HasCompleteSentence reports whether the callee heard a complete sentence of the agent. The lines contain only words
// that were played.
func (w Transcript) HasCompleteSentence() bool {
	return slices.ContainsFunc(w.Lines, func(l pipeline.Line) bool {
		return l.Role == pipeline.RoleAgent && l.Text != "" && (!l.Interrupted || strings.ContainsAny(l.Text, ".?!…。？！"))
	})
}
