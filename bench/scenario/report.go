package scenario

import (
	"cmp"
	"math"
	"slices"

	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/pipeline"
)

// A Report is what a run showed.
type Report struct {
	Seed    uint64   `json:"seed"`
	Calls   int      `json:"calls"` // at a time
	Without []string `json:"without,omitempty"`
	Times   []Time   `json:"times"`
	Counts  []Count  `json:"counts"`
	Turns   []Turn   `json:"turns"`
	// What the server put on the record, by call: the caller's lines, and the
	// agent's behind ">".
	Lines map[string][]string `json:"lines"`
	// What the server heard and nobody said; Echoed where the line echoes.
	Ghosts []string `json:"ghosts,omitempty"`
	Echoed []string `json:"echoed,omitempty"`
	// Damaged came otherwise than they were said: the machine stood still, or
	// two were glued together.
	Damaged []string `json:"damaged,omitempty"`

	calls map[string]*played
}

// A Time is a measure in milliseconds.
type Time struct {
	What   string  `json:"what"`
	N      int     `json:"n"`
	P50    float64 `json:"p50"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
	Target string  `json:"target,omitempty"`
	Met    bool    `json:"met,omitempty"`
}

// A Count is how often something happened.
type Count struct {
	What   string `json:"what"`
	N      int    `json:"n"` // how often it could have
	Times  int    `json:"times"`
	Target string `json:"target,omitempty"`
	Met    bool   `json:"met,omitempty"`
}

// Share is the part of the times it could have that it did happen.
func (c Count) Share() float64 { return float64(c.Times) / float64(max(1, c.N)) }

// quantile is the p-quantile of sorted values, 0 of none.
func quantile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return v[min(len(v)-1, max(0, int(math.Ceil(p*float64(len(v))))-1))]
}

// A target holds a measure to limits of its quantiles; 0 is no limit.
type target struct {
	text               string
	p50, p95, p99, max float64
}

func (r *Report) time(what string, want target, values []float64) {
	slices.Sort(values)
	t := Time{
		What: what, N: len(values), Target: want.text,
		P50: quantile(values, .5), P95: quantile(values, .95), P99: quantile(values, .99), Max: quantile(values, 1),
	}
	t.Met = t.N > 0
	for _, x := range [][2]float64{{t.P50, want.p50}, {t.P95, want.p95}, {t.P99, want.p99}, {t.Max, want.max}} {
		t.Met = t.Met && (x[1] == 0 || x[0] <= x[1])
	}
	r.Times = append(r.Times, t)
}

// count adds a measure whose share must be at most; less than 0 is no target.
func (r *Report) count(what, text string, most float64, times, n int) {
	c := Count{What: what, N: n, Times: times, Target: text}
	c.Met = n > 0 && c.Share() <= most
	r.Counts = append(r.Counts, c)
}

// Missed are the measures whose targets the run did not meet.
func (r *Report) Missed() []string {
	var all []string
	for _, t := range r.Times {
		if t.Target != "" && t.N > 0 && !t.Met {
			all = append(all, t.What)
		}
	}
	for _, c := range r.Counts {
		if c.Target != "" && c.N > 0 && !c.Met {
			all = append(all, c.What)
		}
	}
	return all
}

// report judges all calls.
func (s *stage) report() (*Report, error) {
	r := &Report{Seed: s.Seed, Calls: s.Calls, Without: s.Without, calls: s.calls, Lines: map[string][]string{}}
	unfinished := 0
	for _, id := range s.order {
		c := s.calls[id]
		a, err := c.judge()
		if err != nil {
			return nil, err
		}
		if c.name == Echo {
			r.Echoed = append(r.Echoed, a.served.ghosts...)
		} else {
			r.Ghosts = append(r.Ghosts, a.served.ghosts...)
		}
		r.Damaged = append(r.Damaged, a.served.differ...)
		if !c.callee.Complete {
			unfinished++
		}
		r.Turns = append(r.Turns, a.judged...)
		for _, l := range c.server.Lines {
			if l.Role == pipeline.RoleAgent {
				l.Text = "> " + l.Text
			}
			r.Lines[id] = append(r.Lines[id], l.Text)
		}
	}
	r.answers()
	r.pauses()
	r.interjections()
	r.count("answers with a word heard twice", "0", 0, r.tally(func(t Turn) bool { return t.Answer.Doubled > 0 }), len(r.Turns))
	two := func(t Turn) bool { return t.Answers > 1 }
	r.count("turns with two answers, but for those below", "0", 0, r.tally(func(t Turn) bool { return two(t) && !t.split() }), len(r.Turns))
	r.count("the same, cut off after a complete clause", "", 1, r.tally(func(t Turn) bool { return two(t) && t.split() }), r.tally(Turn.split))
	r.count("answers heard after a later one began", "0", 0, r.tally(func(t Turn) bool { return t.Stale > 0 }), len(r.Turns))
	r.count("turns on the record that nobody said", "0", 0, len(r.Ghosts), len(r.Turns))
	r.count("the same where the line echoes", "0", 0, len(r.Echoed), len(r.of(Echo)))
	r.count("turns on the record that came damaged", "", 1, len(r.Damaged), len(r.Turns))
	r.count("calls that ended before their time", "0", 0, unfinished, len(s.order))
	return r, nil
}

// split tells that the turn was cut off where what was said could have been all:
// what came after it is another turn for any listener.
func (t Turn) split() bool { return t.Kind == corpus.Complete && len(t.CutOff) > 0 }

// of are the turns of some scenarios.
func (r *Report) of(names ...Name) []Turn {
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
	plain, all := r.of(Plain), r.of(Plain, Pauses)
	r.time("turn_ms, plain, not merged", target{"≤ 450 / 490", 450, 490, 0, 0}, values(plain, server))
	r.time("the same with the turns of callers who pause", target{"≤ 450 / 490", 450, 490, 0, 0}, values(all, server))
	r.time("of callers who were not cut off three times", target{"≤ 450 / 490", 450, 490, 0, 0}, values(hurried(all), server))
	wire := func(t Turn) *float64 { return t.Wire }
	r.time("last packet → first audible one, plain", target{}, values(plain, wire))
	r.time("the same after mid-clause pauses", target{}, values(kind(all, corpus.MidClause), wire))
	r.time("the same after complete-clause pauses", target{}, values(kind(all, corpus.Complete), wire))
	r.time("mouth to ear, plain", target{}, values(plain, func(t Turn) *float64 { return t.Ear }))
	r.time("of it neither script's nor policy's", target{"≤ 25 / 35 / 50", 25, 35, 50, 0}, values(all, func(t Turn) *float64 { return t.Own }))
	r.time("turn_ms against the wire, off by", target{"≤ 25", 0, 0, 0, 25}, values(r.Turns, func(t Turn) *float64 {
		if t.Wire == nil || t.Server == nil || t.Merged > 0 { // a merged turn's phases are its first fragment's
			return nil
		}
		d := math.Abs(*t.Wire - *t.Server)
		return &d
	}))
	asked := tally(r.Turns, func(t Turn) bool { return t.Wire != nil || t.Dead })
	r.count("turns without an answer", "0", 0, r.tally(func(t Turn) bool { return t.Dead }), asked)
}

func kind(turns []Turn, k corpus.Kind) []Turn {
	return slices.DeleteFunc(slices.Clone(turns), func(t Turn) bool { return t.Kind != k })
}

func (r *Report) pauses() {
	all := r.of(Pauses)
	for _, g := range []struct {
		name, target string
		most         float64
		turns        []Turn
	}{
		{"mid-clause", "≤ 2 %", .02, kind(all, corpus.MidClause)}, // the others are told apart: only a guess can know
		{"complete clause", "", 1, kind(all, corpus.Complete)}, {"all", "", 1, all},
	} {
		n, cut, early := 0, 0, 0
		for _, t := range g.turns {
			n, cut, early = n+t.Pauses, cut+len(t.CutOff), early+min(t.Pauses, t.False)
		}
		r.count("audible cut-offs, "+g.name+" pauses", g.target, g.most, cut, n)
		r.count("commits inside, "+g.name+" pauses", "", 1, early, n)
		r.count("not one message and one answer, "+g.name, g.target, g.most, tally(g.turns, func(t Turn) bool { return !t.Correct }), len(g.turns))
	}
}

func (r *Report) interjections() {
	barge := hits(r.of(BargeIn))
	r.time("barge-in: stop", target{"≤ 180 / 300", 180, 300, 0, 0}, values(barge, func(t Turn) *float64 { return t.Into.Stop }))
	r.time("barge-in: duck", target{"p95 ≤ 90", 0, 90, 0, 0}, values(barge, func(t Turn) *float64 { return t.Into.Duck }))
	r.count("barge-ins that did not stop the agent", "0", 0, tally(barge, func(t Turn) bool { return t.Into.Stop == nil }), len(barge))
	r.count("barge-ins with words leaking after the stop", "0", 0, tally(barge, func(t Turn) bool { return t.Into.Leak > 0 }), len(barge))
	for _, n := range []Name{Cough, Backchannel, Resume} {
		all := hits(r.of(n))
		r.count(string(n)+": answers paused", "", 1, tally(all, func(t Turn) bool { return t.Into.Stop != nil }), len(all))
		lost, words := r.lost(n)
		r.count(string(n)+": answers lost", "≤ 3 %", .03, lost, len(all))
		r.count(string(n)+": words not heard", "0", 0, words, manyWords*len(all))
	}
	echo := r.of(Echo)
	r.count("echo at -20 dB: answers lost", "≤ 3 %", .03, tally(echo, func(t Turn) bool { return !t.Whole }), len(echo))
	r.time("pause to resume, after the noise", target{"≤ 700", 0, 0, 0, 700}, values(hits(r.of(Cough, Backchannel, Resume)), func(t Turn) *float64 { return t.Into.Resume }))
	r.time("words the server is wrong about, cut answers", target{"p95 ≤ 1", 0, 1, 0, 0}, values(r.Turns, func(t Turn) *float64 {
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
func (r *Report) lost(n Name) (answers, words int) {
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
		if t.Into != nil && t.Into.Stop != nil && t.Scenario == BargeIn {
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
