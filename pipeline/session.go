package pipeline

import (
	"context"
	"time"

	"github.com/parley-voice/parley/media"
)

// A SessionConfig configures the agent for one call.
type SessionConfig struct {
	CallID string
	// Disclosure is the statement required by law. It is played first and in full,
	// whatever the callee does, and again if a machine received it. Empty means none.
	Disclosure  string
	Greeting    string // words that the agent says first; empty if the caller speaks first
	Prompt      string // instructions for the model
	Language    string // language of the agent, BCP 47
	Engines     Engines
	AnsweredAt  time.Time     // when the 200 OK came; the turn of the greeting starts then
	MaxDuration time.Duration // longest conversation; 0 for no limit
	Tools       []Function    // tools that the model may call
	Limits      Limits
	// Pronunciation maps words to spoken forms for the voice.
	Pronunciation map[string]string
	// Patience is how long the agent waits before it answers; empty means Balanced.
	Patience Patience
	// Bridge, if set, calls a number on a second leg. It is used for transfers that the callee's
	// carrier does not perform.
	Bridge func(ctx context.Context, number string) (media.Leg, error)
	// Voicemail is the policy for answering machines; empty disables detection.
	// VoicemailMessage is the message to leave; if empty, the model writes it.
	Voicemail        Voicemail
	VoicemailMessage string
	// OptOuts configures detection of do-not-call requests.
	OptOuts OptOutConfig
	// Drain, if set, ends the call within 12 s once it is closed: the agent says goodbye,
	// and the reason is Stopped.
	Drain <-chan struct{}
	// Typed, if set, delivers words that the caller sends in writing.
	Typed <-chan string
	// Observer, if set, receives lines and turns as they occur.
	Observer Observer
}

// OptOutConfig configures how a callee can request no further calls. English phrases are always
// detected, and the model always has a tool for it.
type OptOutConfig struct {
	Key     string   // key that requests no further calls if it is pressed alone; empty for none
	Phrases []string // phrases in other languages
	// Store stores the request durably before it returns. It may be called twice. nil
	// disables detection.
	Store func(ctx context.Context, o OptOut) error
}

// An OptOut is a callee's request not to be called again.
type OptOut struct {
	Source OptOutSource
	Text   string    // words of the request; empty for a key
	At     time.Time // when the request was detected
}

// An OptOutSource is the way an opt-out was detected.
type OptOutSource string

// Sources of opt-outs.
const (
	OptOutKey      OptOutSource = "key"
	OptOutSpeech   OptOutSource = "speech"
	OptOutTool     OptOutSource = "agent"    // the model called the tool
	OptOutAnalysis OptOutSource = "analysis" // found by the analysis after the call
)

// A Patience is how long an agent waits in a caller's pause before it answers.
type Patience string

// Patiences, shortest wait first.
const (
	Quick    Patience = "quick"
	Balanced Patience = "balanced"
	Careful  Patience = "careful"
)

// Patiences lists the accepted values.
func Patiences() []string { return []string{string(Quick), string(Balanced), string(Careful)} }

// A Voicemail is the policy for answering machines.
type Voicemail string

// Policies for answering machines.
const (
	VoicemailHangup   Voicemail = "hangup"
	VoicemailLeave    Voicemail = "leave_message"
	VoicemailContinue Voicemail = "continue" // the agent talks to the machine
)

// An Observer receives events of a conversation. Its methods must not block: the
// conversation waits for them.
type Observer interface {
	OnLine(Line)
	OnTurn(Turn)
}

// A StateObserver is an optional interface of an Observer. Its methods must not block.
type StateObserver interface {
	// OnState receives each change of the turn state: "listening", "hearing", "closing",
	// "thinking", "speaking", "paused" or "held".
	OnState(state string)
	// OnPartial receives the words so far of a line in progress; they may still change.
	OnPartial(role Role, text string, turn int)
}

// A Role is the speaker of a line.
type Role string

// Roles.
const (
	RoleAgent  Role = "agent"
	RoleCaller Role = "caller"
	RoleTool   Role = "tool" // in a Message, the result of a tool call; in a Line, the call and its result
	RoleNote   Role = "note" // an event such as pressed keys; only in messages
)

// A Line is one uninterrupted contribution of one side. Lines of the agent contain only
// words played to the caller. Times count from the answer.
type Line struct {
	Role        Role
	Text        string
	Start, End  time.Duration
	Turn        int
	Interrupted bool
	Words       []Word
}

// An Outcome is the result of a conversation.
type Outcome struct {
	Lines  []Line
	Turns  []Turn
	Reason Reason
	Err    error // the latest failure; with AgentError, the one that ended the conversation
	// AnsweredBy is nil if detection is off.
	AnsweredBy *AnsweredBy
	// Transfer is the last attempted transfer, or nil.
	Transfer *TransferResult
	// Usage is what the call used of each provider.
	Usage []EngineUsage
}

// A TransferResult is the result of a transfer attempt.
type TransferResult struct {
	To       string
	Bridged  bool // transferred by a second leg; otherwise by the callee's carrier (REFER)
	Answered bool
	At       time.Time // when the attempt ended
}

// AnsweredBy is the result of answering machine detection.
type AnsweredBy struct {
	Party      string        // "human", "voicemail", "ivr", "fax" or "unknown"
	Confidence float64       // 0 to 1
	Evidence   string        // such as "short_greeting", "phrase: after the tone" or "beep"
	After      time.Duration // time from the answer of the call to the decision; reported as amd_ms
}

// A Reason is why a conversation ended.
type Reason string

// Reasons.
const (
	CallerHungUp       Reason = "callee_hangup" // the callee or its carrier ended the leg
	AgentHungUp        Reason = "agent_hangup"
	Stopped            Reason = "api_hangup" // the context of the conversation ended, or the service stops
	MaxDurationReached Reason = "max_duration"
	Inactive           Reason = "inactivity"
	NoMedia            Reason = "media_timeout"
	AgentError         Reason = "agent_error"
	Transferred        Reason = "transferred"
	// VoicemailLeft means that a message was left on an answering machine.
	VoicemailLeft    Reason = "voicemail_dropped"
	VoicemailReached Reason = "voicemail_reached" // a machine answered and the agent hung up
	IVRReached       Reason = "ivr_reached"       // a menu answered and the agent hung up
)

// ReasonOf returns why a conversation ended whose leg ended with cause c.
func ReasonOf(c media.Cause) Reason {
	switch c {
	case media.RemoteHangup:
		return CallerHungUp
	case media.MediaTimeout, media.Expired: // the carrier is unreachable in both cases
		return NoMedia
	case media.Transferred:
		return Transferred
	case media.Failure:
		return AgentError
	default:
		return Stopped
	}
}
