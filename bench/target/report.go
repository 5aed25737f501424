package target

import (
	"fmt"
	"slices"

	"github.com/parley-voice/parley/bench/result"
)

// maxLateness is the limit in ms, at p99, for the lateness of the caller's clock: half a packet.
const maxLateness = 10

// report analyzes all calls and adds the metrics to f.
func report(o Options, calls []call, late []float64, f *result.File) {
	var all turns
	unfinished := 0
	for i := range calls {
		all = append(all, calls[i].judge()...)
		if !calls[i].record.Complete {
			unfinished++
		}
	}
	all.dropNaturalEnds()
	all.times(f)
	every := func(Turn) bool { return true }
	count := func(name, what string, is, could func(Turn) bool) {
		f.Add(result.Share(name, what, all.tally(func(t Turn) bool { return could(t) && is(t) }), all.tally(could)))
	}
	count("dead_turns", "utterances without an answer", func(t Turn) bool { return t.Dead }, func(t Turn) bool { return !t.Over })
	count("unstopped", "interrupting utterances that did not stop the answer, or during which it may have ended by itself",
		func(t Turn) bool { return t.Stop == nil },
		func(t Turn) bool { return t.Into })
	count("talked_over", "utterances at whose end the target was speaking", func(t Turn) bool { return t.Over }, every)
	count("heard_again", "answers heard twice or in part", func(t Turn) bool { return t.Again > 0 }, func(t Turn) bool { return t.Spoke > 0 })
	count("doubled_words", "answers with a tone word heard twice", func(t Turn) bool { return t.Doubled > 0 },
		func(t Turn) bool { return len(t.Words) > 0 })
	count("came_back", "utterances echoed back", func(t Turn) bool { return t.Back != nil }, every)
	f.Add(result.Share("unfinished_calls", "calls that ended early", unfinished, len(calls)))
	f.CheckGenerator("media clock", late, maxLateness)
	f.Note("%s: SIP and RTP, G.711; caller's speech: %s; %d concurrent calls; measured at the caller's end, from audio only", o.system(),
		o.Speech, o.Calls)
	for _, t := range all {
		f.Turns = append(f.Turns, t.row(o.Calls))
	}
}

// system names the measured system.
func (o Options) system() string {
	if o.Order != "" {
		return "calls ordered by a command and answered at " + o.Listen
	}
	return o.Target
}

type turns []Turn

func (all turns) times(f *result.File) {
	for _, m := range []struct {
		name, what string
		of         func(Turn) *float64
	}{
		{"ear_ms", "mouth to ear: last sample spoken to first sample heard", func(t Turn) *float64 { return t.Ear }},
		{"wire_ms", "wire: last packet sent to first audible packet received", func(t Turn) *float64 { return t.Wire }},
		{"silence_ms", "longest silence within an answer", func(t Turn) *float64 { return t.silence() }},
		{"overlap_ms", "overlap: both audible during an utterance", func(t Turn) *float64 { return &t.Overlap }},
		{"stop_ms", "stop: interrupting utterance to the end of the answer", func(t Turn) *float64 { return t.Stop }},
		{"back_ms", "echo: from speaking an utterance to hearing it back", func(t Turn) *float64 { return t.Back }},
	} {
		var values []float64
		for _, t := range all {
			if v := m.of(t); v != nil {
				values = append(values, *v)
			}
		}
		f.Add(result.Spread(m.name, m.what, "ms", values))
	}
}

func (all turns) tally(is func(Turn) bool) int {
	return len(slices.DeleteFunc(slices.Clone(all), func(t Turn) bool { return !is(t) }))
}

// silence returns t.Silence, or nil if there was no answer.
func (t Turn) silence() *float64 {
	if t.Spoke == 0 {
		return nil
	}
	return &t.Silence
}

// row returns the turn for the result file.
func (t Turn) row(calls int) result.Turn {
	r := result.Turn{
		Call: t.Call, Number: t.Number, Calls: calls, Text: t.Text, Heard: t.Words,
		Figures: map[string]float64{"overlap_ms": t.Overlap, "spoke_ms": t.Spoke},
	}
	for name, v := range map[string]*float64{
		"ear_ms": t.Ear, "wire_ms": t.Wire, "stop_ms": t.Stop, "back_ms": t.Back,
		"silence_ms": t.silence(),
	} {
		if v != nil {
			r.Figures[name] = *v
		}
	}
	for _, m := range []struct {
		name string
		is   bool
	}{{"no answer", t.Dead}, {"interrupted", t.Over}, {"repeated", t.Again > 0}, {"words doubled", t.Doubled > 0}, {"echoed", t.Back != nil}} {
		if m.is {
			r.Marks = append(r.Marks, m.name)
		}
	}
	return r
}

// String describes the caller's speech.
func (s Speech) String() string {
	switch {
	case len(s.Files) > 0:
		return fmt.Sprintf("%d recordings", len(s.Files))
	case s.Voices:
		return "espeak-ng"
	default:
		return "tone words"
	}
}
