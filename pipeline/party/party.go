// Package party decides what an agent does about who answered: when it begins,
// falls silent, leaves a message or goes. It is pure but for the model that may
// be asked.
package party

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/amd"
)

// A Do is what an order does.
type Do uint8

// What orders do.
const (
	Greet   Do = iota // the line is the agent's: to greet, where it has a greeting
	Answer            // the line is the agent's: to answer what was said
	Hold              // the agent may not speak
	Prepare           // a message may have to be left soon
	Message           // leave the message now, in place of one that is being left
	Ask               // ask a model about Text
	Leave             // hang up, for Reason
)

// An Order is what the conversation is to do.
type Order struct {
	Do     Do
	Reason pipeline.Reason
	Text   string
}

const (
	sure = 0.8 // the confidence that is acted on at once
	// listening is for how long after the answer one who was spoken to may still
	// turn out to be a machine.
	listening = 20 * time.Second
	// exchanges is how many speeches of the agent's it takes to know that it is
	// none.
	exchanges = 2
	// overlap is how long before the end of the agent's first speech people
	// begin to answer it.
	overlap = 500 * time.Millisecond
	// reaction is how long after the agent's first sound what begins is still no
	// answer to it: a machine goes on after a pause.
	reaction = 600 * time.Millisecond
)

// A Watch is one call's. It belongs to one goroutine.
type Watch struct {
	policy  pipeline.Voicemail
	asks    bool // a model may be asked
	machine amd.Machine
	wakes   []time.Duration
	finals  string
	partial string
	told    int           // bytes of finals that were taken
	from    time.Duration // where the speech that is on, or was last, began
	spoke   time.Duration // where the agent's first speech ended; 0 where it did not
	first   time.Duration // when the agent's first sound left; 0 where it did not
	replied bool          // the party spoke after it, as one who heard it
	answers int           // speeches of the agent's that were heard to their end
	given   bool          // the line is the agent's
	ready   bool          // a message is prepared
	stage   stage
}

// stage is how far the message is.
type stage uint8

const (
	none    stage = iota
	begun         // it is being left; a beep may come yet
	beeped        // it is being left after the beep
	parting       // the agent goes
)

// New returns a watch of a call that is answered now. asks tells whether a model
// may be asked.
func New(policy pipeline.Voicemail, asks bool) *Watch { return &Watch{policy: policy, asks: asks} }

// Verdict is who is believed to have answered.
func (w *Watch) Verdict() pipeline.AnsweredBy {
	v := w.machine.Verdict()
	return pipeline.AnsweredBy{Party: v.Party.AnsweredBy(), Confidence: v.Confidence, Evidence: v.Evidence, After: v.Elapsed}
}

// Due is when the next Timer is to come, since the answer; 0 for never.
func (w *Watch) Due() time.Duration {
	due := time.Duration(0)
	for _, at := range w.wakes {
		if due == 0 || at < due {
			due = at
		}
	}
	return due
}

// Heard is told of a result of the recognizer.
func (w *Watch) Heard(at time.Duration, text string, final bool) []Order {
	if w.partial = text; final {
		w.finals, w.partial = strings.TrimSpace(w.finals+" "+text), ""
	}
	if w.spoke > 0 && w.from > w.spoke-overlap || w.human() && w.toAgent() {
		return nil // said to the agent: a person may speak of a voicemail
	}
	return w.Step(amd.Event{Kind: amd.Heard, At: at, Text: w.text()})
}

func (w *Watch) text() string { return strings.TrimSpace(w.finals + " " + w.partial) }

// Take returns what was said and not taken before.
func (w *Watch) Take() string {
	all := w.text()
	text := strings.TrimSpace(all[min(w.told, len(all)):])
	w.told = len(all)
	return text
}

func (w *Watch) human() bool { return w.machine.Verdict().Party == amd.Human }

// toAgent tells that the speech that is on, or was last, answers the agent's.
func (w *Watch) toAgent() bool { return w.first > 0 && w.from > w.first+reaction }

// Begins is told that the first sound of a speech of the agent's left.
func (w *Watch) Begins(at time.Duration) {
	if w.given && w.first == 0 {
		w.first = at
	}
}

