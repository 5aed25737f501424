package target

import (
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

// What is judged by.
const (
	gap     = 200 * time.Millisecond // of silence, that parts two stretches of speech
	returns = 2 * time.Second        // within which an echo comes
	piece   = 200 * time.Millisecond // of a line, by which it is known again
	alike   = 0.8                    // from when on it is
	// Words of one answer may be much alike: more of them must be the same.
	shortest = 400 * time.Millisecond
	phrase   = time.Second
	same     = 0.9
)

// A call is what was said on it and heard.
type call struct {
	id     string
	lines  []line
	record callee.Record
	cause  media.Cause // why the target ended it before its time; empty where it did not
}

// A Turn is one line of the caller and what came of it. Times are in ms; those
// that could not be measured are absent.
type Turn struct {
	Call   string
	Number int
	Text   string

	Wire *float64 // last packet of the line left → first audible one came
	Ear  *float64 // last sample spoken → first sample heard
	Dead bool     // nothing came
	// Overlap is how long both were audible while the line was said, and Over
	// tells that the target was at its end.
	Overlap float64
	Over    bool
	// Stop is how long the target spoke on after a line that was said into its
	// answer began; absent where it did not stop before the line's end.
	Into bool
	Stop *float64

	Spoke   float64  // that the answer was audible
	Silence float64  // the longest within the answer
	Again   int      // stretches of the answer that had been heard in it before
	Words   []string // tone words that were heard
	Doubled int      // of them, heard twice
	Back    *float64 // how late the line itself came back, where it did
	BackAt  *float64 // and how like itself, up to 1
}

func ms(d time.Duration) *float64 {
	v := float64(d) / float64(time.Millisecond)
	return &v
}

// analysis is a call that is being judged.
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
	a := &analysis{call: c, heard: h, played: h.Played(), levels: acoustic.Measure(h.PCM, rate), silence: samples(gap)}
	a.speech = a.levels.Stretches(a.silence)
	hearer := tone.NewHearer(rate)
	a.words = append(hearer.Hear(h.PCM), hearer.Hear(make([]int16, rate/10))...)
	var all []Turn
	for i := range c.record.Said {
		all = append(all, a.turn(i))
	}
	return all
}

func samples(d time.Duration) int { return int(d * rate / time.Second) }

// turn judges line i.
func (a *analysis) turn(i int) Turn {
	said, l := a.record.Said[i], a.lines[i]
	last := len(l.pcm) - 1
	t := Turn{Call: a.id, Number: i, Text: l.text}
	began, end, until := said.Spoken(0, rate), said.Spoken(last, rate), a.until(i)
	sent := said.Sent(last, rate)
	a.overlap(&t, began, end)
	a.answer(&t, a.heard.Before(sent), a.heard.Before(until))
	a.back(&t, i)
	if t.Over {
		return t // there is nothing to wait for
	}
	on, ok := a.levels.Onset(a.heard.Before(sent))
	if t.Dead = !ok || !a.heard.Came(on).Before(until); t.Dead {
		return t
	}
	t.Wire, t.Ear = ms(a.heard.Came(on).Sub(sent)), ms(a.heard.Ear(a.played, on).Sub(end))
	return t
}

// until is when the next line began, or the call ended.
func (a *analysis) until(i int) time.Time {
	if i+1 < len(a.record.Said) {
		return a.record.Said[i+1].Spoken(0, rate)
	}
	return a.record.Ended
}

// overlap tells how long the target was audible while the line was said.
func (a *analysis) overlap(t *Turn, began, end time.Time) {
	var both time.Duration
	for _, s := range a.speech {
		from, to := a.heard.Ear(a.played, s.From), a.heard.Ear(a.played, s.To-1)
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

// answer judges what was heard of sample from up to to.
func (a *analysis) answer(t *Turn, from, to int) {
	var mine []acoustic.Span
	for _, s := range a.speech {
		if s.From >= from && s.From < to {
			mine = append(mine, s)
		}
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

// back looks for the line itself in what was heard.
func (a *analysis) back(t *Turn, i int) {
	said, l := a.record.Said[i], a.lines[i]
	first := l.pcm[:min(len(l.pcm), samples(piece))]
	from := a.heard.Before(said.Spoken(0, rate))
	to := min(len(a.heard.PCM), from+len(first)+samples(returns))
	if from >= to {
		return
	}
	if at, like := acoustic.Find(a.heard.PCM[from:to], first); like > alike {
		t.Back, t.BackAt = ms(a.heard.Wire(from+at).Sub(said.Spoken(0, rate))), &like
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
