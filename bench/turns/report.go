package turns

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
)

// A Report is the result of a run.
type Report struct {
	Metrics []result.Metric
	Turns   []Turn
	// Unspoken are lines that the server recorded but the caller did not speak. UnspokenEchoed
	// are those of calls with echo.
	Unspoken, UnspokenEchoed []string
	// Damaged are lines that the server recorded with wrong text. Causes are a stalled machine,
	// and two lines that were joined.
	Damaged []string
	// Late is the lateness of each tick of the callees' clock, in ms.
	Late []float64

	calls map[string]*call
	words [][]string // words that each callee heard
}

// within returns upper bounds of quantiles; 0 means no bound.
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

// Limits for the share of a count.
const (
	never  = 0.0
	rarely = .02
	seldom = .03
	freely = 1.0 // no target
)

// count adds a count. most is its largest share.
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

// Missed returns the names of the metrics that missed their target.
func (r *Report) Missed() []string {
	var all []string
	for _, m := range r.Metrics {
		if m.Judge() == result.Missed {
			all = append(all, m.Name)
		}
	}
	return all
}

// report analyzes all calls.
func (s *session) report() (*Report, error) {
	r := &Report{calls: s.calls, Late: s.late.Late()}
	unfinished := 0
	for _, id := range s.order {
		c := s.calls[id]
		a, err := c.judge()
		if err != nil {
			return nil, err
		}
		if c.Name == scenario.Echo {
			r.UnspokenEchoed = append(r.UnspokenEchoed, a.served.unspoken...)
		} else {
			r.Unspoken = append(r.Unspoken, a.served.unspoken...)
		}
		r.Damaged = append(r.Damaged, a.served.damaged...)
		if !c.callee.Complete {
			unfinished++
		}
		r.Turns = append(r.Turns, a.turns...)
		var words []string
		for _, w := range a.words {
			if w := providers.Normalize(strings.ReplaceAll(w.Raw, "~", "")); w != "" {
				words = append(words, w)
			}
		}
		r.words = append(r.words, words)
	}
	r.answers()
	r.ends(s)
	r.pauses()
	r.interjections()
	r.count("doubled_words", "answers with a word heard twice", never, r.tally(func(t Turn) bool { return t.Answer.Doubled > 0 }),
		len(r.Turns))
	two := func(t Turn) bool { return t.Answers > 1 }
	r.count("double_answers", "turns with two answers, unless cut off after a complete clause", never,
		r.tally(func(t Turn) bool { return two(t) && !t.split() }), len(r.Turns))
	r.count("double_answers_after_clauses", "turns with two answers, cut off after a complete clause", freely,
		r.tally(func(t Turn) bool { return two(t) && t.split() }), r.tally(Turn.split))
	r.count("stale_answers", "answers heard after a later answer started", never, r.tally(func(t Turn) bool { return t.Stale > 0 }),
		len(r.Turns))
	r.count("ghosts", "recorded turns without speech", never, len(r.Unspoken), len(r.Turns))
	r.count("echoed_ghosts", "recorded turns without speech, caller's line with echo", never, len(r.UnspokenEchoed), len(r.of(scenario.Echo)))
	r.count("damaged", "recorded turns with damaged text", freely, len(r.Damaged), len(r.Turns))
	r.count("unfinished_calls", "calls that ended early", never, unfinished, len(s.order))
	return r, nil
}

// split reports whether the turn was cut off after a complete clause. Any listener would then
// take the rest for another turn.
func (t Turn) split() bool { return t.Kind == corpus.Complete && len(t.CutOff) > 0 }

// of returns the turns of the named scenarios.
func (r *Report) of(names ...scenario.Name) []Turn {
	var all []Turn
	for _, t := range r.Turns {
		if slices.Contains(names, t.Scenario) {
			all = append(all, t)
		}
	}
	return all
}

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