// Spoken is told that a speech of the agent's was heard to its end. What is said
// after the first one answers it.
func (w *Watch) Spoken(at time.Duration) {
	if !w.given {
		return
	}
	if w.answers++; w.answers == 1 {
		w.spoke = at
	}
}

// Step takes an event and says what is to be done, in this order.
func (w *Watch) Step(e amd.Event) []Order {
	if e.Kind == amd.Voice {
		w.from = e.From
		w.replied = w.replied || w.toAgent()
	}
	if e.Kind == amd.Timer {
		w.wakes = without(w.wakes, e.At)
	}
	if w.over(e) {
		return nil
	}
	var orders []Order
	for _, a := range w.machine.Step(e) {
		if w.stage == parting {
			break
		}
		switch a.Do {
		case amd.Wake:
			if a.At > e.At {
				w.wakes = append(w.wakes, a.At)
			}
		case amd.Decide:
			orders = append(orders, w.decided(a.Verdict)...)
		case amd.Speak:
			orders = append(orders, w.speak(a.Verdict))
		case amd.Yield:
			w.given = false
			orders = append(orders, Order{Do: Hold})
		}
	}
	return orders
}

// over tells whether e is of no account any more.
func (w *Watch) over(e amd.Event) bool {
	switch {
	case w.stage == parting, w.stage == beeped, e.Kind == amd.Opinion && e.Confidence == 0:
		return true
	case w.stage == begun:
		return e.Kind != amd.Tone
	case e.Kind == amd.Tone && (e.Signal == amd.Beep || e.Signal == amd.Calling) && w.human() && w.replied:
		return true // of another telephone, or an oven: it does not unmake who one talks with
	default:
		return w.given && (e.At > listening || w.answers >= exchanges)
	}
}

func without(wakes []time.Duration, upTo time.Duration) []time.Duration {
	left := wakes[:0]
	for _, at := range wakes {
		if at > upTo {
			left = append(left, at)
		}
	}
	return left
}

// decided acts on a verdict, before the party is done with what it says.
func (w *Watch) decided(v amd.Verdict) []Order {
	switch {
	case v.Party == amd.Fax, v.Party == amd.Unknown && v.Confidence >= sure: // nobody to talk to
		return []Order{w.leave(pipeline.AgentHungUp)}
	case v.Party == amd.IVR && w.policy != pipeline.VoicemailContinue:
		return []Order{w.leave(pipeline.IVRReached)}
	case v.Party == amd.Voicemail && w.policy == pipeline.VoicemailHangup && v.Confidence >= sure:
		return []Order{w.leave(pipeline.VoicemailReached)}
	default:
		return w.doubt(v, w.text())
	}
}

// doubt prepares for the verdict that may follow an unsure one. text is what was
// said so far.
func (w *Watch) doubt(v amd.Verdict, text string) []Order {
	var orders []Order
	unsure := v.Confidence < sure && text != ""
	if w.policy == pipeline.VoicemailLeave && !w.ready && (v.Party == amd.Voicemail || unsure) {
		w.ready = true // a beep may be all that tells, and the message is due then
		orders = append(orders, Order{Do: Prepare})
	}
	if w.asks && unsure {
		w.asks = false
		orders = append(orders, Order{Do: Ask, Text: text})
	}
	return orders
}

// speak acts on the line's being the agent's.
func (w *Watch) speak(v amd.Verdict) Order {
	w.given = true
	switch {
	case v.Party == amd.Voicemail && w.policy == pipeline.VoicemailHangup:
		return w.leave(pipeline.VoicemailReached)
	case v.Party == amd.Voicemail && w.policy == pipeline.VoicemailLeave:
		if w.stage = begun; v.Evidence == "beep" {
			w.stage = beeped
		}
		return Order{Do: Message}
	case v.Party == amd.Human || v.Party == amd.Unknown:
		return Order{Do: Greet}
	default:
		return Order{Do: Answer}
	}
}

func (w *Watch) leave(why pipeline.Reason) Order {
	w.stage = parting
	return Order{Do: Leave, Reason: why}
}
