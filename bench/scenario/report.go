package scenario

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/script"
	"github.com/parley-voice/parley/bench/wording"
)

// A Report is what a run showed.
type Report struct {
	Metrics []result.Metric
	Turns   []Turn
	// Ghosts are lines that the server heard and nobody said; Echoed where the
	// line echoes.
	Ghosts, Echoed []string
	// Damaged came otherwise than they were said: the machine stood still, or
	// two were glued together.
	Damaged []string
	// Late is how late each tick of the callees' clock was, in ms.
	Late []float64

	calls map[string]*played
	words [][]string // that each callee heard
}

// within bounds the quantiles of a measure; 0 is no limit.
func within(p50, p95, p99, most float64) []result.Bound {
	var all []result.Bound
	for _, b := range []result.Bound{result.Most("p50", p50), result.Most("p95", p95), result.Most("p99", p99), result.Most("max", most)} {
		if b.Limit > 0 {
			all = append(all, b)
		}
	}
	return all
}

func (r *Report) time(name, what string, bounds []result.Bound, values []float64) {
	r.spread(name, what, "ms", bounds, values)
}

func (r *Report) spread(name, what, unit string, bounds []result.Bound, values []float64) {
	r.Metrics = append(r.Metrics, result.Spread(name, what, unit, values, bounds...))
}

// Shares that a count may have at most.
const (
	never  = 0.0
	rarely = .02
	seldom = .03
	freely = 1.0 // no target
)

// count adds how often something happened of n times, and how often it may.
func (r *Report) count(name, what string, most float64, times, n int) {
	var bounds []result.Bound
	switch most {
	case never:
		bounds = []result.Bound{result.Most("times", 0)}
	case freely:
	default:
		bounds = []result.Bound{result.Most("share", 100*most)}
	}
	r.Metrics = append(r.Metrics, result.Share(name, what, times, n, bounds...))
}

// Missed are the names of the measures whose targets the run did not meet.
func (r *Report) Missed() []string {
	var all []string
	for _, m := range r.Metrics {
		if m.Judge() == result.Missed {
			all = append(all, m.Name)
		}
	}
	return all
}

// report judges all calls.
func (s *stage) report() (*Report, error) {
	r := &Report{calls: s.calls, Late: s.late.Late()}
	unfinished := 0
	for _, id := range s.order {
		c := s.calls[id]
		a, err := c.judge()
		if err != nil {
			return nil, err
		}
		if c.Name == script.Echo {
			r.Echoed = append(r.Echoed, a.served.ghosts...)
		} else {
			r.Ghosts = append(r.Ghosts, a.served.ghosts...)
		}
		r.Damaged = append(r.Damaged, a.served.differ...)
		if !c.callee.Complete {
			unfinished++
		}
		r.Turns = append(r.Turns, a.judged...)
		var words []string
		for _, w := range a.words {
			if w := wording.Normal(strings.ReplaceAll(w.Raw, "~", "")); w != "" {
				words = append(words, w)
			}
		}
		r.words = append(r.words, words)
	}
	r.answers()
	r.ends(s)
	r.pauses()
	r.interjections()
	r.count("doubled_words", "answers with a word heard twice", never, r.tally(func(t Turn) bool { return t.Answer.Doubled > 0 }), len(r.Turns))
	two := func(t Turn) bool { return t.Answers > 1 }
	r.count("double_answers", "turns with two answers, but for those cut off after a complete clause", never, r.tally(func(t Turn) bool { return two(t) && !t.split() }), len(r.Turns))
	r.count("double_answers_after_clauses", "turns with two answers, cut off after a complete clause", freely, r.tally(func(t Turn) bool { return two(t) && t.split() }), r.tally(Turn.split))
	r.count("stale_answers", "answers heard after a later one began", never, r.tally(func(t Turn) bool { return t.Stale > 0 }), len(r.Turns))
	r.count("ghosts", "turns on the record that nobody said", never, len(r.Ghosts), len(r.Turns))
	r.count("echoed_ghosts", "turns on the record that nobody said, where the line echoes", never, len(r.Echoed), len(r.of(script.Echo)))
	r.count("damaged", "turns on the record that came damaged", freely, len(r.Damaged), len(r.Turns))
	r.count("unfinished_calls", "calls that ended before their time", never, unfinished, len(s.order))
	return r, nil
}

// split tells that the turn was cut off where what was said could have been all:
// what came after it is another turn for any listener.
func (t Turn) split() bool { return t.Kind == corpus.Complete && len(t.CutOff) > 0 }

