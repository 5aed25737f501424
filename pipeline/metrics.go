package pipeline

import (
	"encoding/json"
	"math"
	"time"
)

// A Phase is a stretch of a turn, from the caller's last voiced sample to the
// agent's first audible packet. Phases follow each other without gaps, so their
// sum is the turn.
type Phase string

// Phases, in the order in which they pass.
const (
	PhaseJitter     Phase = "jitter_ms"     // the last voiced sample waited in the jitter buffer
	PhaseVAD        Phase = "vad_ms"        // until the verdict that the caller fell silent
	PhaseASR        Phase = "asr_ms"        // until the transcript was usable; 0 if it already was
	PhaseClassifier Phase = "classifier_ms" // exposed time of the end-of-turn classifier
	PhaseEOUWait    Phase = "eou_wait_ms"   // waited by policy until the commit
	PhaseLLM        Phase = "llm_ms"        // commit until the first speakable text, without what tools took of it
	PhaseTool       Phase = "tool_ms"       // tools ran before there was any text
	PhaseTTS        Phase = "tts_ms"        // until the first audible sample was ready
	PhaseOut        Phase = "out_ms"        // queue and pacing until its packet left
)

// A Span is how long one phase took.
type Span struct {
	Phase Phase
	For   time.Duration
}

// An Ending is how a turn ended. Every turn ends in exactly one.
type Ending string

// Endings.
const (
	Answered    Ending = "answered"         // the caller heard the whole answer
	Interrupted Ending = "interrupted"      // the caller spoke into the answer, or left
	Failed      Ending = "failed"           // a provider broke; the caller heard an apology
	Silent      Ending = "silent_by_policy" // the agent did something and had nothing to say
)

// A Turn is what one caller turn cost, and how it ended. Turn 0 is the greeting.
type Turn struct {
	Number      int
	Spans       []Span // only the phases that ran
	Raw         map[string]time.Duration
	Ending      Ending
	Reason      string // why the turn was committed when it was
	Interrupted bool
	MergedFrom  int  // fragments glued together; 0 where none were
	Estimated   bool // t0 had to be estimated
	// Speculations is how many answers were begun before the turn was
	// committed, and Saved how much sooner the caller heard one for it.
	Speculations int
	Saved        time.Duration
	TokensIn     int
	TokensOut    int
	Chars        int           // of text given to the voice
	Tools        time.Duration // functions ran, PhaseTool included
}

// Total is the caller's last voiced sample to the agent's first audible
// packet: the sum of the phases.
func (t Turn) Total() time.Duration {
	var sum time.Duration
	for _, s := range t.Spans {
		sum += s.For
	}
	return sum
}

// Audible tells whether the caller heard anything of the answer; without it
// there is no turn_ms.
func (t Turn) Audible() bool {
	n := len(t.Spans)
	return n > 0 && t.Spans[n-1].Phase == PhaseOut
}

// MarshalJSON writes the item of GET /v1/calls/{id}/turns.
func (t Turn) MarshalJSON() ([]byte, error) {
	m := map[string]any{}
	for _, s := range t.Spans {
		m[string(s.Phase)] = Millis(s.For)
	}
	if t.Audible() {
		m["turn_ms"] = Millis(t.Total())
	}
	raw := map[string]float64{}
	for k, d := range t.Raw {
		raw[k] = Millis(d)
	}
	if t.Speculations > 0 {
		raw["speculations"] = float64(t.Speculations)
		raw["saved_ms"] = Millis(t.Saved)
	}
	m["raw"] = raw
	if t.Tools > 0 {
		raw["tools_ms"] = Millis(t.Tools)
	}
	for k, n := range map[string]int{"llm_tokens_in": t.TokensIn, "llm_tokens_out": t.TokensOut, "tts_chars": t.Chars} {
		if n > 0 {
			m[k] = n
		}
	}
	item := map[string]any{"turn": t.Number, "metrics": m, "ending": t.Ending, "reason": t.Reason}
	if t.Interrupted {
		item["interrupted"] = true
	}
	if t.MergedFrom > 0 {
		item["merged_from"] = t.MergedFrom
	}
	if t.Estimated {
		m["estimated"] = true
	}
	return json.Marshal(item)
}

// Millis is d in milliseconds, to a tenth.
func Millis(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*10) / 10
}
