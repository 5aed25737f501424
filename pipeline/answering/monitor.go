// Package answering applies the voicemail policy to the detected party. It decides when the agent begins to speak,
// falls silent, leaves a message or hangs up. It is pure, except for Opinion and Compose, which ask a model.
package answering

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/amd"
)

// A CommandKind is the kind of a command.
type CommandKind uint8

// Kinds of commands.
const (
	Greet   CommandKind = iota // the agent may speak: it greets, if it has a greeting
	Answer                     // the agent may speak: it answers what the party said
	Hold                       // the agent must be silent
	Prepare                    // a message may soon be needed
	Message                    // leave the message now, or begin it again if it is being left
	Ask                        // ask a model about Text
	Leave                      // hang up with Reason
)

// A Command is an action for the conversation.
type Command struct {
	Do     CommandKind
	Reason pipeline.Reason
	Text   string
}

const (
	sure = 0.8 // confidence at and above which a verdict takes effect at once
	// doubtTime is the time after the answer in which a verdict may still change although the agent may already
	// speak.
	doubtTime = 20 * time.Second
	// maxReplies is the number of complete agent turns after which the verdict is final.
	maxReplies = 2
	// overlap is how long before the end of the agent's first turn a reply may begin.
	overlap = 500 * time.Millisecond
	// reaction is the time after the agent's first sound in which new speech is not a reply: it may be a machine that
	// continues after a pause.
	reaction = 600 * time.Millisecond
)

// A Monitor handles one call. It belongs to one goroutine.
type Monitor struct {
	policy      pipeline.Voicemail
	mayAsk      bool // a model may still be asked
	machine     amd.Machine
	wakes       []time.Duration
	finals      string
	partial     string
	taken       int           // number of bytes of the transcript that Take has returned
	speechFrom  time.Duration // start of the current or last speech
	firstEnd    time.Duration // end of the agent's first turn; 0 if none
	firstStart  time.Duration // start of the agent's first sound; 0 if none
	replied     bool          // the party spoke after the agent's first turn, as if in reply
	answers     int           // number of agent turns played to the end
	agentSpeaks bool          // the agent may speak
	ready       bool          // Prepare was returned
	stage       stage
}

// stage is the progress of the message.
type stage uint8

const (
	none    stage = iota
	begun         // the message is being left; a beep may follow
	beeped        // the message is being left after the beep
	leaving       // the agent hangs up
)

// New returns a monitor for a call that is answered now. asks allows it to ask a model.
func New(policy pipeline.Voicemail, asks bool) *Monitor {
	return &Monitor{policy: policy, mayAsk: asks}
}

// Verdict returns the current decision.
func (w *Monitor) Verdict() pipeline.AnsweredBy {
	v := w.machine.Verdict()
	return pipeline.AnsweredBy{Party: v.Party.AnsweredBy(), Confidence: v.Confidence, Evidence: v.Evidence, After: v.Elapsed}
}

// Due returns the time of the next Timer since the answer; 0 for none.
func (w *Monitor) Due() time.Duration {
	due := time.Duration(0)
	for _, at := range w.wakes {
		if due == 0 || at < due {
			due = at
		}
	}
	return due
}

// OnTranscript receives a result of the recognizer.
func (w *Monitor) OnTranscript(at time.Duration, text string, final bool) []Command {
	if w.partial = text; final {
		w.finals, w.partial = strings.TrimSpace(w.finals+" "+text), ""
	}
	if w.firstEnd > 0 && w.speechFrom > w.firstEnd-overlap || w.isHuman() && w.isReply() {
		return nil // words in reply to the agent do not count, because people may talk about voicemail
	}
	return w.Step(amd.Event{Kind: amd.Transcript, At: at, Text: w.text()})
}

func (w *Monitor) text() string { return strings.TrimSpace(w.finals + " " + w.partial) }

// Take returns the transcript since the last call.
func (w *Monitor) Take() string {
	all := w.text()
	text := strings.TrimSpace(all[min(w.taken, len(all)):])
	w.taken = len(all)
	return text
}

func (w *Monitor) isHuman() bool { return w.machine.Verdict().Party == amd.Human }

// isReply reports whether the current or last speech replies to the agent.
func (w *Monitor) isReply() bool { return w.firstStart > 0 && w.speechFrom > w.firstStart+reaction }

// OnAgentStart receives the first sound of an agent turn.
func (w *Monitor) OnAgentStart(at time.Duration) {
	if w.agentSpeaks && w.firstStart == 0 {
		w.firstStart = at
	}
}

