// Package turn decides whose turn it is. It is a pure state machine: what
// happened goes in as an Event, what to do comes out as Actions, each with its
// reason. There is no clock in it; times count from the answer of the call and
// come in with the events, so a log of the events replays to the same actions.
package turn

import "time"

// A Kind is a kind of event.
type Kind string

// Kinds.
const (
	Stirred   Kind = "stirred"   // there is sound that may become a voice
	Calmed    Kind = "calmed"    // it came to nothing
	Voice     Kind = "voice"     // the caller began to speak
	Loud      Kind = "loud"      // the caller has spoken for For, pauses apart
	Lull      Kind = "lull"      // the caller paused: too short a time to tell why
	Silence   Kind = "silence"   // the caller fell silent
	Key       Kind = "key"       // the caller pressed a key
	Heard     Kind = "heard"     // the recognizer understood something
	Judged    Kind = "judged"    // the classifier's answer to Judge
	Deaf      Kind = "deaf"      // the recognizer broke; another is being opened
	Listens   Kind = "listens"   // a recognizer is open again
	Timer     Kind = "timer"     // the timer that was set last is due
	Ready     Kind = "ready"     // the answer's first sound is made, and held
	Audible   Kind = "audible"   // the first audible frame of the agent's speech left
	Said      Kind = "said"      // the last frame of the agent's speech left
	ReplyFail Kind = "replyfail" // the model or the voice broke
	Own       Kind = "own"       // the agent begins a speech that answers nothing
	Floor     Kind = "floor"     // the agent may speak: whoever it is to talk to is there, and waits
	Hold      Kind = "hold"      // it may not, until the next Floor
)

// What the agent can be saying.
const (
	Reply  = "reply"  // an answer, or the greeting
	Filler = "filler" // something short while the answer is being made
	Notice = "notice" // an apology, or a question whether the caller is there
)

// An Event is what happened.
type Event struct {
	Kind Kind          `json:"kind"`
	At   time.Duration `json:"at"` // when it became known
	// From, of Voice, is its onset; of Lull and Silence, the arrival of the
	// last voiced sample; of Heard, when what was understood began to be said.
	From time.Duration `json:"from,omitempty"`
	// Until, of Heard, is the end of what was understood; 0 where unknown.
	Until time.Duration `json:"until,omitempty"`
	For   time.Duration `json:"for,omitempty"` // Loud
	// Text, of Heard and Judged, is what was understood; of Key, the key; of
	// Audible and Said, what the agent is saying: Reply, Filler or Notice; of
	// Floor, Greet or nothing.
	Text string `json:"text,omitempty"`
	// Final, of Heard: the text will not change. Finalized: nothing is open.
	Final     bool `json:"final,omitempty"`
	Finalized bool `json:"finalized,omitempty"`
	// Unanswered, of Heard: the recognizer was asked for the final text and gave
	// no sign of life.
	Unanswered bool `json:"unanswered,omitempty"`
	// Mute, of Listens: that recognizer tells no words before it is asked.
	Mute bool `json:"mute,omitempty"`
	// P, of Heard, is how sure a recognizer that looks for it is that the
	// caller has finished, 0 where it does not tell; of Judged, the
	// classifier's answer, negative where it has none.
	P float64 `json:"p,omitempty"`
	// Saying is what the agent said in the seconds before the event, where it
	// speaks; Words, how much of that speech the caller has heard.
	Saying string `json:"saying,omitempty"`
	Words  int    `json:"words,omitempty"`
	Whole  bool   `json:"whole,omitempty"` // that is all of it
	// Returns tells that the line is known to return what the agent says.
	Returns bool `json:"returns,omitempty"`
	// Pitch and Trail, of Lull and Silence, are the prosody of the speech
	// before it, as eot.Prosody has them; Toned tells that they are known.
	Pitch float64 `json:"pitch,omitempty"`
	Trail float64 `json:"trail,omitempty"`
	Toned bool    `json:"toned,omitempty"`
}

// A Do is what an action does.
type Do string

// What actions do.
const (
	Finalize  Do = "finalize"  // ask the recognizer for the final text
	Reopen    Do = "reopen"    // open another recognizer, and ask that
	Judge     Do = "judge"     // ask the classifier about Text
	SetTimer  Do = "timer"     // wake the machine at At; replaces the timer before
	Speculate Do = "speculate" // make an answer to Text, in place of another that is held, and hold it
	Commit    Do = "commit"    // the caller's turn is over: answer Text
	Release   Do = "release"   // the answer may be heard
	Retract   Do = "retract"   // drop the answer: the caller goes on with what was answered
	Duck      Do = "duck"      // speak softly
	Unduck    Do = "unduck"    // speak up again
	Pause     Do = "pause"     // fall silent, and keep what is to be said
	Resume    Do = "resume"    // go on from the last word boundary
	Yield     Do = "yield"     // stop speaking for good
	Note      Do = "note"      // the caller said Text beside the agent's speech; it asks for no answer
	Fill      Do = "fill"      // say a filler while the answer is being made
	Apologise Do = "apologise" // drop the answer and say that it went wrong
	Nudge     Do = "nudge"     // ask whether the caller is still there
	Drop      Do = "drop"      // what was heard was no turn
	Leave     Do = "leave"     // hang up
)

// RecognizerSilent is the reason of an apology for a recognizer that did not
// answer.
const RecognizerSilent = "recognizer_silent"

// An Action is what to do, and why.
type Action struct {
	Do     Do            `json:"do"`
	Reason string        `json:"reason,omitempty"`
	Text   string        `json:"text,omitempty"`
	At     time.Duration `json:"at,omitempty"`
	// Keys, of Commit, are those that the caller pressed.
	Keys string `json:"keys,omitempty"`
	// Told, of Commit: Text was noted already.
	Told bool `json:"told,omitempty"`
	// Held, of Commit: the answer to the last Speculate is this one's.
	Held bool `json:"held,omitempty"`
	// From, of Commit, is when the caller's last voiced sample arrived.
	From time.Duration `json:"from,omitempty"`
	// Usable, of Commit, is when the transcript was first usable; Judged, when
	// the classifier had answered, where it was waited for.
	Usable time.Duration `json:"usable,omitempty"`
	Judged time.Duration `json:"judged,omitempty"`
	// Fragments, of Commit, is how many stretches of speech Text is made of.
	Fragments int `json:"fragments,omitempty"`
}
