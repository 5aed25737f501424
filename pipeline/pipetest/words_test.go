package pipetest_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media/tone"
)

// Each word of an answer names its answer: a z, two letters for the request, one letter for the
// index of the word, and a check letter. Each word of a caller is unique within its call: an x,
// two letters and a q.

func letter(n int) byte { return byte('a' + n%26) }

func answerWord(k, i int) string {
	return string([]byte{'z', letter(k / 26), letter(k), letter(i), letter(k/26 + k + i)})
}

// answerOf reads a word of an answer. It reports false for a damaged or cut word.
func answerOf(word string) (k, i int, ok bool) {
	w := strings.Trim(word, ".?")
	if len(w) != 5 || w[0] != 'z' || strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return 0, 0, false
	}
	k, i = int(w[1]-'a')*26+int(w[2]-'a'), int(w[3]-'a')
	return k, i, answerWord(k, i) == w
}

func callerWord(n int) string { return string([]byte{'x', letter(n / 26), letter(n), 'q'}) }

func isCallers(w string) bool { return len(w) == 4 && w[0] == 'x' && w[3] == 'q' }

// A played word is a word of an answer as the caller heard it.
type played struct {
	tone.Word
	k, i    int
	damaged bool
}

// follow finds the words of answers among the heard words. A damaged word counts if it resembles the expected word.
func follow(heard []tone.Word) []played {
	var all []played
	k, i := -1, -1
	for n, w := range heard {
		if a, b, ok := answerOf(w.Text); ok {
			if a != k && b > 0 && n > 0 && alike(heard[n-1].Text, answerWord(a, b-1)) { // the previous, damaged word belongs to this answer
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
		for _, at := range []int{i, i + 1} { // the previous word or the next: a pause repeats the word that it cut off
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

// alike reports whether got may be a damaged want: the beginning of want, with ~ for each unreadable letter.
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

type span struct{ from, to time.Duration }

// gapsFilled joins spans whose gap is at most gap.
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
