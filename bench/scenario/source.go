package scenario

import (
	"strings"

	"github.com/parley-voice/parley/bench/script"
	"github.com/parley-voice/parley/bench/wording"
)

// A source is what a word of an answer was made for.
type source struct {
	turn  int  // the caller's line whose words were answered, the last of them
	whole bool // that line was answered as a whole
}

// sources maps the stems of all that the model may have been asked on a call to
// where it may have come from, in order: whole lines, runs of words of them, and
// two lines glued together.
func sources(turns []script.Move) map[string][]source {
	all := map[string][]source{}
	add := func(text string, s source) {
		at := wording.Stem(text)
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

// known is the word of an answer to one of the sources that a text is; "" where
// it is none. A damaged word is known by the words before it: last is the one
// that came last.
func known(all map[string][]source, last, text string) string {
	if _, ok := all[text[:min(wording.Asked, len(text))]]; ok && len(text) == wording.Len && !strings.ContainsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return text
	}
	if len(text) < wording.Len {
		return ""
	}
	if next := wording.Follower(last); next != "" && alike(text, next) {
		return next
	}
	return ""
}

// complete is the word that a beginning belongs to: the one after the last word
// that was heard whole, if it begins so. Of an answer's first word it is found
// by the stem.
func complete(all map[string][]source, last, start string) string {
	if next := wording.Follower(last); start != "" && next != "" && strings.HasPrefix(next, start) {
		return next
	}
	if last != "" && start != "" && strings.HasPrefix(last, start) {
		return last // begun again
	}
	if len(start) <= wording.Asked || len(start) >= wording.Len {
		return ""
	}
	if _, ok := all[start[:wording.Asked]]; !ok {
		return ""
	}
	return start + strings.Repeat(wording.Letter(0), wording.Len-len(start))
}