// OnAgentEnd receives the end of an agent turn that was played in full. The party's speech after the first such turn
// is a reply.
func (w *Monitor) OnAgentEnd(at time.Duration) {
	if !w.agentSpeaks {
		return
	}
	if w.answers++; w.answers == 1 {
		w.firstEnd = at
	}
}

// Step processes an event and returns the commands in order.
func (w *Monitor) Step(e amd.Event) []Command {
	if e.Kind == amd.Voice {
		w.speechFrom = e.From
		w.replied = w.replied || w.isReply()
	}
	if e.Kind == amd.Timer {
		w.wakes = dropUntil(w.wakes, e.At)
	}
	if w.isIrrelevant(e) {
		return nil
	}
	var orders []Command
	for _, a := range w.machine.Step(e) {
		if w.stage == leaving {
			break
		}
		switch a.Do {
		case amd.Wake:
			if a.At > e.At {
				w.wakes = append(w.wakes, a.At)
			}
		case amd.Decide:
			orders = append(orders, w.onVerdict(a.Verdict)...)
		case amd.Speak:
			orders = append(orders, w.onSpeak(a.Verdict))
		case amd.Yield:
			w.agentSpeaks = false
			orders = append(orders, Command{Do: Hold})
		}
	}
	return orders
}

// isIrrelevant reports whether e can no longer change anything.
func (w *Monitor) isIrrelevant(e amd.Event) bool {
	switch {
	case w.stage == leaving, w.stage == beeped, e.Kind == amd.Opinion && e.Confidence == 0:
		return true
	case w.stage == begun:
		return e.Kind != amd.Tone
	case e.Kind == amd.Tone && (e.Signal == amd.Beep || e.Signal == amd.Calling) && w.isHuman() && w.replied:
		return true // a beep from elsewhere; the party stays human
	default:
		return w.agentSpeaks && (e.At > doubtTime || w.answers >= maxReplies)
	}
}

func dropUntil(wakes []time.Duration, upTo time.Duration) []time.Duration {
	left := wakes[:0]
	for _, at := range wakes {
		if at > upTo {
			left = append(left, at)
		}
	}
	return left
}

// onVerdict acts on a verdict before the party has finished speaking.
func (w *Monitor) onVerdict(v amd.Verdict) []Command {
	switch {
	case v.Party == amd.Fax, v.Party == amd.Unknown && v.Confidence >= sure: // nobody to talk to
		return []Command{w.hangUp(pipeline.AgentHungUp)}
	case v.Party == amd.IVR && w.policy != pipeline.VoicemailContinue:
		return []Command{w.hangUp(pipeline.IVRReached)}
	case v.Party == amd.Voicemail && w.policy == pipeline.VoicemailHangup && v.Confidence >= sure:
		return []Command{w.hangUp(pipeline.VoicemailReached)}
	default:
		return w.prepare(v, w.text())
	}
}

// prepare prepares for the verdict that may follow an uncertain one. text is the transcript so
// far.
func (w *Monitor) prepare(v amd.Verdict, text string) []Command {
	var orders []Command
	unsure := v.Confidence < sure && text != ""
	if w.policy == pipeline.VoicemailLeave && !w.ready && (v.Party == amd.Voicemail || unsure) {
		w.ready = true // the next event may be the beep, at which the message must begin
		orders = append(orders, Command{Do: Prepare})
	}
	if w.mayAsk && unsure && !v.ByWords() { // after the first words of a machine, more words follow
		w.mayAsk = false
		orders = append(orders, Command{Do: Ask, Text: text})
	}
	return orders
}

// onSpeak acts when the agent may speak.
func (w *Monitor) onSpeak(v amd.Verdict) Command {
	w.agentSpeaks = true
	switch {
	case v.Party == amd.Voicemail && w.policy == pipeline.VoicemailHangup:
		return w.hangUp(pipeline.VoicemailReached)
	case v.Party == amd.Voicemail && w.policy == pipeline.VoicemailLeave:
		if w.stage = begun; v.Evidence == "beep" {
			w.stage = beeped
		}
		return Command{Do: Message}
	case v.Party == amd.Human || v.Party == amd.Unknown:
		return Command{Do: Greet}
	default:
		return Command{Do: Answer}
	}
}

func (w *Monitor) hangUp(why pipeline.Reason) Command {
	w.stage = leaving
	return Command{Do: Leave, Reason: why}
}
