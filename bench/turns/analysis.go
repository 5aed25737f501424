package turns

import (
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
)

// Thresholds of the analysis.
const (
	silence = 200 * time.Millisecond // shortest silence that ends a stretch of speech
	overlap = 50 * time.Millisecond  // tolerated overlap of two voices
	start   = 3                      // an answer with at most this many words does not count in Turn.Answers
)

// A Turn is one line of a callee and the agent's reaction. Times are in ms; nil means not measured.
type Turn struct {
	Call     string        `json:"call"`
	Scenario scenario.Name `json:"scenario"`
	Number   int           `json:"number"`
	Text     string        `json:"text,omitempty"`
	Kind     corpus.Kind   `json:"kind,omitempty"` // kind of the pauses

	// Response times.
	Wire   *float64 `json:"wire_ms,omitempty"`    // from the last voiced packet of the line to the first audible packet of the answer
	Ear    *float64 `json:"ear_ms,omitempty"`     // from the last sample spoken to the first sample heard
	Server *float64 `json:"server_ms,omitempty"`  // turn_ms of the server
	Own    *float64 `json:"own_ms,omitempty"`     // Wire without the delays of the providers and of the turn policy
	OwnEar *float64 `json:"ear_own_ms,omitempty"` // Ear without these delays and the depth of the callee's jitter buffer
	// Apart is the response time at the server's end, as measured from the audio, minus Server.
	// Why is the known reason for a difference, such as a lost packet.
	Apart  *float64 `json:"apart_ms,omitempty"`
	Untold bool     `json:"untold,omitempty"` // the server has no turn_ms for the utterance
	Why    string   `json:"why,omitempty"`
	Ending string   `json:"ending,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Dead   bool     `json:"dead,omitempty"` // an expected answer is missing

	// Results of pauses.
	Pauses  int   `json:"pauses,omitempty"`
	False   int   `json:"false_commits,omitempty"`
	CutOff  []int `json:"cut_off,omitempty"` // pauses, counted from 0, in which the agent interrupted the callee
	Lines   int   `json:"lines,omitempty"`   // number of turns into which the server split the utterance
	Merged  int   `json:"merged_from,omitempty"`
	Correct bool  `json:"one_message,omitempty"` // the line became one message to the model and got one answer

	// Results of the answer.
	Answer  acoustic.Comparison `json:"answer"`
	Whole   bool                `json:"whole,omitempty"`     // the answer was heard to its end
	Stale   int                 `json:"stale,omitempty"`     // number of words of the answer that were heard after a later answer started
	Answers int                 `json:"answers,omitempty"`   // number of different answers to the line that were heard
	Off     *int                `json:"words_off,omitempty"` // number of words of an interrupted answer that the server recorded wrongly

	Into *Interjection `json:"into,omitempty"`

	Phases []result.Phase `json:"phases,omitempty"` // phases of Server

	Words []string `json:"words,omitempty"` // all words that were heard until the next turn

	from, to time.Time // start and end of the turn and its answer
	keys     bool      // the turn is made of DTMF keys
}

// An Interjection is the effect of a line that the caller speaks during an answer.
type Interjection struct {
	Hit  bool     `json:"hit"`               // the agent was speaking when the line started
	Stop *float64 `json:"stop_ms,omitempty"` // from the first packet of the line to the last audible sample of the agent
	// Duck is from the first packet of the line to the first sample that is 9 dB softer. It is
	// nil if there is none, or if the level changed in a silence.
	Duck   *float64 `json:"duck_ms,omitempty"`
	Leak   int      `json:"leak,omitempty"` // number of words of the answer that were heard after the agent had stopped
	Resume *float64 `json:"resume_ms,omitempty"`
}

func ms(d time.Duration) *float64 {
	v := float64(d) / float64(time.Millisecond)
	return &v
}

// An analysis is the state of analyzing a call.
type analysis struct {
	*call
	heardAt []time.Time // when each frame was heard
	levels  acoustic.Levels
	speech  []acoustic.Span // stretches of the agent's speech
	words   []acoustic.Word
	from    map[string][]source
	begun   []int // for each line that the callee said, the index in the received audio when it began
	served  serverReport
	turns   []Turn
}

// judge analyzes a call.
func (c *call) judge() (a *analysis, err error) {
	a = &analysis{call: c, from: sources(c.Turns)}
	h := c.callee.Heard
	a.heardAt = h.PlayTimes()
	a.levels = acoustic.Measure(h.PCM, rate)
	a.speech = a.levels.Stretches(int(silence * rate / time.Second))
	if a.served, err = c.align(); err != nil {
		return nil, err
	}
	for text, i := range a.served.places {
		a.from[providers.Stem(text)] = append(a.from[providers.Stem(text)], source{turn: i})
	}
	last := ""
	a.words = acoustic.Words(h.PCM, rate, func(w string) string {
		if w = known(a.from, last, w); w != "" {
			last = w
		}
		return w
	}, func(start string) string { return complete(a.from, last, start) })
	for _, said := range c.callee.Said {
		a.begun = append(a.begun, h.SampleAt(said.SpokenAt(0, rate)))
	}
	for i := range c.callee.Said {
		a.turns = append(a.turns, a.turn(i))
	}
	return a, nil
}

// until returns when the line after line i started, or when the call ended.
func (a *analysis) until(i int) time.Time {
	if i+1 < len(a.callee.Said) {
		return a.callee.Said[i+1].SpokenAt(0, rate)
	}
	return a.callee.Ended
}

// turn analyzes line i of the callee.
func (a *analysis) turn(i int) Turn {
	x, said := a.Turns[i], a.callee.Said[i]
	end := x.Spans[len(x.Spans)-1].To - 1
	t := Turn{
		Call: a.ID, Scenario: a.Name, Number: i, Text: x.Text, Pauses: len(x.Spans) - 1,
		from: said.SpokenAt(0, rate), to: a.until(i), keys: x.Keys != "",
	}
	if len(x.Parts) > 0 {
		t.Kind = x.Parts.Kind()
	}
	if x.Into > 0 {
		t.Into = a.interjection(i)
	}
	for _, w := range a.words {
		if at := a.callee.Heard.WireTime(int(w.Start * rate / time.Second)); !at.Before(t.from) && at.Before(t.to) {
			t.Words = append(t.Words, w.Raw)
		}
	}
	t.CutOff = a.cutOff(i)
	if x.Text != "" {
		a.served.describe(&t)
	}
	if t.keys {
		t.Server = nil // the end of a key press is not measured
	}
	a.answer(i, &t)
	if !x.Answer {
		return t
	}
	sent := said.SentAt(end, rate)
	if over := a.speaking(sent); over {
		return t // the agent is speaking, so there is nothing to wait for
	}
	on, ok := a.levels.Onset(a.callee.Heard.SampleAt(sent))
	if t.Dead = !ok || !a.callee.Heard.ArrivedAt(on).Before(t.to); t.Dead {
		return t
	}
	came := a.callee.Heard.ArrivedAt(on)
	wire := came.Sub(sent)
	t.Wire, t.Ear = ms(wire), ms(a.callee.Heard.EarTime(a.heardAt, on).Sub(said.SpokenAt(end, rate)))
	if t.Server != nil && t.Merged == 0 { // the server reports a merged turn with the phases of its first part
		wire, t.Why = a.net.Without(wire, sent, came)
		if a.other(on) {
			t.Why = "other speech was heard before the answer"
		}
		apart := *ms(wire) - *t.Server
		own := apart + a.served.own(i)
		ear := own + *t.Ear - *t.Wire - *ms(callee.Playout) // adds packetization and late playout, without the depth of the jitter buffer
		t.Apart, t.Own, t.OwnEar = &apart, &own, &ear
	}
	return t
}

// other reports whether the first word that ends after a sample belongs to no expected answer, such as a filler word.
func (a *analysis) other(on int) bool {
	for _, w := range a.words {
		if w.End > sample(on) {
			return w.Fate == acoustic.Other
		}
	}
	return false
}

// speaking reports whether the agent is speaking at a time.
func (a *analysis) speaking(at time.Time) bool {
	p := a.callee.Heard.SampleAt(at)
	for _, s := range a.speech {
		if s.From < p && p < s.To {
			return true
		}
	}
	return false
}

// cutOff returns the pauses of line i in which the agent spoke, or after which the agent spoke
// over the rest of the line.
func (a *analysis) cutOff(i int) []int {
	x, said := a.Turns[i], a.callee.Said[i]
	var cut []int
	for k := 0; k+1 < len(x.Spans); k++ {
		began := said.SpokenAt(0, rate)
		pause := said.SpokenAt(x.Spans[k].To, rate)
		goes, ends := said.SpokenAt(x.Spans[k+1].From, rate), said.SpokenAt(x.Spans[k+1].To-1, rate)
		for _, s := range a.speech {
			from, to := a.callee.Heard.EarTime(a.heardAt, s.From), a.callee.Heard.EarTime(a.heardAt, s.To-1)
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

// shared returns the overlap of two time ranges.
func shared(from, to, from2, to2 time.Time) time.Duration {
	if from2.After(from) {
		from = from2
	}
	if to2.Before(to) {
		to = to2
	}
	return max(0, to.Sub(from))
}

// interjection analyzes line i, which the caller spoke during the previous answer.
func (a *analysis) interjection(i int) *Interjection {
	x, said, h := a.Turns[i], a.callee.Said[i], a.callee.Heard
	v := &Interjection{}
	first := said.SentAt(x.Spans[0].From, rate)
	at := h.SampleAt(first)
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
		v.Duck = ms(h.WireTime(d.At).Sub(first))
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
		return v // the line did not interrupt the answer
	}
	v.Stop = ms(h.WireTime(stretch.To - 1).Sub(first))
	v.Leak = rest
	if rest > 0 && n+1 < len(a.speech) {
		last := x.Spans[len(x.Spans)-1].To - 1
		v.Resume = ms(max(0, h.WireTime(a.speech[n+1].From).Sub(said.SentAt(last, rate))))
	}
	return v
}

// sample returns the time of sample i.
func sample(i int) time.Duration { return time.Duration(i) * time.Second / rate }

// answers returns the heard words of all answers to line i.
func (a *analysis) answers(i int) []acoustic.Word {
	var mine []acoustic.Word
	for _, w := range a.words {
		if s, ok := a.source(w); ok && s.turn == i {
			mine = append(mine, w)
		}
	}
	return mine
}

// source returns which line a word answers. Of several candidates it is the last one that started
// before the word.
func (a *analysis) source(w acoustic.Word) (s source, ok bool) {
	if w.Fate == acoustic.Other {
		return s, false
	}
	for _, x := range a.from[w.Text[:providers.StemLen]] {
		if x.turn < len(a.begun) && sample(a.begun[x.turn]) < w.Start {
			s, ok = x, true
		}
	}
	return s, ok
}

// whole reports whether the last word of an answer of n words was heard.
func whole(mine []acoustic.Word, n int) bool {
	for _, w := range mine {
		if w.Fate == acoustic.Whole && w.Text[providers.WordLen-1:] == providers.Letter(n-1) {
			return true
		}
	}
	return false
}

// answer analyzes the answers to line i.
func (a *analysis) answer(i int, t *Turn) {
	mine := a.answers(i)
	byStem := map[string][]acoustic.Word{}
	for _, w := range mine {
		byStem[w.Text[:providers.WordLen-1]] = append(byStem[w.Text[:providers.WordLen-1]], w)
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
		meant = append(meant, best+providers.Letter(k))
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

// stale counts the words of answers to line i that were heard after an answer to a later line
// had started.
func (a *analysis) stale(i int, mine []acoustic.Word) int {
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

// oneMore reports whether the model got exactly one message per line since the previous answered
// line. answered is the start of a word of the answer to line i.
func (a *analysis) oneMore(i int, answered string) bool {
	count := int(answered[providers.StemLen] - 'a')
	for k := i - 1; k >= 0; k-- {
		if mine := a.answers(k); len(mine) > 0 {
			before := int(mine[len(mine)-1].Text[providers.StemLen] - 'a')
			return (count-before+providers.Letters)%providers.Letters == a.messages(k, i)
		}
	}
	return count%providers.Letters == a.messages(-1, i)%providers.Letters
}

// messages returns how many of the lines after line k, up to line i, have words.
func (a *analysis) messages(k, i int) int {
	n := 0
	for _, x := range a.Turns[k+1 : i+1] {
		if x.Text != "" {
			n++
		}
	}
	return n
}
