package turns

import (
	"strings"

	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/scenario"
)

// A source is a line that a word of an answer may answer.
type source struct {
	turn  int  // index of the answered line; of several lines, the last
	whole bool // the whole line was answered
}

// sources returns the lines of which each possible message consists, in order, by the stem of the
// message. A message can be a whole line, a part of a line, or two lines joined.
func sources(turns []scenario.Utterance) map[string][]source {
	all := map[string][]source{}
	add := func(text string, s source) {
		at := providers.Stem(text)
		if n := len(all[at]); n == 0 || all[at][n-1] != s {
			all[at] = append(all[at], s)
		}
	}
	before := ""
	for i, t := range turns {
		w := strings.Fields(t.Text)
		for from := range w {
			for to := from + 1; to <= len(w); to++ {
				add(strings.Join(w[from:to], " "), source{turn: i, whole: to-from == len(w)})
			}
		}
		if i > 0 && t.Text != "" {
			add(before+" "+t.Text, source{turn: i, whole: true})
		}
		if t.Keys != "" {
			add("the caller pressed "+t.Keys, source{turn: i, whole: true})
		}
		before = t.Text
	}
	return all
}

// known returns the expected word for a received text, or "". last is the word before it, by
// which a damaged word is identified.
func known(all map[string][]source, last, text string) string {
	if _, ok := all[text[:min(providers.StemLen, len(text))]]; ok && len(text) == providers.WordLen &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return text
	}
	if len(text) < providers.WordLen {
		return ""
	}
	if next := providers.NextWord(last); next != "" && alike(text, next) {
		return next
	}
	return ""
}

// complete returns the word that starts with start, or "". Candidates are the word after last,
// last itself, and the first word of an answer.
func complete(all map[string][]source, last, start string) string {
	if next := providers.NextWord(last); start != "" && next != "" && strings.HasPrefix(next, start) {
		return next
	}
	if last != "" && start != "" && strings.HasPrefix(last, start) {
		return last // the agent repeats the word
	}
	if len(start) <= providers.StemLen || len(start) >= providers.WordLen {
		return ""
	}
	if _, ok := all[start[:providers.StemLen]]; !ok {
		return ""
	}
	return start + strings.Repeat(providers.Letter(0), providers.WordLen-len(start))
}
