package pipeline

import (
	"encoding/json"
	"math"
	"time"
)

// A Phase is a part of a turn, which lasts from the caller's last voiced sample to the
// agent's first audible packet. Phases are contiguous, so their sum is the turn.
type Phase string

// Phases, in order.
const (
	PhaseJitter     Phase = "jitter_ms"     // while the last voiced sample waited in the jitter buffer
	PhaseVAD        Phase = "vad_ms"        // until the detector reported the end of speech
	PhaseASR        Phase = "asr_ms"        // until the transcript was usable; 0 if it already was
	PhaseClassifier Phase = "classifier_ms" // wait for the end-of-turn classifier alone
	PhaseEOUWait    Phase = "eou_wait_ms"   // wait of the endpointing policy before the commit
	PhaseLLM        Phase = "llm_ms"        // from the commit to the first text that can be spoken, without tool time
	PhaseTool       Phase = "tool_ms"       // while tools ran before the first text
	PhaseTTS        Phase = "tts_ms"        // until the first audible sample was ready
	PhaseOut        Phase = "out_ms"        // queue and pacing until the packet of that sample left
)

// A Span is the duration of one phase.
type Span struct {
	Phase Phase
	For   time.Duration
}

// An Ending is the result of a turn. Every turn has exactly one.
type Ending string

// Endings.
const (
	Answered    Ending = "answered"         // the caller heard the whole answer
	Interrupted Ending = "interrupted"      // the caller spoke during the answer, or left
	Failed      Ending = "failed"           // a provider failed; the caller heard an apology
	Silent      Ending = "silent_by_policy" // the agent acted without saying anything
)

// A Turn holds the metrics of one turn. If the agent speaks first, turn 0 is its greeting.
type Turn struct {
	Number      int
	Spans       []Span    // only phases that occurred
	EndedAt     time.Time // when the last phase ended; zero if unknown
	Raw         map[string]time.Duration
	Ending      Ending
	Reason      string // why the turn was committed at that moment
	Interrupted bool
	MergedFrom  int  // number of fragments, divided by pauses of the caller, that form the turn; 0 if there is only one
	Estimated   bool // the start of the turn is an estimate
	// Speculations is the number of answers begun before the commit. Saved is how much sooner the
	// caller heard the answer because of them.
	Speculations int
	Saved        time.Duration
	TokensIn     int
	TokensOut    int
	Chars        int           // characters sent to the voice
	Tools        time.Duration // time that tools ran, including PhaseTool
}

// Total returns the sum of the phases.
func (t Turn) Total() time.Duration {
	var sum time.Duration
	for _, s := range t.Spans {
		sum += s.For
	}
	return sum
}

// Audible reports whether the caller heard any of the answer. A turn without audible answer has
// no turn_ms.
func (t Turn) Audible() bool {
	n := len(t.Spans)
	return n > 0 && t.Spans[n-1].Phase == PhaseOut
}

// MarshalJSON writes an item of GET /v1/calls/{id}/turns.
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

// Millis returns d in milliseconds, rounded to a tenth.
func Millis(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*10) / 10
}