// of are the turns of some scenarios.
func (r *Report) of(names ...script.Name) []Turn {
	var all []Turn
	for _, t := range r.Turns {
		if slices.Contains(names, t.Scenario) {
			all = append(all, t)
		}
	}
	return all
}

// tally counts turns.
func (r *Report) tally(is func(Turn) bool) int { return tally(r.Turns, is) }

func tally(turns []Turn, is func(Turn) bool) int {
	n := 0
	for _, t := range turns {
		if is(t) {
			n++
		}
	}
	return n
}

// values are a measure of the turns that have it.
func values(turns []Turn, of func(Turn) *float64) []float64 {
	var all []float64
	for _, t := range turns {
		if v := of(t); v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// often is after how many cut-offs a caller is given as long as their own pauses
// ask for.
const often = 3

// agree is by how much the server and the callee's ear may differ, in ms.
const agree = 25

// hurried are the turns at whose end the caller had not been cut off so often.
func hurried(all []Turn) []Turn {
	cut := map[string]int{}
	var kept []Turn
	for _, t := range all { // those of a call in order
		if cut[t.Call] += t.False; cut[t.Call] < often {
			kept = append(kept, t)
		}
	}
	return kept
}

// Targets are for fakes with a partial lag of 100 ms, a first token after 200
// and a first byte after 100: with speculation their critical path is 400 ms.
func (r *Report) answers() {
	server := func(t Turn) *float64 {
		if t.Merged > 0 {
			return nil
		}
		return t.Server
	}
	plain, all := r.of(script.Plain), r.of(script.Plain, script.Pauses)
	r.time("turn_ms", "turn_ms, plain, not merged", within(450, 490, 0, 0), values(plain, server))
	r.time("turn_ms_all", "turn_ms, callers who pause among them", within(450, 490, 0, 0), values(all, server))
	r.time("turn_ms_hurried", "turn_ms, of callers who were not cut off three times", within(450, 490, 0, 0), values(hurried(all), server))
	wire := func(t Turn) *float64 { return t.Wire }
	r.time("wire_ms", "last packet → first audible one, plain", nil, values(plain, wire))
	r.time("wire_ms_mid_clause", "last packet → first audible one, after mid-clause pauses", nil, values(kind(all, corpus.MidClause), wire))
	r.time("wire_ms_complete_clause", "last packet → first audible one, after complete-clause pauses", nil, values(kind(all, corpus.Complete), wire))
	r.time("ear_ms", "mouth to ear, plain", nil, values(plain, func(t Turn) *float64 { return t.Ear }))
	r.time("overhead_ms", "overhead on the wire: neither script's nor policy's", within(25, 35, 50, 0), values(all, func(t Turn) *float64 { return t.Own }))
	r.time("ear_overhead_ms", "the same at the ear, packets being filled included", within(25, 35, 50, 0), values(all, func(t Turn) *float64 { return t.OwnEar }))
	r.time("agreement_ms", "turn_ms against the wire, off by", within(0, 0, 0, 25), values(r.Turns, func(t Turn) *float64 {
		if t.Apart == nil {
			return nil
		}
		d := math.Abs(*t.Apart)
		return &d
	}))
	r.time("agreement_clear_ms", "the same, where nothing at the edges explains it", nil, values(r.Turns, func(t Turn) *float64 {
		if t.Apart == nil || t.Why != "" {
			return nil
		}
		d := math.Abs(*t.Apart)
		return &d
	}))
	off := func(t Turn) bool { return t.Apart != nil && math.Abs(*t.Apart) > agree }
	told := r.tally(func(t Turn) bool { return t.Apart != nil })
	r.count("unexplained", "turn_ms off by more than 25 ms, and nothing explains it", never, r.tally(func(t Turn) bool { return off(t) && t.Why == "" }), told)
	r.count("explained", "the same, a packet at the edge being lost or late", freely, r.tally(func(t Turn) bool { return off(t) && t.Why != "" }), told)
	answered := func(t Turn) bool { return t.Wire != nil && !t.keys }
	r.count("untold", "answered turns without turn_ms", never, r.tally(func(t Turn) bool { return answered(t) && t.Untold }), r.tally(answered))
	r.count("unheld", "answered turns that came in parts, whose turn_ms is held against nothing", freely,
		r.tally(func(t Turn) bool { return answered(t) && t.Apart == nil && !t.Untold }), r.tally(answered))
	asked := tally(r.Turns, func(t Turn) bool { return t.Wire != nil || t.Dead })
	r.count("dead_turns", "turns without an answer", never, r.tally(func(t Turn) bool { return t.Dead }), asked)
}

func kind(turns []Turn, k corpus.Kind) []Turn {
	return slices.DeleteFunc(slices.Clone(turns), func(t Turn) bool { return t.Kind != k })
}

func (r *Report) pauses() {
	all := r.of(script.Pauses)
	for _, g := range []struct {
		key, name string
		most      float64
		turns     []Turn
	}{
		{"mid_clause", "mid-clause", rarely, kind(all, corpus.MidClause)}, // the others are told apart: only a guess can know
		{"complete_clause", "complete clause", freely, kind(all, corpus.Complete)}, {"all", "all", freely, all},
	} {
		n, cut, early := 0, 0, 0
		for _, t := range g.turns {
			n, cut, early = n+t.Pauses, cut+len(t.CutOff), early+min(t.Pauses, t.False)
		}
		r.count("cut_offs_"+g.key, "audible cut-offs, "+g.name+" pauses", g.most, cut, n)
		r.count("false_commits_"+g.key, "commits inside, "+g.name+" pauses", freely, early, n)
		r.count("not_one_answer_"+g.key, "not one message and one answer, "+g.name, g.most, tally(g.turns, func(t Turn) bool { return !t.Correct }), len(g.turns))
	}
}

func (r *Report) interjections() {
	barge := hits(r.of(script.BargeIn))
	r.time("stop_ms", "barge-in: stop", within(180, 300, 0, 0), values(barge, func(t Turn) *float64 { return t.Into.Stop }))
	r.time("duck_ms", "barge-in: duck", within(0, 90, 0, 0), values(barge, func(t Turn) *float64 { return t.Into.Duck }))
	r.count("unstopped", "barge-ins that did not stop the agent", never, tally(barge, func(t Turn) bool { return t.Into.Stop == nil }), len(barge))
	r.count("leaks", "barge-ins with words leaking after the stop", never, tally(barge, func(t Turn) bool { return t.Into.Leak > 0 }), len(barge))
	for _, n := range []script.Name{script.Cough, script.Backchannel, script.Resume} {
		all := hits(r.of(n))
		r.count(string(n)+"_paused", string(n)+": answers paused", freely, tally(all, func(t Turn) bool { return t.Into.Stop != nil }), len(all))
		lost, words := r.lost(n)
		r.count(string(n)+"_lost", string(n)+": answers lost", seldom, lost, len(all))
		r.count(string(n)+"_words_lost", string(n)+": words not heard", never, words, script.ManyWords*len(all))
	}
	echo := r.of(script.Echo)
	r.count("echo_lost", "echo at -20 dB: answers lost", seldom, tally(echo, func(t Turn) bool { return !t.Whole }), len(echo))
	r.time("resume_ms", "pause to resume, after the noise", within(0, 0, 0, 700), values(hits(r.of(script.Cough, script.Backchannel, script.Resume)), func(t Turn) *float64 { return t.Into.Resume }))
	r.spread("heard_off", "words the server is wrong about, cut answers", "words", within(0, 1, 0, 0), values(r.Turns, func(t Turn) *float64 {
		if t.Off == nil {
			return nil
		}
		off := float64(*t.Off)
		return &off
	}))
}

// hits are the lines that were said while the agent spoke.
func hits(turns []Turn) []Turn {
	return slices.DeleteFunc(turns, func(t Turn) bool { return t.Into == nil || !t.Into.Hit })
}

// lost counts, of a scenario, the answers that were not heard to their end
// because something came into them, and the words of answers that were missed.
func (r *Report) lost(n script.Name) (answers, words int) {
	turns := r.of(n)
	for i, t := range turns {
		if t.Into == nil || !t.Into.Hit || i == 0 {
			continue
		}
		of := turns[i-1]
		if !of.Whole {
			answers++
		}
		words += of.Answer.Lost + of.Answer.Cut
	}
	return answers, words
}

// worst are the n turns that a caller would complain of most.
func (r *Report) worst(n int) []Turn {
	bad := func(t Turn) float64 {
		b := 0.0
		if t.Dead {
			b += 1e6
		}
		b += 1e5*float64(len(t.CutOff)) + 1e4*float64(t.Answer.Doubled+t.Stale)
		if t.Into != nil && t.Into.Stop != nil && t.Scenario == script.BargeIn {
			b += *t.Into.Stop
		}
		if t.Wire != nil {
			b += *t.Wire
		}
		return b
	}
	all := slices.Clone(r.Turns)
	slices.SortStableFunc(all, func(a, b Turn) int { return cmp.Compare(bad(b), bad(a)) })
	return all[:min(n, len(all))]
}
