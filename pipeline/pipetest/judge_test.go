package pipetest_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

type question struct {
	at       time.Duration
	messages []fakeprovider.Message
	words    int // number of words of its answer
}

// A recording is the data that the judge has of a call.
type recording struct {
	heard    []int16     // what the caller heard, from the start of the call
	said     []utterance // what the caller said and did
	asked    []question  // requests to the model, in order
	outcome  pipeline.Outcome
	over     time.Duration // when the call ended
	asrFails bool          // the recognizer fails: words may be lost
	ttsFails bool          // the voice fails: the end of an answer may be unknown
	returns  bool          // the line has echo: words may be damaged
}

// Findings.
const (
	deadAir  = "dead air"  // silence while the caller waits
	dead     = "dead"      // words without an answer or an apology
	doubled  = "doubled"   // words that were answered twice
	stale    = "stale"     // an answer that ignores words that the caller had said before it
	unheard  = "unheard"   // words in the history that the caller did not hear
	lost     = "lost"      // words that the caller heard and that the history lacks
	replayed = "replayed"  // words of the agent that the caller heard twice
	repeated = "repeated"  // words of the caller that the model received twice
	ending   = "ending"    // a turn without exactly one ending
	phases   = "phases"    // phases that do not add up
	numbers  = "numbering" // turns that are not numbered in order
)

type finding struct{ what, why string }

// Times of the judge.
const (
	longestSilence = 4 * time.Second
	faultTime      = 2500 * time.Millisecond // maximum time from dueTime to an answer
	dueTime        = 400 * time.Millisecond  // time from the end of a complete sentence until its answer is due
	tolerance      = 100 * time.Millisecond  // time that the audio needs in both directions
	mergeWords     = 4                       // maximum number of words that the caller hears of a retracted answer
)

// judge looks for faults in one call.
type judge struct {
	recording
	words  []tone.Word // words that the caller heard
	played []played    // words of answers that the caller heard
	agent  []span      // when the agent was audible
	found  []finding
}

// judged returns the faults of a recording.
func judged(r recording) []finding {
	j := &judge{recording: r}
	j.words = j.wordsHeard()
	j.played = follow(j.words)
	j.agent = gapsFilled(runs(r.heard, rate), 60*time.Millisecond)
	j.silences()
	j.answers()
	j.doubles()
	j.order()
	j.ledger()
	j.history()
	j.turns()
	j.lines()
	return j.found
}

func (j *judge) wordsHeard() []tone.Word {
	return tone.NewDecoder(rate).Decode(append(slices.Clone(j.heard), make([]int16, rate/10)...))
}

func (j *judge) find(what, format string, args ...any) {
	j.found = append(j.found, finding{what, fmt.Sprintf(format, args...)})
}

// waiting reports whether an utterance needs an answer.
func (u utterance) waiting() bool { return u.kind == sentence || u.kind == keys }

// silences looks for dead air: after the caller spoke, the agent must be heard before both
// are silent for too long.
func (j *judge) silences() {
	for n, u := range j.said {
		if !u.waiting() || j.asrFails && j.mayBeLost(n) || n+1 < len(j.said) && j.said[n+1].span.from < u.span.to+longestSilence && j.said[n+1].waiting() {
			continue // the next utterance needs the answer
		}
		limit := longestSilence
		if u.kind == sentence && !u.open {
			limit = dueTime + faultTime
		}
		at := u.span.to
		for _, s := range j.both() {
			if s.to <= at {
				continue
			}
			if s.from > at+limit {
				break
			}
			at = s.to
			if j.speaks(max(s.from, u.span.to+tolerance), s.to) {
				at = -1
				break
			}
		}
		if at >= 0 && j.over > at+limit+tolerance && !j.ownEnd(at) {
			j.find(deadAir, "%s %v: nothing is heard in the %v after %v", u.text(), u.span, limit, at)
		}
	}
}

// ownEnd reports whether the agent ended the call because of an error, less than longestSilence after at.
func (j *judge) ownEnd(at time.Duration) bool {
	return j.outcome.Reason == pipeline.AgentError && j.over-at < longestSilence
}

func (j *judge) both() []span {
	all := slices.Clone(j.agent)
	for _, u := range j.said {
		all = append(all, u.span)
	}
	return gapsFilled(all, 0)
}

func (j *judge) speaks(from, to time.Duration) bool {
	return slices.ContainsFunc(j.agent, func(s span) bool { return s.to > from && s.from < to })
}

func (u utterance) text() string {
	var all []string
	for _, w := range u.words {
		all = append(all, w.Text)
	}
	return fmt.Sprintf("%s %q", u.kind, strings.Join(all, " "))
}

// open returns the messages after the model's last answer.
func (q question) open() string {
	var all []string
	for _, m := range q.messages {
		if m.Role == "assistant" {
			all = nil
		} else if m.Role != "system" {
			all = append(all, m.Content)
		}
	}
	return " " + strings.Join(all, " ") + " "
}

func (q question) asks(word string) bool { return strings.Contains(q.open(), " "+word+" ") }

