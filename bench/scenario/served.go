package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/wording"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

// An item is a turn as the server tells it.
type item struct {
	Turn    int                `json:"turn"`
	Ending  string             `json:"ending"`
	Reason  string             `json:"reason"`
	Merged  int                `json:"merged_from"`
	Metrics map[string]any     `json:"metrics"`
	phases  map[string]float64 // ms
}

// served is what the server says of a call, put beside the callee's turns.
type served struct {
	ghosts []string       // caller's lines that nobody said, or that the agent did
	differ []string       // caller's lines, of those said, that came damaged
	places map[string]int // of each such line's text, the callee's line
	lines  map[int][]item // of each line of the callee, the server's turns
	whole  map[int]item   // of those, the one that has all its words
	agent  []string       // words that the agent is said to have been heard with
}

// align finds the callee's turns in the server's lines.
func (c *played) align() (served, error) {
	s := served{lines: map[int][]item{}, whole: map[int]item{}, places: map[string]int{}}
	items := map[int]item{}
	for _, b := range c.server.Turns {
		it := item{phases: map[string]float64{}}
		if err := json.Unmarshal(b, &it); err != nil {
			return s, fmt.Errorf("call %s: turn: %w", c.ID, err)
		}
		for k, v := range it.Metrics {
			if f, ok := v.(float64); ok {
				it.phases[k] = f
			}
		}
		items[it.Turn] = it
	}
	next := 0
	lines := slices.Clone(c.server.Lines)
	slices.SortStableFunc(lines, func(a, b pipeline.Line) int { return cmp.Compare(a.Start, b.Start) })
	for _, l := range lines {
		if l.Role == pipeline.RoleAgent {
			s.agent = append(s.agent, strings.Fields(l.Text)...)
			continue
		}
		i, all := c.find(wording.Normal(l.Text), next)
		if i < 0 {
			if i, all = c.resembles(l.Text, next); i >= 0 {
				s.differ = append(s.differ, l.Text)
				s.places[l.Text] = i
			}
		}
		own := func(w string) bool { return len(w) == wording.Len && slices.Contains(s.agent, w) }
		if i < 0 || slices.ContainsFunc(strings.Fields(l.Text), own) {
			s.ghosts = append(s.ghosts, l.Text)
		}
		if i < 0 {
			continue
		}
		next = i
		s.lines[i] = append(s.lines[i], items[l.Turn])
		if all {
			s.whole[i] = items[l.Turn]
		}
	}
	return s, nil
}

// find is the callee's line, from the given one on, that has the words of text,
// and whether they are all; -1 where there is none.
func (c *played) find(text string, from int) (i int, all bool) {
	for i := from; i < len(c.Turns); i++ {
		if t := wording.Normal(c.Turns[i].Text); t != "" && t == text {
			return i, true
		}
	}
	for i := from; i < len(c.Turns); i++ {
		t := c.Turns[i].Text
		if t == "" || text == "" {
			continue
		}
		if strings.Contains(" "+wording.Normal(t)+" ", " "+text+" ") {
			return i, false
		}
		if i > 0 && wording.Normal(c.Turns[i-1].Text+" "+t) == text {
			return i, true
		}
	}
	return -1, false
}

// resembles is the callee's line, from the given one on, that a damaged text is
// most like, and whether that has most of its words; -1 where none is.
func (c *played) resembles(text string, from int) (best int, all bool) {
	words, most := strings.Fields(text), 0.6
	best = -1
	for i := from; i < len(c.Turns); i++ {
		said := strings.Fields(c.Turns[i].Text)
		n := common(words, said, alike)
		if share := float64(n) / float64(max(1, len(words))); share > most {
			best, most, all = i, share, 5*n >= 4*len(said)
		}
	}
	return best, all
}

// alike tells whether two words are, but for what a line does to them: symbols
// that come twice, or are lost.
func alike(a, b string) bool {
	x, y := slices.Compact([]rune(strings.ReplaceAll(a, "~", ""))), slices.Compact([]rune(b))
	return 10*common(x, y, func(p, q rune) bool { return p == q }) >= 6*max(len(x), len(y))
}

// common is the length of the longest common subsequence.
func common[T any](a, b []T, same func(a, b T) bool) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		before := 0
		for j, y := range b {
			here := row[j+1]
			if same(x, y) {
				row[j+1] = before + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			before = here
		}
	}
	return row[len(b)]
}

// describe adds what the server says of the turn.
func (s served) describe(t *Turn) {
	for _, it := range s.lines[t.Number] {
		t.Lines++
		t.False += max(1, it.Merged)
	}
	t.False = max(0, t.False-1)
	t.Untold = !s.tells(t.Number)
	it, ok := s.whole[t.Number]
	if !ok {
		return
	}
	t.Ending, t.Reason, t.Merged = it.Ending, it.Reason, it.Merged
	if total, audible := it.phases["turn_ms"]; audible {
		t.Server = &total
		t.Phases = result.Phases(func(name string) float64 { return it.phases[name] })
	}
}

// tells says whether the server has a turn_ms of any of the turns that it made of
// line i.
func (s served) tells(i int) bool {
	return slices.ContainsFunc(s.lines[i], func(it item) bool { _, ok := it.phases["turn_ms"]; return ok })
}

// own is what of the server's turn neither a provider, by its script, nor policy
// asked for.
func (s served) own(i int) float64 {
	p, script := s.whole[i].phases, fake.Typical()
	return p["jitter_ms"] + p["out_ms"] + max(0, p["llm_ms"]-pipeline.Millis(script.FirstToken)) + max(0, p["tts_ms"]-pipeline.Millis(script.FirstByte))
}

// claimed are the words of an answer that the server says were heard.
func (s served) claimed(stem string) []string {
	var all []string
	for _, w := range s.agent {
		if w = wording.Normal(w); strings.HasPrefix(w, stem) {
			all = append(all, w)
		}
	}
	return all
}
