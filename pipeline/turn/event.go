// Package turn decides whose turn it is. It is a pure state machine: what
// happened goes in as an Event, what to do comes out as Actions, each with its
// reason. There is no clock in it; times count from the answer of the call and
// come in with the events.
package turn

import "time"

// A Kind is a kind of event.
type Kind string

// Kinds.
const (
	Voice     Kind = "voice"     // the caller began to speak
	Loud      Kind = "loud"      // the caller has spoken for For, pauses apart
	Silence   Kind = "silence"   // the caller fell silent
	Heard     Kind = "heard"     // the recognizer understood something
	Deaf      Kind = "deaf"      // the recognizer broke; another is being opened
	Listens   Kind = "listens"   // a recognizer is open again
	Timer     Kind = "timer"     // the timer that was set last is due
	Audible   Kind = "audible"   // the first audible frame of the agent's speech left
	Said      Kind = "said"      // the last frame of the agent's speech left
	ReplyFail Kind = "replyfail" // the model or the voice broke
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
	// From, of Voice, is its onset; of Silence, the arrival of the last voiced
	// sample; of Heard, when what was understood began to be said.
	From time.Duration `json:"from,omitempty"`
	For  time.Duration `json:"for,omitempty"` // Loud
	// Text, of Heard, is what was understood; of Audible and Said, what the
	// agent is saying: Reply, Filler or Notice.
	Text string `json:"text,omitempty"`
	// Final, of Heard: the text will not change. Finalized: nothing is open.
	Final     bool `json:"final,omitempty"`
	Finalized bool `json:"finalized,omitempty"`
}

// A Do is what an action does.
type Do string

// What actions do.
const (
	Finalize  Do = "finalize"  // ask the recognizer for the final text
	SetTimer  Do = "timer"     // wake the machine at At; replaces the timer before
	Commit    Do = "commit"    // the caller's turn is over: answer Text
	Retract   Do = "retract"   // drop the answer, which nobody heard yet: the caller goes on
	Yield     Do = "yield"     // stop speaking at once
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
	// From, of Commit, is when the caller's last voiced sample arrived.
	From time.Duration `json:"from,omitempty"`
	// Usable, of Commit, is when the transcript was first usable.
	Usable time.Duration `json:"usable,omitempty"`
	// Fragments, of Commit, is how many stretches of speech Text is made of.
	Fragments int `json:"fragments,omitempty"`
}

// Policy is how patient the machine is. The zero value is not useful; start
// from DefaultPolicy.
type Policy struct {
	// Sustained is how long the caller must speak into the agent's speech
	// before the agent yields; SustainedGreeting, into its first words.
	Sustained, SustainedGreeting time.Duration
	// Deaf is how long after the caller's last sound the recognizer's answer
	// is waited for; Final, where there are words to go on with.
	Deaf, Final time.Duration
	// Filler is how long after the caller's last sound the line may stay
	// silent before a filler is said.
	Filler time.Duration
	// GiveUp is how long after the commit an answer is waited for.
	GiveUp time.Duration
	// Wordless is how long the caller may keep the floor with sound that the
	// recognizer makes no words of.
	Wordless time.Duration
	// Idle is how long both sides may be silent before the agent asks for the
	// caller; after Nudges of those it leaves.
	Idle   time.Duration
	Nudges int
	// Failures in a row after which the agent leaves.
	Failures int
}

// DefaultPolicy holds the times of production.
func DefaultPolicy() Policy {
	return Policy{
		Sustained:         160 * time.Millisecond,
		SustainedGreeting: 800 * time.Millisecond,
		Deaf:              2 * time.Second,
		Final:             900 * time.Millisecond,
		Filler:            2200 * time.Millisecond,
		GiveUp:            5500 * time.Millisecond,
		Wordless:          3 * time.Second,
		Idle:              10 * time.Second,
		Nudges:            2,
		Failures:          3,
	}
}