// an answer is the part of one answer that the caller heard.
type answer struct {
	k        int
	from, to time.Duration
	words    int // words heard, including damaged ones
	whole    int // words heard without damage
}

// heardAnswers returns the answers of which the caller heard anything.
func (j *judge) heardAnswers() []answer {
	var all []answer
	for _, p := range j.played {
		if p.k >= len(j.asked) {
			continue
		}
		n := slices.IndexFunc(all, func(a answer) bool { return a.k == p.k })
		if n < 0 {
			n, all = len(all), append(all, answer{k: p.k, from: p.Start})
		}
		a := &all[n]
		a.to, a.words = p.End, max(a.words, p.i+1)
		if !p.damaged {
			a.whole = max(a.whole, p.i+1)
		}
	}
	return all
}

// answers looks for words of the caller without an answer.
func (j *judge) answers() {
	heard := j.heardAnswers()
	for n, u := range j.said {
		if u.kind != sentence || j.over < u.span.to+2*longestSilence || // the answer may still be prepared, after fillers
			j.excused(u) || j.hello(u) || j.inEcho(u) {
			continue
		}
		missing, own := "", 0
		for _, w := range u.words {
			if !isCallers(w.Text) {
				continue
			}
			own++
			if !slices.ContainsFunc(heard, func(a answer) bool { return j.asked[a.k].asks(w.Text) }) {
				missing += " " + w.Text
			}
		}
		if lostAll := len(strings.Fields(missing)) == own; missing != "" && (!j.asrFails || lostAll && !j.mayBeLost(n)) {
			j.find(dead, "utterance %d, %s %v: not answered:%s", n, u.text(), u.span, missing)
		}
	}
}

// excused reports whether the agent apologized after u, in words or by tones, before it
// answered anything.
func (j *judge) excused(u utterance) bool {
	until := j.over
	for _, p := range j.played {
		if p.Start > u.span.to {
			until = p.Start
			break
		}
	}
	for _, w := range j.words {
		if (strings.Contains(w.Text, "sor") || w.Text == "again?") && w.End > u.span.from && w.Start < until {
			return true
		}
	}
	for _, s := range j.agent {
		wordless := !slices.ContainsFunc(j.words, func(w tone.Word) bool { return w.Start < s.to && w.End > s.from })
		if wordless && s.to-s.from > 300*time.Millisecond && s.to > u.span.from && s.from < until {
			return true
		}
	}
	return false
}

// mayBeLost reports whether a failing recognizer may lose an utterance: it is as short as a
// cough, or the caller continued before the loss could be noticed.
func (j *judge) mayBeLost(n int) bool {
	u := j.said[n]
	if u.span.to-u.span.from < 600*time.Millisecond {
		return true
	}
	return slices.ContainsFunc(j.said[n+1:], func(v utterance) bool { return v.waiting() && v.span.from < u.span.to+faultTime })
}

// hello reports whether an utterance is a word or two during the greeting, which then
// continues.
func (j *judge) hello(u utterance) bool {
	n := 0
	for _, w := range u.words {
		if isCallers(w.Text) {
			n++
		}
	}
	return n <= 2 && slices.ContainsFunc(j.words, func(w tone.Word) bool { return w.Text == "parley" && w.End+300*time.Millisecond > u.span.from })
}

// inEcho reports whether u was said during the agent's speech on a line with echo.
func (j *judge) inEcho(u utterance) bool {
	return j.returns && j.speaks(u.span.from-500*time.Millisecond, u.span.to)
}

func (j *judge) doubles() {
	told := map[[2]int]bool{}
	for _, u := range j.said {
		for _, w := range u.words {
			if !isCallers(w.Text) {
				continue
			}
			var before *answer
			for _, a := range j.heardAnswers() {
				if !j.asked[a.k].asks(w.Text) {
					continue
				}
				if before != nil && (before.whole > mergeWords || !j.ttsFails && before.whole >= j.asked[before.k].words) && !told[[2]int{before.k, a.k}] {
					told[[2]int{before.k, a.k}] = true
					j.find(doubled, "%s is answered from %v (%d of %d words) and again from %v", w.Text, before.from, before.whole, j.asked[before.k].words, a.from)
				}
				before = &a
			}
		}
	}
}

func (j *judge) order() {
	newest := -1
	for _, p := range j.played {
		if p.k < newest {
			j.find(stale, "%q is heard at %v, after the answer to question %d", p.Text, p.Start, newest)
		}
		newest = max(newest, p.k)
	}
	ever := map[string]bool{} // words for which the fault was already found
	for _, a := range j.heardAnswers() {
		for n, u := range j.said {
			if u.kind != sentence || u.span.to+900*time.Millisecond > a.from || j.asrFails || j.excused(u) || j.hello(u) || j.inEcho(u) {
				continue
			}
			for _, w := range u.words {
				if isCallers(w.Text) && !j.told(a.k, w.Text) && !ever[w.Text] {
					j.find(stale, "answer %d begins at %v and knows nothing of %s, utterance %d, which ended at %v", a.k, a.from, w.Text, n, u.span.to)
					ever[w.Text] = true
					break
				}
			}
		}
	}
}

