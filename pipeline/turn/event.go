// Package turn decides who has the floor in a call. Its state machine takes Events and
// returns Actions, each with its reason. It has no clock: times count from the answer of
// the call and come with the events, so a log of events replays to the same actions.
package turn

import "time"

// A Kind is a kind of event.
type Kind string

// Kinds.
const (
	SoundStart     Kind = "stirred"   // there is a sound that may become a voice
	SoundEnd       Kind = "calmed"    // the sound did not become a voice
	Voice          Kind = "voice"     // the caller began to speak
	VoiceLength    Kind = "loud"      // the caller has spoken for Length, without pauses
	Lull           Kind = "lull"      // the caller paused, but too briefly to tell whether the turn has ended
	Silence        Kind = "silence"   // the caller fell silent
	Key            Kind = "key"       // the caller pressed a key
	Typed          Kind = "typed"     // the caller sent words in writing
	Transcript     Kind = "heard"     // the recognizer sent a result
	Classified     Kind = "judged"    // the classifier answered a Judge
	RecognizerLost Kind = "deaf"      // the recognizer failed; another is being opened
	RecognizerOpen Kind = "listens"   // a recognizer is open again
	Timer          Kind = "timer"     // the timer that was set last is due
	Ready          Kind = "ready"     // the first sound of the reply exists and waits for Release
	SpeechStart    Kind = "audible"   // the first audible frame of the agent's speech was sent
	SpeechEnd      Kind = "said"      // the last frame of the agent's speech was sent
	ReplyFailed    Kind = "replyfail" // the model or the voice failed
	OwnSpeech      Kind = "own"       // the agent begins to say something that answers no turn
	Floor          Kind = "floor"     // the agent may speak
	Hold           Kind = "hold"      // the agent may not speak before the next Floor
)

// Kinds of the agent's speech.
const (
	Reply  = "reply"  // an answer, or the greeting
	Filler = "filler" // a short phrase while the answer is prepared
	Notice = "notice" // an apology, or a question whether the caller is still there
)

// An Event is something that happened. The field names of its JSON are part of the turn log.
type Event struct {
	Kind Kind          `json:"kind"`
	At   time.Duration `json:"at"` // when the machine received the event
	// From is, for Voice, its onset; for Lull and Silence, the arrival of the last voiced sample;
	// for Transcript, the start of the words, 0 if unknown.
	From time.Duration `json:"from,omitempty"`
	// Until, for Transcript, is the end of the words; 0 if unknown.
	Until  time.Duration `json:"until,omitempty"`
	Length time.Duration `json:"for,omitempty"` // only of VoiceLength
	// Text is, for Transcript, Typed and Classified, the words; for Key, the key; for SpeechStart and
	// SpeechEnd, Reply, Filler or Notice; for Floor, Greet or "".
	Text string `json:"text,omitempty"`
	// Final means, for Transcript, that the text will not change. Finalized means that it answers a
	// Finalize.
	Final     bool `json:"final,omitempty"`
	Finalized bool `json:"finalized,omitempty"`
	// Unanswered means, for Transcript, that the recognizer did not answer a Finalize in time.
	Unanswered bool `json:"unanswered,omitempty"`
	// FinalOnly means, for RecognizerOpen, that the recognizer sends no text before a Finalize.
	FinalOnly bool `json:"mute,omitempty"`
	// P is, for Transcript, the recognizer's probability that the turn ended, 0 if it reports none;
	// for Classified, the classifier's probability, negative after a failure.
	P float64 `json:"p,omitempty"`
	// AgentText is what the agent said in the last seconds if it speaks now. Words counts the words
	// of AgentText that the caller heard.
	AgentText string `json:"saying,omitempty"`
	Words     int    `json:"words,omitempty"`
	AllHeard  bool   `json:"whole,omitempty"` // the caller heard all of AgentText
	// HasEcho means that the line is known to echo the agent's speech.
	HasEcho bool `json:"returns,omitempty"`
	// Pitch and Trail are, for Lull and Silence, the eot.Prosody of the speech before it, if
	// HasProsody is set.
	Pitch      float64 `json:"pitch,omitempty"`
	Trail      float64 `json:"trail,omitempty"`
	HasProsody bool    `json:"toned,omitempty"`
}

// A Do is a kind of action.
type Do string

// Kinds of actions.
const (
	Finalize  Do = "finalize"  // ask the recognizer for the final text
	Reopen    Do = "reopen"    // open another recognizer and request the final text from it
	Judge     Do = "judge"     // ask the classifier about Text
	SetTimer  Do = "timer"     // send a Timer event at At; replaces the timer set before
	Speculate Do = "speculate" // prepare an answer to Text, and drop the answer prepared before
	Commit    Do = "commit"    // the caller's turn ended: answer Text
	Release   Do = "release"   // the answer may be played
	Retract   Do = "retract"   // drop the answer: the caller continues the turn
	Duck      Do = "duck"      // lower the volume of the agent's speech
	Unduck    Do = "unduck"    // restore the volume of the agent's speech
	Pause     Do = "pause"     // pause the agent's speech
	Resume    Do = "resume"    // continue from the last word boundary
	Yield     Do = "yield"     // end the agent's speech
	Note      Do = "note"      // record that the caller said Text during the agent's speech; it needs no answer
	Fill      Do = "fill"      // play a filler while the answer is prepared
	Apologize Do = "apologise" // drop the answer and apologize
	Nudge     Do = "nudge"     // ask whether the caller is still there
	Drop      Do = "drop"      // record that the sound contained no words
	Leave     Do = "leave"     // hang up
)

// RecognizerSilent is the reason of an apology for a recognizer that did not answer.
const RecognizerSilent = "recognizer_silent"

// An Action is what to do, and the reason.
type Action struct {
	Do     Do            `json:"do"`
	Reason string        `json:"reason,omitempty"`
	Text   string        `json:"text,omitempty"`
	At     time.Duration `json:"at,omitempty"`
	// Keys are, for Commit, the keys that the caller pressed.
	Keys string `json:"keys,omitempty"`
	// Noted means, for Commit, that an earlier Note had the same Text.
	Noted bool `json:"told,omitempty"`
	// Prepared means, for Commit, that the last Speculate prepared the answer.
	Prepared bool `json:"held,omitempty"`
	// From is, for Commit, the arrival of the caller's last voiced sample.
	From time.Duration `json:"from,omitempty"`
	// Usable is, for Commit, when the transcript was complete. Judged is when the classifier
	// answered; 0 if the commit did not wait for it.
	Usable time.Duration `json:"usable,omitempty"`
	Judged time.Duration `json:"judged,omitempty"`
	// Fragments is, for Commit, 1 plus the number of retracted commits whose text is part of Text.
	Fragments int `json:"fragments,omitempty"`
}
