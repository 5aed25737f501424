package turns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// An item is a turn as the API of the server returns it.
type item struct {
	Turn    int                `json:"turn"`
	Ending  string             `json:"ending"`
	Reason  string             `json:"reason"`
	Merged  int                `json:"merged_from"`
	Metrics map[string]any     `json:"metrics"`
	phases  map[string]float64 // durations in ms
}

// serverReport matches the server's report of a call with the callee's turns.
type serverReport struct {
	unspoken []string       // recorded lines of the caller that the caller did not speak
	damaged  []string       // recorded lines with damaged text
	places   map[string]int // for each damaged text, the index of the callee's line
	lines    map[int][]item // for each line, the server's turns
	whole    map[int]item   // for each line, the server's turn that has all its words
	agent    []string       // words that the server reports as heard from the agent
}

// align matches the server's lines with the callee's turns.
func (c *call) align() (serverReport, error) {
	s := serverReport{lines: map[int][]item{}, whole: map[int]item{}, places: map[string]int{}}
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
		i, all := c.find(providers.Normalize(l.Text), next)
		if i < 0 {
			if i, all = c.resembles(l.Text, next); i >= 0 {
				s.damaged = append(s.damaged, l.Text)
				s.places[l.Text] = i
			}
		}
		own := func(w string) bool { return len(w) == providers.WordLen && slices.Contains(s.agent, w) }
		if i < 0 || slices.ContainsFunc(strings.Fields(l.Text), own) {
			s.unspoken = append(s.unspoken, l.Text)
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

// find returns the first line with index from or later that contains text, or -1. all reports
// whether text is the complete line.
func (c *call) find(text string, from int) (i int, all bool) {
	for i := from; i < len(c.Turns); i++ {
		if t := providers.Normalize(c.Turns[i].Text); t != "" && t == text {
			return i, true
		}
	}
	for i := from; i < len(c.Turns); i++ {
		t := c.Turns[i].Text
		if t == "" || text == "" {
			continue
		}
		if strings.Contains(" "+providers.Normalize(t)+" ", " "+text+" ") {
			return i, false
		}
		if i > 0 && providers.Normalize(c.Turns[i-1].Text+" "+t) == text {
			return i, true
		}
	}
	return -1, false
}

// resembles returns the line with index from or later that is most similar to a damaged text, or
// -1. all reports whether the text has most words of the line.
func (c *call) resembles(text string, from int) (best int, all bool) {
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

// alike reports whether two words are similar. It ignores damage marks (~) and repeated letters.
func alike(a, b string) bool {
	x, y := slices.Compact([]rune(strings.ReplaceAll(a, "~", ""))), slices.Compact([]rune(b))
	return 10*common(x, y, func(p, q rune) bool { return p == q }) >= 6*max(len(x), len(y))
}

// common returns the length of the longest common subsequence.
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

// describe adds the server's report to the turn.
func (s serverReport) describe(t *Turn) {
	for _, it := range s.lines[t.Number] {
		t.Lines++
		t.False += max(1, it.Merged)
	}
	t.False = max(0, t.False-1)
	t.Untold = !s.hasTurnMS(t.Number)
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

// hasTurnMS reports whether the server has a turn_ms for line i.
func (s serverReport) hasTurnMS(i int) bool {
	return slices.ContainsFunc(s.lines[i], func(it item) bool { _, ok := it.phases["turn_ms"]; return ok })
}

// own returns the part of turn_ms, in ms, that is not due to the scripted delays of the providers
// or the turn policy.
func (s serverReport) own(i int) float64 {
	p, script := s.whole[i].phases, fakeprovider.Typical()
	beyond := func(phase string, scripted time.Duration) float64 { return max(0, p[phase]-pipeline.Millis(scripted)) }
	return p["jitter_ms"] + p["out_ms"] + beyond("llm_ms", script.FirstToken) + beyond("tts_ms", script.FirstByte)
}

// claimed returns the words of one answer that the server reports as heard. stem is their common start.
func (s serverReport) claimed(stem string) []string {
	var all []string
	for _, w := range s.agent {
		if w = providers.Normalize(w); strings.HasPrefix(w, stem) {
			all = append(all, w)
		}
	}
	return all
}
