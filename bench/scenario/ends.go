package scenario

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/wording"
	"github.com/parley-voice/parley/pipeline"
)

// ends tells how calls ended, what else their callees were to hear, and what
// became of keys.
func (r *Report) ends(s *stage) {
	reasons, parties := map[string]int{}, map[string]int{}
	for _, id := range s.order {
		c := s.calls[id].server
		reasons[string(c.Reason)]++
		parties[cmp.Or(c.Party, "nobody asked")]++
	}
	if s.Scene == nil {
		return
	}
	for _, reason := range []pipeline.Reason{
		pipeline.CallerHungUp, pipeline.AgentHungUp, pipeline.Inactive, pipeline.HandedOver, pipeline.VoicemailLeft, pipeline.VoicemailReached,
		pipeline.AgentError, pipeline.NoMedia,
	} {
		r.count("ended_"+string(reason), "calls that ended by "+string(reason), freely, reasons[string(reason)], len(s.order))
	}
	for _, party := range slices.Sorted(maps.Keys(parties)) {
		r.count("answered_by_"+party, "calls said to be answered by: "+party, freely, parties[party], len(s.order))
	}
	all, heard := 0, 0
	for _, words := range r.words {
		n := inOrder(words, s.Scene.Hear)
		heard, all = heard+n, all+len(s.Scene.Hear)
	}
	r.count("heard_lines", "lines that were to be heard, and were", freely, heard, all)
	r.Metrics[len(r.Metrics)-1].More = true
	r.keys()
}

// keys tells what became of those that callees pressed.
func (r *Report) keys() {
	var pressed []Turn
	for _, t := range r.Turns {
		if t.keys {
			pressed = append(pressed, t)
		}
	}
	r.count("keys_lost", "keys pressed that the server does not have", freely, tally(pressed, func(t Turn) bool { return t.Lines == 0 }), len(pressed))
	r.count("keys_unanswered", "keys pressed that were not answered", freely, tally(pressed, func(t Turn) bool { return t.Answers == 0 }), len(pressed))
	r.time("keys_stop_ms", "keys pressed into the answer → its end", nil, values(pressed, func(t Turn) *float64 {
		if t.Into == nil {
			return nil
		}
		return t.Into.Stop
	}))
}

// inOrder counts the lines that words have in them, one after the other, but for
// what a line does to words.
func inOrder(words []string, lines []string) int {
	for n, l := range lines {
		want := strings.Fields(wording.Normal(l))
		at := -1
		for i := 0; i+len(want) <= len(words) && at < 0; i++ {
			if slices.EqualFunc(words[i:i+len(want)], want, alike) {
				at = i
			}
		}
		if at < 0 {
			return n
		}
		words = words[at+len(want):]
	}
	return len(lines)
}
