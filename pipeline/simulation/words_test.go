package simulation_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media/tone"
)

// Every word of an answer tells whose it is: a z, two letters for the request
// that the model answered, one for the word's place in it, and one that sums
// them up. Every word of a caller's is said once in a call: an x, two letters, a
// q.

func letter(n int) byte { return byte('a' + n%26) }

// answerWord is word number i of the answer to request k.
func answerWord(k, i int) string {
	return string([]byte{'z', letter(k / 26), letter(k), letter(i), letter(k/26 + k + i)})
}

// answerOf reads a word of an answer. Of one that was damaged, or cut short, it
// is false.
func answerOf(word string) (k, i int, ok bool) {
	w := strings.Trim(word, ".?")
	if len(w) != 5 || w[0] != 'z' || strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return 0, 0, false
	}
	k, i = int(w[1]-'a')*26+int(w[2]-'a'), int(w[3]-'a')
	return k, i, answerWord(k, i) == w
}

// callerWord is the n-th word that a caller says.
func callerWord(n int) string { return string([]byte{'x', letter(n / 26), letter(n), 'q'}) }

// isCallers tells whether a word is one that callers say once.
func isCallers(w string) bool { return len(w) == 4 && w[0] == 'x' && w[3] == 'q' }

// A played word is one of an answer, as the caller heard it.
type played struct {
	tone.Word
	k, i    int
	damaged bool
}

// follow finds the answers' words in what was heard. A damaged word is taken
// for the one whose turn it was.
func follow(heard []tone.Word) []played {
	var all []played
	k, i := -1, -1
	for n, w := range heard {
		if a, b, ok := answerOf(w.Text); ok {
			if a != k && b > 0 && n > 0 && alike(heard[n-1].Text, answerWord(a, b-1)) { // it was this answer's
				if m := len(all); m > 0 && all[m-1].Word == heard[n-1] {
					all = all[:m-1]
				}
				all = append(all, played{heard[n-1], a, b - 1, true})
			}
			k, i = a, b
			all = append(all, played{w, k, i, false})
			continue
		}
		if a, ok := beginsAnswer(w.Text); ok && a > k {
			k, i = a, 0
			all = append(all, played{w, k, i, true})
			continue
		}
		if k < 0 {
			continue
		}
		for _, at := range []int{i, i + 1} { // what is left may be of either: a pause says its word again
			if alike(w.Text, answerWord(k, at)) {
				i = at
				all = append(all, played{w, k, i, true})
				break
			}
		}
	}
	return all
}

// beginsAnswer reads the beginning of an answer's first word.
func beginsAnswer(word string) (k int, ok bool) {
	if len(word) < 3 || len(word) > 5 || word[0] != 'z' || word[1] == '~' || word[2] == '~' {
		return 0, false
	}
	k = int(word[1]-'a')*26 + int(word[2]-'a')
	return k, alike(word, answerWord(k, 0))
}

// alike tells whether got may be what is left of want: its beginning, with
// letters that cannot be read.
func alike(got, want string) bool {
	got = strings.Trim(got, ".?")
	if got == "" || len(got) > len(want) || got == strings.Repeat("~", len(got)) {
		return false
	}
	for i := range got {
		if got[i] != '~' && got[i] != want[i] {
			return false
		}
	}
	return true
}

// runs are the stretches of frames in which something can be heard.
func runs(pcm []int16, rate int) []span {
	const frame = 20 * time.Millisecond
	n := rate / 50
	var all []span
	for i := 0; i+n <= len(pcm); i += n {
		if tone.Level(pcm[i:i+n]) < -45 {
			continue
		}
		at := time.Duration(i/n) * frame
		if m := len(all); m > 0 && all[m-1].to == at {
			all[m-1].to = at + frame
		} else {
			all = append(all, span{at, at + frame})
		}
	}
	return all
}

// A span is a stretch of a call.
type span struct{ from, to time.Duration }

// gapsFilled joins spans that are no more than gap apart.
func gapsFilled(all []span, gap time.Duration) []span {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b span) int { return int(a.from - b.from) })
	var joined []span
	for _, s := range all {
		if n := len(joined); n > 0 && s.from-joined[n-1].to <= gap {
			joined[n-1].to = max(joined[n-1].to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

func (s span) String() string { return fmt.Sprintf("%.2f–%.2f s", s.from.Seconds(), s.to.Seconds()) }
