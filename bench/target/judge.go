package target

import (
	"math"
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

// Thresholds of the analysis.
const (
	gap     = 200 * time.Millisecond // shortest silence between two stretches of speech
	returns = 2 * time.Second        // longest delay of an echo
	piece   = 200 * time.Millisecond // length of the start of a line; if it is found in the received audio, the line is echoed
	alike   = 0.8                    // smallest similarity of an echo to the line
	// Limits for repeated stretches of an answer: shortest stretch, audio to compare, and
	// similarity. They are larger than piece and alike, because words of one answer can be
	// similar.
	shortest = 400 * time.Millisecond
	phrase   = time.Second
	same     = 0.9
)

// A call holds the lines and the recording of a call.
type call struct {
	id     string
	lines  []line
	record callee.Record
	cause  media.Cause // why the target ended the call early; empty if it did not
}

// A Turn is one line of the caller and the reaction of the target. Times are in ms; nil means not measured.
type Turn struct {
	Call   string
	Number int
	Text   string

	Wire *float64 // from the last packet of the line to the first audible packet of the answer
	Ear  *float64 // from the last sample spoken to the first sample heard
	Dead bool     // the line got no answer
	// Overlap is how long both sides were audible during the line. Over means that the target was
	// speaking when the line ended.
	Overlap float64
	Over    bool
	// Into means that the line interrupted the target. Stop is how long the target then continued
	// to speak; nil if it spoke until the end of the line or longer, or if its answer ended by itself.
	Into bool
	Stop *float64
	// Lasted is the time from the start to the end of the answer. Cut is the time from the start to
	// the end of the answer that the line interrupted; nil if it did not.
	Lasted float64
	Cut    *float64

	Spoke   float64  // audible time of the answer
	Silence float64  // longest silence within the answer
	Again   int      // number of stretches of the answer that repeat earlier ones
	Words   []string // tone words that were heard
	Doubled int      // how many of Words were heard before in the answer
	Back    *float64 // delay of the echo of the line; nil without an echo
	BackAt  *float64 // similarity of the echo to the line, up to 1
}

func ms(d time.Duration) *float64 {
	v := float64(d) / float64(time.Millisecond)
	return &v
}

// analysis is the state of analyzing a call.
type analysis struct {
	*call
	heard   callee.Track
	played  []time.Time
	levels  acoustic.Levels
	speech  []acoustic.Span
	words   []tone.Word
	silence int // samples of gap
}

// judge measures each line of the call.
func (c *call) judge() []Turn {
	h := c.record.Heard
	a := &analysis{call: c, heard: h, played: h.PlayTimes(), levels: acoustic.Measure(h.PCM, rate), silence: samples(gap)}
	a.speech = a.levels.Stretches(a.silence)
	hearer := tone.NewDecoder(rate)
	a.words = append(hearer.Decode(h.PCM), hearer.Decode(make([]int16, rate/10))...)
	var all []Turn
	for i := range c.record.Said {
		all = append(all, a.turn(i))
	}
	return all
}

func samples(d time.Duration) int { return int(d * rate / time.Second) }

// turn measures line i.
func (a *analysis) turn(i int) Turn {
	said, l := a.record.Said[i], a.lines[i]
	last := len(l.pcm) - 1
	t := Turn{Call: a.id, Number: i, Text: l.text}
	began, end, until := said.SpokenAt(0, rate), said.SpokenAt(last, rate), a.until(i)
	sent := said.SentAt(last, rate)
	a.overlap(&t, began, end)
	if t.Into && i > 0 {
		before := a.record.Said[i-1].SentAt(len(a.lines[i-1].pcm)-1, rate)
		a.cut(&t, a.heard.SampleAt(before), began)
	}
	a.answer(&t, a.heard.SampleAt(sent), a.heard.SampleAt(until))
	a.back(&t, i)
	if t.Over {
		return t // the target interrupted the line, so there is no response time
	}
	on, ok := a.levels.Onset(a.heard.SampleAt(sent))
	if t.Dead = !ok || !a.heard.ArrivedAt(on).Before(until); t.Dead {
		return t
	}
	t.Wire, t.Ear = ms(a.heard.ArrivedAt(on).Sub(sent)), ms(a.heard.EarTime(a.played, on).Sub(end))
	return t
}

// until returns when the line after line i started, or when the call ended.
func (a *analysis) until(i int) time.Time {
	if i+1 < len(a.record.Said) {
		return a.record.Said[i+1].SpokenAt(0, rate)
	}
	return a.record.Ended
}

// overlap measures how long the target was audible between began and end, the times of the line.
func (a *analysis) overlap(t *Turn, began, end time.Time) {
	var both time.Duration
	for _, s := range a.speech {
		from, to := a.heard.EarTime(a.played, s.From), a.heard.EarTime(a.played, s.To-1)
		if d := earlier(to, end).Sub(later(from, began)); d > 0 {
			both += d
		}
		if !from.After(end) && to.After(end) {
			t.Over = true
		}
		if !from.After(began) && to.After(began) {
			if t.Into = true; to.Before(end) {
				t.Stop = ms(to.Sub(began))
			}
		}
	}
	t.Overlap = *ms(both)
}

// cut measures the answer that began after sample from and that a line interrupted at began.
func (a *analysis) cut(t *Turn, from int, began time.Time) {
	first := -1
	for _, s := range a.speech {
		if first < 0 && s.From >= from {
			first = s.From
		}
		if first >= 0 && a.heard.EarTime(a.played, s.To-1).After(began) {
			t.Cut = ms(time.Duration(s.To-first) * time.Second / rate)
			return
		}
	}
}

// natural is the tolerance for the length of an answer that ends by itself.
const natural = 100 * time.Millisecond

// dropNaturalEnds removes Stop from lines whose interrupted answer may have ended by itself: the
// answer is about as long as the shortest answer without an interruption, or longer.
func (all turns) dropNaturalEnds() {
	shortest := math.Inf(1)
	for i, t := range all {
		interrupted := i+1 < len(all) && all[i+1].Call == t.Call && all[i+1].Into
		if t.Lasted > 0 && !t.Over && !interrupted {
			shortest = min(shortest, t.Lasted)
		}
	}
	for i, t := range all {
		if t.Stop != nil && t.Cut != nil && *t.Cut > shortest-*ms(natural) {
			all[i].Stop = nil
		}
	}
}

// answer analyzes the received audio between samples from and to.
func (a *analysis) answer(t *Turn, from, to int) {
	var mine []acoustic.Span
	for _, s := range a.speech {
		if s.From >= from && s.From < to {
			mine = append(mine, s)
		}
	}
	if len(mine) > 0 {
		t.Lasted = *ms(time.Duration(mine[len(mine)-1].To-mine[0].From) * time.Second / rate)
	}
	for k, s := range mine {
		t.Spoke += *ms(time.Duration(s.Len()) * time.Second / rate)
		if k == 0 {
			continue
		}
		t.Silence = max(t.Silence, *ms(time.Duration(s.From-mine[k-1].To) * time.Second / rate))
		if s.Len() < samples(shortest) {
			continue
		}
		first := a.heard.PCM[s.From:min(s.From+samples(phrase), s.To)]
		if _, like := acoustic.Find(a.heard.PCM[mine[0].From:mine[k-1].To], first); like > same {
			t.Again++
		}
	}
	seen := map[string]bool{}
	for _, w := range a.words {
		if at := int(w.Start * rate / time.Second); at < from || at >= to {
			continue
		}
		if t.Words = append(t.Words, w.Text); seen[w.Text] {
			t.Doubled++
		}
		seen[w.Text] = true
	}
}

// back looks for an echo of the line.
func (a *analysis) back(t *Turn, i int) {
	said, l := a.record.Said[i], a.lines[i]
	first := l.pcm[:min(len(l.pcm), samples(piece))]
	from := a.heard.SampleAt(said.SpokenAt(0, rate))
	to := min(len(a.heard.PCM), from+len(first)+samples(returns))
	if from >= to {
		return
	}
	if at, like := acoustic.Find(a.heard.PCM[from:to], first); like > alike {
		t.Back, t.BackAt = ms(a.heard.WireTime(from+at).Sub(said.SpokenAt(0, rate))), &like
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
