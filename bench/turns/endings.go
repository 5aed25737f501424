package turns

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/pipeline"
)

// ends adds metrics of a single scenario: how calls ended, how many expected lines were heard,
// and the results of DTMF keys.
func (r *Report) ends(s *session) {
	reasons, parties := map[string]int{}, map[string]int{}
	for _, id := range s.order {
		c := s.calls[id].server
		reasons[string(c.Reason)]++
		parties[cmp.Or(c.Party, "not determined")]++
	}
	if s.Scenario == nil {
		return
	}
	for _, reason := range []pipeline.Reason{
		pipeline.CallerHungUp, pipeline.AgentHungUp, pipeline.Inactive, pipeline.Transferred, pipeline.VoicemailLeft, pipeline.VoicemailReached,
		pipeline.AgentError, pipeline.NoMedia,
	} {
		r.count("ended_"+string(reason), "calls ended by "+string(reason), freely, reasons[string(reason)], len(s.order))
	}
	for _, party := range slices.Sorted(maps.Keys(parties)) {
		r.count("answered_by_"+party, "calls classified as: "+party, freely, parties[party], len(s.order))
	}
	all, heard := 0, 0
	for _, words := range r.words {
		n := inOrder(words, s.Scenario.Hear)
		heard, all = heard+n, all+len(s.Scenario.Hear)
	}
	r.count("heard_lines", "expected utterances that were heard", freely, heard, all)
	r.Metrics[len(r.Metrics)-1].More = true
	r.keys()
}

// keys adds the metrics of pressed DTMF keys.
func (r *Report) keys() {
	var pressed []Turn
	for _, t := range r.Turns {
		if t.keys {
			pressed = append(pressed, t)
		}
	}
	r.count("keys_lost", "keys pressed that the server missed", freely, tally(pressed, func(t Turn) bool { return t.Lines == 0 }),
		len(pressed))
	r.count("keys_unanswered", "keys pressed without an answer", freely, tally(pressed, func(t Turn) bool { return t.Answers == 0 }),
		len(pressed))
	r.time("keys_stop_ms", "key pressed during the answer → end of the answer", nil, values(pressed, func(t Turn) *float64 {
		if t.Into == nil {
			return nil
		}
		return t.Into.Stop
	}))
}

// inOrder returns how many of lines occur in words in this order. It accepts damaged words.
func inOrder(words []string, lines []string) int {
	for n, l := range lines {
		want := strings.Fields(providers.Normalize(l))
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