// told reports whether a request to the model contains a word.
func (j *judge) told(k int, word string) bool {
	return slices.ContainsFunc(j.asked[k].messages, func(m fakeprovider.Message) bool {
		return strings.Contains(" "+m.Content+" ", " "+word+" ")
	})
}

// spoken returns the number of the last answer that has words in text, or -1, and the number of its words.
func spoken(text string) (k, n int) {
	k = -1
	for w := range strings.FieldsSeq(text) {
		if a, i, ok := answerOf(w); ok {
			k, n = a, max(n, i+1)
		}
	}
	return k, n
}

func (j *judge) ledger() {
	heard := j.heardAnswers()
	lines := map[int]bool{}
	for _, l := range j.outcome.Lines {
		k, n := spoken(l.Text)
		if l.Role != pipeline.RoleAgent || k < 0 {
			continue
		}
		lines[k] = true
		var a answer
		if at := slices.IndexFunc(heard, func(a answer) bool { return a.k == k }); at >= 0 {
			a = heard[at]
		}
		switch {
		case n > a.words+1 || !l.Interrupted && n > a.words:
			j.find(unheard, "line %q, of which %d words were heard", l.Text, a.words)
		case n < a.whole-1 || !l.Interrupted && n < a.whole:
			j.find(lost, "line %q, of which %d words were heard", l.Text, a.whole)
		}
	}
	for _, a := range heard {
		if a.whole > 1 && !lines[a.k] {
			j.find(lost, "no line has the answer %d, of which %d words were heard from %v", a.k, a.whole, a.from)
		}
	}
	j.steps()
}

// steps looks for gaps and repetitions in the answers that the caller heard. One repeated word is no fault, because a
// pause repeats the word that it cut off.
func (j *judge) steps() {
	k, at := -1, -1
	for _, p := range j.played {
		if p.k != k {
			k, at = p.k, -1
		}
		switch {
		case p.i > at+1:
			j.find(lost, "after word %d of answer %d comes %d, at %v", at, k, p.i, p.Start)
		case p.i < at:
			j.find(replayed, "after word %d of answer %d comes %d, at %v", at, k, p.i, p.Start)
		}
		at = p.i
	}
}

// history checks the model's messages against the audible words.
func (j *judge) history() {
	heard := j.heardAnswers()
	for q, x := range j.asked {
		in := map[int]bool{}
		said := map[string]int{}
		for _, m := range x.messages {
			if m.Role == "user" {
				for w := range strings.FieldsSeq(m.Content) {
					if said[w]++; isCallers(w) && said[w] == 2 {
						j.find(repeated, "question %d has %s twice: %q", q, w, m.Content)
					}
				}
			}
			k, n := spoken(m.Content)
			if m.Role != "assistant" || k < 0 {
				continue
			}
			in[k] = true
			before := 0
			for _, p := range j.played {
				if p.k == k && p.Start < x.at {
					before = max(before, p.i+1)
				}
			}
			if n > before+1 {
				j.find(unheard, "question %d, at %v, says that the caller heard %q, of which it heard %d words", q, x.at, m.Content, before)
			}
		}
		for _, a := range heard {
			if a.whole > mergeWords && a.to+time.Second < x.at && !in[a.k] {
				j.find(lost, "question %d, at %v, has nothing of the answer %d, of which %d words were heard until %v", q, x.at, a.k, a.whole, a.to)
			}
		}
	}
}

func (j *judge) turns() {
	for i, t := range j.outcome.Turns {
		if t.Number != i {
			j.find(numbers, "turn %d has number %d", i, t.Number)
		}
		known := t.Ending == pipeline.Answered || t.Ending == pipeline.Interrupted || t.Ending == pipeline.Failed
		if !known || t.Interrupted != (t.Ending == pipeline.Interrupted) {
			j.find(ending, "turn %d ends in %q, interrupted %v", i, t.Ending, t.Interrupted)
		}
		j.sums(i, t)
	}
}

func (j *judge) lines() {
	for _, l := range j.outcome.Lines {
		if l.Text == "" || l.Start < 0 || l.End < l.Start || l.End > j.over+tolerance {
			j.find(numbers, "line %q from %v to %v", l.Text, l.Start, l.End)
		}
	}
}

func (j *judge) sums(i int, t pipeline.Turn) {
	var item struct {
		Metrics map[string]any `json:"metrics"`
	}
	b, err := json.Marshal(t)
	if err == nil {
		err = json.Unmarshal(b, &item)
	}
	if err != nil {
		j.find(phases, "turn %d: %v", i, err)
		return
	}
	sum, total := 0.0, item.Metrics["turn_ms"]
	for key, v := range item.Metrics {
		if ms, ok := v.(float64); ok && strings.HasSuffix(key, "_ms") && key != "turn_ms" {
			if sum += ms; ms < 0 {
				j.find(phases, "turn %d: %s is %v", i, key, ms)
			}
		}
	}
	if ms, ok := total.(float64); ok && math.Abs(ms-sum) > 1 || t.Ending == pipeline.Answered && !ok {
		j.find(phases, "turn %d: the phases add up to %v, and turn_ms is %v", i, sum, total)
	}
}