// values returns a figure of the turns that have it.
func values(turns []Turn, of func(Turn) *float64) []float64 {
	var all []float64
	for _, t := range turns {
		if v := of(t); v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// agree is the tolerated difference in ms between turn_ms and the audio.
const agree = 25

// hurried returns the turns of each call before its first cut-off.
func hurried(all []Turn) []Turn {
	cut := map[string]int{}
	var kept []Turn
	for _, t := range all { // the turns of a call are in order
		if cut[t.Call] += t.False; cut[t.Call] == 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

// answers adds the response times. The targets assume 100 ms to the partial transcript, 200 ms to
// the first token and 100 ms to the first byte. With speculation, the critical path is 400 ms.
func (r *Report) answers() {
	server := func(t Turn) *float64 {
		if t.Merged > 0 {
			return nil
		}
		return t.Server
	}
	plain, all := r.of(scenario.Plain), r.of(scenario.Plain, scenario.Pauses)
	r.time("turn_ms", "turn_ms, plain, not merged", within(450, 490, 0, 0), values(plain, server))
	r.time("turn_ms_all", "turn_ms, including callers who pause", within(450, 700, 0, 0), values(all, server))
	r.time("turn_ms_hurried", "turn_ms, turns before a caller's first cut-off", within(450, 490, 0, 0), values(hurried(all), server))
	wire := func(t Turn) *float64 { return t.Wire }
	r.time("wire_ms", "last packet → first audible packet, plain", nil, values(plain, wire))
	r.time("wire_ms_mid_clause", "last packet → first audible packet, after mid-clause pauses", nil, values(kind(all, corpus.MidClause), wire))
	r.time("wire_ms_complete_clause", "last packet → first audible packet, after complete-clause pauses", nil,
		values(kind(all, corpus.Complete), wire))
	r.time("ear_ms", "mouth to ear, plain", nil, values(plain, func(t Turn) *float64 { return t.Ear }))
	r.time("overhead_ms", "overhead on the wire, beyond providers and policy", within(25, 35, 50, 0),
		values(all, func(t Turn) *float64 { return t.Own }))
	r.time("ear_overhead_ms", "overhead mouth to ear, including packetization", within(25, 35, 50, 0),
		values(all, func(t Turn) *float64 { return t.OwnEar }))
	r.time("agreement_ms", "error of the reported turn_ms, compared with the wire", within(0, 0, 0, 25),
		values(r.Turns, func(t Turn) *float64 {
			if t.Apart == nil {
				return nil
			}
			d := math.Abs(*t.Apart)
			return &d
		}))
	r.time("agreement_clear_ms", "error of the reported turn_ms, compared with the wire, no packet loss or delay", nil,
		values(r.Turns, func(t Turn) *float64 {
			if t.Apart == nil || t.Why != "" {
				return nil
			}
			d := math.Abs(*t.Apart)
			return &d
		}))
	off := func(t Turn) bool { return t.Apart != nil && math.Abs(*t.Apart) > agree }
	compared := r.tally(func(t Turn) bool { return t.Apart != nil })
	r.count("unexplained", "turn_ms off by more than 25 ms, unexplained", never,
		r.tally(func(t Turn) bool { return off(t) && t.Why == "" }), compared)
	r.count("explained", "turn_ms off by more than 25 ms, packet lost or late", freely,
		r.tally(func(t Turn) bool { return off(t) && t.Why != "" }), compared)
	answered := func(t Turn) bool { return t.Wire != nil && !t.keys }
	r.count("untold", "answered turns without turn_ms", never, r.tally(func(t Turn) bool { return answered(t) && t.Untold }),
		r.tally(answered))
	r.count("unheld", "answered turns in parts, turn_ms not verified", freely,
		r.tally(func(t Turn) bool { return answered(t) && t.Apart == nil && !t.Untold }), r.tally(answered))
	expected := tally(r.Turns, func(t Turn) bool { return t.Wire != nil || t.Dead })
	r.count("dead_turns", "turns without an answer", never, r.tally(func(t Turn) bool { return t.Dead }), expected)
}

func kind(turns []Turn, k corpus.Kind) []Turn {
	return slices.DeleteFunc(slices.Clone(turns), func(t Turn) bool { return t.Kind != k })
}

func (r *Report) pauses() {
	all := r.of(scenario.Pauses)
	for _, g := range []struct {
		key, name string
		most      float64
		turns     []Turn
	}{
		// Only mid-clause pauses have a target, because a complete clause may be the end of a turn.
		{"mid_clause", "mid-clause", rarely, kind(all, corpus.MidClause)},
		{"complete_clause", "complete clause", freely, kind(all, corpus.Complete)},
		{"all", "all", freely, all},
	} {
		n, cut, early := 0, 0, 0
		for _, t := range g.turns {
			n, cut, early = n+t.Pauses, cut+len(t.CutOff), early+min(t.Pauses, t.False)
		}
		r.count("cut_offs_"+g.key, "audible cut-offs, "+g.name+" pauses", g.most, cut, n)
		r.count("false_commits_"+g.key, "turns ended inside, "+g.name+" pauses", freely, early, n)
		r.count("not_one_answer_"+g.key, "turn not taken as one message with one answer, "+g.name, g.most,
			tally(g.turns, func(t Turn) bool { return !t.Correct }), len(g.turns))
	}
}

func (r *Report) interjections() {
	barge := hits(r.of(scenario.BargeIn))
	r.time("stop_ms", "barge-in: time to stop", within(180, 300, 0, 0), values(barge, func(t Turn) *float64 { return t.Into.Stop }))
	r.time("duck_ms", "barge-in: time to duck", within(0, 90, 0, 0), values(barge, func(t Turn) *float64 { return t.Into.Duck }))
	r.count("unstopped", "barge-ins that did not stop the agent", never, tally(barge, func(t Turn) bool { return t.Into.Stop == nil }),
		len(barge))
	r.count("leaks", "barge-ins with words heard after the stop", never, tally(barge, func(t Turn) bool { return t.Into.Leak > 0 }),
		len(barge))
	for _, n := range []scenario.Name{scenario.Cough, scenario.Backchannel, scenario.Resume} {
		all := hits(r.of(n))
		r.count(string(n)+"_paused", string(n)+": answers paused", freely, tally(all, func(t Turn) bool { return t.Into.Stop != nil }), len(all))
		lost, words := r.lost(n)
		r.count(string(n)+"_lost", string(n)+": answers lost", seldom, lost, len(all))
		r.count(string(n)+"_words_lost", string(n)+": words not heard", never, words, scenario.ManyWords*len(all))
	}
	echo := r.of(scenario.Echo)
	r.count("echo_lost", "echo at -20 dB: answers lost", seldom, tally(echo, func(t Turn) bool { return !t.Whole }), len(echo))
	r.time("resume_ms", "noise: pause to resume", within(0, 0, 0, 700),
		values(hits(r.of(scenario.Cough, scenario.Backchannel, scenario.Resume)), func(t Turn) *float64 { return t.Into.Resume }))
	r.spread("heard_off", "interrupted answers: wrong words in the transcript", "words", within(0, 1, 0, 0),
		values(r.Turns, func(t Turn) *float64 {
			if t.Off == nil {
				return nil
			}
			off := float64(*t.Off)
			return &off
		}))
}

// hits returns the lines that started while the agent spoke.
func hits(turns []Turn) []Turn {
	return slices.DeleteFunc(turns, func(t Turn) bool { return t.Into == nil || !t.Into.Hit })
}

// lost returns how many answers were interrupted and not resumed to their end, and how many words
// of interrupted answers were not heard.
func (r *Report) lost(n scenario.Name) (answers, words int) {
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

// worst returns the n turns with the worst faults.
func (r *Report) worst(n int) []Turn {
	bad := func(t Turn) float64 {
		b := 0.0
		if t.Dead {
			b += 1e6
		}
		b += 1e5*float64(len(t.CutOff)) + 1e4*float64(t.Answer.Doubled+t.Stale)
		if t.Into != nil && t.Into.Stop != nil && t.Scenario == scenario.BargeIn {
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
