package pipeline

import (
	"context"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Brief is what an agent needs to know for one call.
type Brief struct {
	CallID string
	// Disclosure is what the law wants said first. It is said to its end, whatever
	// the party says or does, and again where a machine was told it; empty is none.
	Disclosure  string
	Greeting    string // spoken first; empty lets the caller begin
	Prompt      string // the model's instructions
	Language    string // BCP 47
	Engines     Engines
	AnsweredAt  time.Time     // t0 of the greeting: the 200 OK
	MaxDuration time.Duration // of the conversation; 0 for no limit
	Tools       []Function    // that the model may call
	Limits      Limits
	// Pronunciation is how words are spoken that a voice would get wrong.
	Pronunciation map[string]string
	// Bridge, where set, reaches a number on a leg of its own, for a transfer
	// that the party's side does not make.
	Bridge func(ctx context.Context, number string) (media.Leg, error)
	// Voicemail is what to do when a machine answers; empty: nobody looks who
	// answers. VoicemailMessage is what to leave; empty has the model say.
	Voicemail        Voicemail
	VoicemailMessage string
	// OptOuts is how the party has itself not called again.
	OptOuts OptOuts
	// Leave, where set, has the agent say goodbye and go once it is closed, for a
	// reason that is not the party's: the call is Stopped, within 12 s.
	Leave <-chan struct{}
	// Watch, where set, is told of lines and turns as they come.
	Watch Watcher
}

// OptOuts are how a party has itself not called again: by saying so in English, by
// phrases, by a key, or by the model's tool.
type OptOuts struct {
	Key     string   // that is pressed for it, alone; empty for none
	Phrases []string // in other languages
	// Keep keeps that the party asked, and returns when that cannot be lost any
	// more. It may be asked twice. nil: nobody listens for it.
	Keep func(ctx context.Context, o OptOut) error
}

// An OptOut is that a party asked not to be called again.
type OptOut struct {
	Source OptOutSource
	Said   string    // the words that asked; empty for a key
	At     time.Time // when it was noticed
}

// An OptOutSource is how it is known that a party asked not to be called again.
type OptOutSource string

// How it is known.
const (
	OptOutKey      OptOutSource = "key"
	OptOutSpeech   OptOutSource = "speech"
	OptOutTool     OptOutSource = "agent"    // the model said so
	OptOutAnalysis OptOutSource = "analysis" // of the call that is over
)

// A Voicemail is what to do when a machine answers.
type Voicemail string

// What to do when a machine answers.
const (
	VoicemailHangup   Voicemail = "hangup"
	VoicemailLeave    Voicemail = "leave_message"
	VoicemailContinue Voicemail = "continue" // talk to it
)

// Engines are the providers that an agent hears, thinks and speaks with.
type Engines struct {
	ASR Engine `json:"asr"`
	LLM Engine `json:"llm"`
	TTS Engine `json:"tts"`
}

// An Engine is one provider and what it is asked for.
type Engine struct {
	Provider string `json:"provider"`        // "deepgram", "openai", "elevenlabs", "espeak", "fake" and others
	Model    string `json:"model,omitempty"` // the provider's own name
	Voice    string `json:"voice,omitempty"` // the provider's own name; speech only
	// Fallback is asked where this one fails. It has none of its own.
	Fallback *Engine `json:"fallback,omitempty"`
}

// A Watcher is told of a conversation as it happens. Its methods must not
// block: the conversation waits for them.
type Watcher interface {
	Said(Line)
	Turned(Turn)
}

// A Follower is what a Watcher may be, too: one that is told of what passes. Its
// methods must not block either.
type Follower interface {
	// Stands is told who has the floor, each time that it changes: one of
	// "listening", "hearing", "closing", "thinking", "speaking", "paused" and "held".
	Stands(state string)
	// Saying is told the words of a line that goes on, which may still change.
	Saying(role Role, text string, turn int)
}

// A Role is who said a line.
type Role string

// Roles.
const (
	RoleAgent  Role = "agent"
	RoleCaller Role = "caller"
	RoleTool   Role = "tool" // a tool call: in messages its result, in lines the call too
	RoleNote   Role = "note" // what happened beside the words: keys that were pressed; in messages only
)

// A Line is what one side said in one go. The agent's lines hold only words
// that were played to the caller. Times count from the answer.
type Line struct {
	Role        Role
	Text        string
	Start, End  time.Duration
	Turn        int
	Interrupted bool
	Words       []Word
}

// An Outcome is how a conversation went.
type Outcome struct {
	Lines  []Line
	Turns  []Turn
	Reason Reason
	Err    error // with AgentError: what broke
	// AnsweredBy is who answered, nil where nobody looked.
	AnsweredBy *AnsweredBy
	// Transfer is the handing over that was tried last, nil where none was.
	Transfer *Handover
}

// A Handover is the handing over of a party to somebody else.
type Handover struct {
	To       string
	Bridged  bool // by a second leg of ours; else by the party's side
	Answered bool
	At       time.Time // when it was over
}

// AnsweredBy is who answered a call, and how that is known.
type AnsweredBy struct {
	Party      string        // "human", "voicemail", "ivr", "fax" or "unknown"
	Confidence float64       // 0 to 1
	Evidence   string        // "short_greeting", "phrase: after the tone", "beep", …
	After      time.Duration // the answer: amd_ms
}

// A Reason is why a conversation ended.
type Reason string

// Reasons.
const (
	CallerHungUp Reason = "callee_hangup" // the party or its carrier ended the leg
	AgentHungUp  Reason = "agent_hangup"
	Stopped      Reason = "api_hangup" // the context ended
	TooLong      Reason = "max_duration"
	Inactive     Reason = "inactivity"
	NoMedia      Reason = "media_timeout"
	AgentError   Reason = "agent_error"
	HandedOver   Reason = "transferred"
	// VoicemailLeft: a message was left on an answering machine.
	VoicemailLeft    Reason = "voicemail_dropped"
	VoicemailReached Reason = "voicemail_reached" // a machine answered, and the agent hung up
	IVRReached       Reason = "ivr_reached"       // a menu did, likewise
)

// EndedBy is why a conversation ended whose context did: the party left, or it was
// told to stop.
func EndedBy(c media.Cause) Reason {
	switch c {
	case media.RemoteHangup:
		return CallerHungUp
	case media.MediaTimeout, media.Expired: // the carrier is gone, whichever way it shows
		return NoMedia
	case media.Transferred:
		return HandedOver
	case media.Failure:
		return AgentError
	default:
		return Stopped
	}
}
