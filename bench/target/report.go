package target

import (
	"fmt"
	"slices"

	"github.com/parley-voice/parley/bench/result"
)

// punctual is how late, in ms, the caller's clock may be at its 99th percentile:
// half a packet.
const punctual = 10

// report judges all calls, and puts what came of it into f.
func report(o Options, calls []call, late []float64, f *result.File) {
	var all turns
	unfinished := 0
	for i := range calls {
		all = append(all, calls[i].judge()...)
		if !calls[i].record.Complete {
			unfinished++
		}
	}
	all.times(f)
	every := func(Turn) bool { return true }
	count := func(name, what string, is, could func(Turn) bool) {
		f.Add(result.Share(name, what, all.tally(func(t Turn) bool { return could(t) && is(t) }), all.tally(could)))
	}
	count("dead_turns", "lines without an answer", func(t Turn) bool { return t.Dead }, func(t Turn) bool { return !t.Over })
	count("talked_over", "lines talked over at their end", func(t Turn) bool { return t.Over }, every)
	count("heard_again", "answers heard twice, or in part", func(t Turn) bool { return t.Again > 0 }, func(t Turn) bool { return t.Spoke > 0 })
	count("doubled_words", "answers with a tone word heard twice", func(t Turn) bool { return t.Doubled > 0 }, func(t Turn) bool { return len(t.Words) > 0 })
	count("came_back", "lines that came back", func(t Turn) bool { return t.Back != nil }, every)
	f.Add(result.Share("unfinished_calls", "calls that ended before their time", unfinished, len(calls)))
	f.Generated("media clock's ticks", late, punctual)
	f.Note("%s: SIP and RTP, G.711; lines in %s, %d calls at a time; measured at this end, from audio alone", o.Target, o.Speech, o.Calls)
	for _, t := range all {
		f.Turns = append(f.Turns, t.row(o.Calls))
	}
}

type turns []Turn

func (all turns) times(f *result.File) {
	for _, m := range []struct {
		name, what string
		of         func(Turn) *float64
	}{
		{"ear_ms", "ear: last sample spoken → first sample heard", func(t Turn) *float64 { return t.Ear }},
		{"wire_ms", "wire: last packet left → first audible one came", func(t Turn) *float64 { return t.Wire }},
		{"silence_ms", "silence: the longest within an answer", func(t Turn) *float64 { return t.silence() }},
		{"overlap_ms", "overlap: both audible while a line was said", func(t Turn) *float64 { return &t.Overlap }},
		{"stop_ms", "stop: a line into the answer → its end", func(t Turn) *float64 { return t.Stop }},
		{"back_ms", "back: a line said → itself heard", func(t Turn) *float64 { return t.Back }},
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

// silence is that within the answer, where there was one.
func (t Turn) silence() *float64 {
	if t.Spoke == 0 {
		return nil
	}
	return &t.Silence
}

// row is the turn as a file has it.
func (t Turn) row(calls int) result.Turn {
	r := result.Turn{Call: t.Call, Number: t.Number, Calls: calls, Text: t.Text, Heard: t.Words, Figures: map[string]float64{"overlap_ms": t.Overlap, "spoke_ms": t.Spoke}}
	for name, v := range map[string]*float64{"ear_ms": t.Ear, "wire_ms": t.Wire, "stop_ms": t.Stop, "back_ms": t.Back, "silence_ms": t.silence()} {
		if v != nil {
			r.Figures[name] = *v
		}
	}
	for _, m := range []struct {
		name string
		is   bool
	}{{"no answer", t.Dead}, {"talked over", t.Over}, {"heard again", t.Again > 0}, {"words doubled", t.Doubled > 0}, {"came back", t.Back != nil}} {
		if m.is {
			r.Marks = append(r.Marks, m.name)
		}
	}
	return r
}

// String tells how the caller speaks.
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
