package scenario

import (
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/script"
	"github.com/parley-voice/parley/bench/wording"
)

// Limits of what is judged.
const (
	silence = 200 * time.Millisecond // that ends a stretch of speech
	overlap = 50 * time.Millisecond  // of two voices that nobody minds
	start   = 3                      // words that are a start at an answer, and no answer yet
)

// A Turn is one line of a callee and what came of it. Times are in ms; those
// that could not be measured are absent.
type Turn struct {
	Call     string      `json:"call"`
	Scenario script.Name `json:"scenario"`
	Number   int         `json:"number"`
	Text     string      `json:"text,omitempty"`
	Kind     corpus.Kind `json:"kind,omitempty"` // of its pauses

	// How long the answer took.
	Wire   *float64 `json:"wire_ms,omitempty"`    // last voiced packet left → first audible packet came
	Ear    *float64 `json:"ear_ms,omitempty"`     // last sample spoken → first sample heard
	Server *float64 `json:"server_ms,omitempty"`  // turn_ms
	Own    *float64 `json:"own_ms,omitempty"`     // of Wire, what no provider and no policy asked for
	OwnEar *float64 `json:"ear_own_ms,omitempty"` // of Ear, likewise, without the phone's jitter buffer
	// Apart is by how much Server is off what passed at its end, and Why what
	// explains that, where something does.
	Apart  *float64 `json:"apart_ms,omitempty"`
	Untold bool     `json:"untold,omitempty"` // the server has no turn_ms of it
	Why    string   `json:"why,omitempty"`
	Ending string   `json:"ending,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Dead   bool     `json:"dead,omitempty"` // it was to be answered, and nothing came

	// What became of its pauses.
	Pauses  int   `json:"pauses,omitempty"`
	False   int   `json:"false_commits,omitempty"`
	CutOff  []int `json:"cut_off,omitempty"` // after which of them (from 0) the agent talked into the turn
	Lines   int   `json:"lines,omitempty"`   // that the server made of the turn
	Merged  int   `json:"merged_from,omitempty"`
	Correct bool  `json:"one_message,omitempty"` // one line, one message to the model, one answer

	// What became of the answer.
	Answer  acoustic.Comparison `json:"answer"`
	Whole   bool                `json:"whole,omitempty"`     // it was heard to its end
	Stale   int                 `json:"stale,omitempty"`     // words of it heard after a later answer began
	Answers int                 `json:"answers,omitempty"`   // different ones that were heard
	Off     *int                `json:"words_off,omitempty"` // of an answer that was cut: words that the server is wrong about

	Into *Interjection `json:"into,omitempty"`

	Phases []result.Phase `json:"phases,omitempty"` // of Server

	Words []string `json:"words,omitempty"` // all that was heard from the turn's beginning to the next

	from, to time.Time // of the turn and its answer
	keys     bool      // it was pressed
}

// An Interjection is what a line that was said into an answer did to it.
type Interjection struct {
	Hit    bool     `json:"hit"`               // the agent was speaking
	Stop   *float64 `json:"stop_ms,omitempty"` // first packet left → last audible sample came
	Duck   *float64 `json:"duck_ms,omitempty"` // → first sample that is 9 dB softer, where the step is inside a word
	Leak   int      `json:"leak,omitempty"`    // words of the answer heard after it had stopped
	Resume *float64 `json:"resume_ms,omitempty"`
}

func ms(d time.Duration) *float64 {
	v := float64(d) / float64(time.Millisecond)
	return &v
}

// An analysis is a call that is being judged.
type analysis struct {
	*played
	heardAt []time.Time // each frame
	levels  acoustic.Levels
	speech  []acoustic.Span // of the agent
	words   []acoustic.Heard
	from    map[string][]source
	begun   []int // sample of what was heard at which each line began
	served  served
	judged  []Turn
}

// judge measures a call.
func (c *played) judge() (a *analysis, err error) {
	a = &analysis{played: c, from: sources(c.Turns)}
	h := c.callee.Heard
	a.heardAt = h.Played()
	a.levels = acoustic.Measure(h.PCM, rate)
	a.speech = a.levels.Stretches(int(silence * rate / time.Second))
	if a.served, err = c.align(); err != nil {
		return nil, err
	}
	for text, i := range a.served.places {
		a.from[wording.Stem(text)] = append(a.from[wording.Stem(text)], source{turn: i})
	}
	last := ""
	a.words = acoustic.Words(h.PCM, rate, func(w string) string {
		if w = known(a.from, last, w); w != "" {
			last = w
		}
		return w
	}, func(start string) string { return complete(a.from, last, start) })
	for _, said := range c.callee.Said {
		a.begun = append(a.begun, h.Before(said.Spoken(0, rate)))
	}
	for i := range c.callee.Said {
		a.judged = append(a.judged, a.turn(i))
	}
	return a, nil
}

// until is when the callee said its next line, or left.
func (a *analysis) until(i int) time.Time {
	if i+1 < len(a.callee.Said) {
		return a.callee.Said[i+1].Spoken(0, rate)
	}
	return a.callee.Ended
}

// turn judges line i of the callee.
func (a *analysis) turn(i int) Turn {
	x, said := a.Turns[i], a.callee.Said[i]
	end := x.Spans[len(x.Spans)-1].To - 1
	t := Turn{
		Call: a.ID, Scenario: a.Name, Number: i, Text: x.Text, Pauses: len(x.Spans) - 1,
		from: said.Spoken(0, rate), to: a.until(i), keys: x.Keys != "",
	}
	if len(x.Parts) > 0 {
		t.Kind = x.Parts.Kind()
	}
	if x.Into > 0 {
		t.Into = a.interjection(i)
	}
	for _, w := range a.words {
		if at := a.callee.Heard.Wire(int(w.Start * rate / time.Second)); !at.Before(t.from) && at.Before(t.to) {
			t.Words = append(t.Words, w.Raw)
		}
	}
	t.CutOff = a.cutOff(i)
	if x.Text != "" {
		a.served.describe(&t)
	}
	if t.keys {
		t.Server = nil // they have no last sample
	}
	a.answer(i, &t)
	if !x.Answer {
		return t
	}
	sent := said.Sent(end, rate)
	if over := a.speaking(sent); over {
		return t // talked over: there is nothing to wait for
	}
	on, ok := a.levels.Onset(a.callee.Heard.Before(sent))
	if t.Dead = !ok || !a.callee.Heard.Came(on).Before(t.to); t.Dead {
		return t
	}
	came := a.callee.Heard.Came(on)
	wire := came.Sub(sent)
	t.Wire, t.Ear = ms(wire), ms(a.callee.Heard.Ear(a.heardAt, on).Sub(said.Spoken(end, rate)))
	if t.Server != nil && t.Merged == 0 { // a merged turn's phases are its first fragment's
		wire, t.Why = a.net.Without(wire, sent, came)
		if a.other(on) {
			t.Why = "something else was heard before the answer"
		}
		apart := *ms(wire) - *t.Server
		own := apart + a.served.own(i)
		ear := own + *t.Ear - *t.Wire - *ms(callee.Playout) // packets are filled, and played up to the first sound
		t.Apart, t.Own, t.OwnEar = &apart, &own, &ear
	}
	return t
}

// other tells whether what begins with sample on is no word of an answer: a
// filler, say.
func (a *analysis) other(on int) bool {
	for _, w := range a.words {
		if w.End > sample(on) {
			return w.Fate == acoustic.Other
		}
	}
	return false
}

// speaking tells whether the agent is in the middle of speech at a time.
func (a *analysis) speaking(at time.Time) bool {
	p := a.callee.Heard.Before(at)
	for _, s := range a.speech {
		if s.From < p && p < s.To {
			return true
		}
	}
	return false
}

// cutOff finds the pauses of line i in which the caller heard the agent, or after
// which the agent talked into the rest.
func (a *analysis) cutOff(i int) []int {
	x, said := a.Turns[i], a.callee.Said[i]
	var cut []int
	for k := 0; k+1 < len(x.Spans); k++ {
		began := said.Spoken(0, rate)
		pause := said.Spoken(x.Spans[k].To, rate)
		goes, ends := said.Spoken(x.Spans[k+1].From, rate), said.Spoken(x.Spans[k+1].To-1, rate)
		for _, s := range a.speech {
			from, to := a.callee.Heard.Ear(a.heardAt, s.From), a.callee.Heard.Ear(a.heardAt, s.To-1)
			if from.Before(began) || from.After(ends) || to.Before(pause) {
				continue
			}
			inPause := shared(from, to, pause, goes) > 0
			if inPause || from.After(pause) && shared(from, to, goes, ends) > overlap {
				cut = append(cut, k)
				break
			}
		}
	}
	return cut
}

// shared is how long two stretches of time overlap.
func shared(from, to, from2, to2 time.Time) time.Duration {
	if from2.After(from) {
		from = from2
	}
	if to2.Before(to) {
		to = to2
	}
	return max(0, to.Sub(from))
}

// interjection judges line i, which was said into the answer to the line before.
func (a *analysis) interjection(i int) *Interjection {
	x, said, h := a.Turns[i], a.callee.Said[i], a.callee.Heard
	v := &Interjection{}
	first := said.Sent(x.Spans[0].From, rate)
	at := h.Before(first)
	n := -1
	for k, s := range a.speech {
		if s.From < at && at < s.To {
			n = k
		}
	}
	if n < 0 {
		return v
	}
	v.Hit = true
	stretch := a.speech[n]
	if d, ok := a.levels.Duck(at, stretch.To); ok && d.Seen {
		v.Duck = ms(h.Wire(d.At).Sub(first))
	}
	mine := a.answers(i - 1)
	stopped := sample(stretch.To)
	rest := 0
	for _, w := range mine {
		if w.Start > stopped {
			rest++
		}
	}
	if whole(mine, a.Words) && rest == 0 {
		return v // it was said to its end
	}
	v.Stop = ms(h.Wire(stretch.To - 1).Sub(first))
	v.Leak = rest
	if rest > 0 && n+1 < len(a.speech) {
		last := x.Spans[len(x.Spans)-1].To - 1
		v.Resume = ms(max(0, h.Wire(a.speech[n+1].From).Sub(said.Sent(last, rate))))
	}
	return v
}

// sample is when sample i is, from the beginning of the sound.
func sample(i int) time.Duration { return time.Duration(i) * time.Second / rate }

// answers are the words heard of any answer to line i.
func (a *analysis) answers(i int) []acoustic.Heard {
	var mine []acoustic.Heard
	for _, w := range a.words {
		if s, ok := a.source(w); ok && s.turn == i {
			mine = append(mine, w)
		}
	}
	return mine
}

// source is what a word of an answer answers: of the lines that it may, the last
// one that was begun before it was heard.
func (a *analysis) source(w acoustic.Heard) (s source, ok bool) {
	if w.Fate == acoustic.Other {
		return s, false
	}
	for _, x := range a.from[w.Text[:wording.Asked]] {
		if x.turn < len(a.begun) && sample(a.begun[x.turn]) < w.Start {
			s, ok = x, true
		}
	}
	return s, ok
}

// whole tells whether the last of n words of an answer was heard.
func whole(mine []acoustic.Heard, n int) bool {
	for _, w := range mine {
		if w.Fate == acoustic.Whole && w.Text[wording.Len-1:] == wording.Letter(n-1) {
			return true
		}
	}
	return false
}

// answer judges what was heard of the answers to line i.
func (a *analysis) answer(i int, t *Turn) {
	mine := a.answers(i)
	byStem := map[string][]acoustic.Heard{}
	for _, w := range mine {
		byStem[w.Text[:wording.Len-1]] = append(byStem[w.Text[:wording.Len-1]], w)
	}
	best := ""
	for s, words := range byStem {
		if len(words) > start {
			t.Answers++
		}
		if best == "" || len(words) > len(byStem[best]) {
			best = s
		}
	}
	if best == "" {
		return
	}
	var meant []string
	for k := range a.Words {
		meant = append(meant, best+wording.Letter(k))
	}
	t.Answer = acoustic.Compare(meant, byStem[best])
	t.Whole = whole(byStem[best], a.Words)
	t.Stale = a.stale(i, mine)
	if !t.Whole {
		off := acoustic.Differ(a.served.claimed(best), byStem[best])
		t.Off = &off
	}
	if t.Lines == 1 && t.Answers == 1 {
		t.Correct = a.oneMore(i, best)
	}
}

// stale counts words of the answers to line i that were heard after an answer to
// a later line began.
func (a *analysis) stale(i int, mine []acoustic.Heard) int {
	later := time.Duration(-1)
	for _, w := range a.words {
		if s, ok := a.source(w); ok && s.turn > i {
			later = w.Start
			break
		}
	}
	n := 0
	for _, w := range mine {
		if later >= 0 && w.Start > later {
			n++
		}
	}
	return n
}

// oneMore tells whether the model was given one message more for line i than for
// the last line before it that was answered.
func (a *analysis) oneMore(i int, answered string) bool {
	count := int(answered[wording.Asked] - 'a')
	for k := i - 1; k >= 0; k-- {
		if mine := a.answers(k); len(mine) > 0 {
			before := int(mine[len(mine)-1].Text[wording.Asked] - 'a')
			return (count-before+wording.Letters)%wording.Letters == a.said(k, i)
		}
	}
	return count%wording.Letters == a.said(-1, i)%wording.Letters
}

// said is how many messages the callee had after line k, up to line i.
func (a *analysis) said(k, i int) int {
	n := 0
	for _, x := range a.Turns[k+1 : i+1] {
		if x.Text != "" {
			n++
		}
	}
	return n
}
