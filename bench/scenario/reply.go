package scenario

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/pipeline/fake"
)

// The fake model's answers tell by their every word what it was asked: four
// letters stand for the caller's last message, one for how many messages of the
// caller's the prompt had, and one counts the words of the answer. So a word
// that is heard tells from the sound alone whose it is.
const (
	letters = 26
	asked   = 4 // letters for the message
	wordLen = asked + 2
	// firstClause is how many words the first clause has, which the voice begins
	// with; a line's end parts it from the rest, for a mark would be heard.
	firstClause = 2
)

// instructions are the agent's prompt, which asks for an answer of n words.
func instructions(n int) string { return fmt.Sprintf("answer in %d words", n) }

// Reply is the fake model.
func Reply(messages []fake.Message) string {
	n, callers, last := fewWords, 0, ""
	for _, m := range messages {
		switch m.Role {
		case "system":
			if f := strings.Fields(m.Content); len(f) == 4 {
				if asked, err := strconv.Atoi(f[2]); err == nil {
					n = asked
				}
			}
		case "user":
			callers, last = callers+1, m.Content
		}
	}
	words := answer(last, callers, n)
	first := strings.Join(words[:min(firstClause, n)], " ")
	return strings.TrimSpace(first + "\n" + strings.Join(words[min(firstClause, n):], " "))
}

// answer is what the fake model says to a message that is the callers-th of the
// caller's, in n words.
func answer(message string, callers, n int) []string {
	var words []string
	for i := range n {
		words = append(words, stem(message)+letter(callers)+letter(i))
	}
	return words
}

func letter(n int) string { return string(rune('a' + n%letters)) }

// stem stands for a message.
func stem(message string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(normal(message)))
	sum := h.Sum32()
	var s strings.Builder
	for range asked {
		s.WriteString(letter(int(sum % letters)))
		sum /= letters
	}
	return s.String()
}

// normal is a text as recognizers may write it, made alike.
func normal(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789'", r)
	}), " ")
}

// A source is what a word of an answer was made for.
type source struct {
	turn  int  // the caller's line whose words were answered, the last of them
	whole bool // that line was answered as a whole
}

// sources maps the stems of all that the model may have been asked on a call to
// where it may have come from, in order: whole lines, runs of words of them, and
// two lines glued together.
func sources(turns []move) map[string][]source {
	all := map[string][]source{}
	add := func(text string, s source) {
		at := stem(text)
		if n := len(all[at]); n == 0 || all[at][n-1] != s {
			all[at] = append(all[at], s)
		}
	}
	before := ""
	for i, t := range turns {
		w := strings.Fields(t.text)
		for from := range w {
			for to := from + 1; to <= len(w); to++ {
				add(strings.Join(w[from:to], " "), source{turn: i, whole: to-from == len(w)})
			}
		}
		if i > 0 && t.text != "" {
			add(before+" "+t.text, source{turn: i, whole: true})
		}
		before = t.text
	}
	return all
}

// known is the word of an answer to one of the sources that a text is; "" where
// it is none. A damaged word is known by the words before it: last is the one
// that came last.
func known(all map[string][]source, last, text string) string {
	if _, ok := all[text[:min(asked, len(text))]]; ok && len(text) == wordLen && !strings.ContainsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return text
	}
	if len(text) < wordLen {
		return ""
	}
	if next := follower(last); next != "" && alike(text, next) {
		return next
	}
	return ""
}

// complete is the word that a beginning belongs to: the one after the last word
// that was heard whole, if it begins so. Of an answer's first word it is found
// by the stem.
func complete(all map[string][]source, last, start string) string {
	if next := follower(last); start != "" && next != "" && strings.HasPrefix(next, start) {
		return next
	}
	if last != "" && start != "" && strings.HasPrefix(last, start) {
		return last // begun again
	}
	if len(start) <= asked || len(start) >= wordLen {
		return ""
	}
	if _, ok := all[start[:asked]]; !ok {
		return ""
	}
	return start + strings.Repeat(letter(0), wordLen-len(start))
}

// follower is the word after a word of an answer.
func follower(word string) string {
	if len(word) != wordLen {
		return ""
	}
	return word[:wordLen-1] + letter(int(word[wordLen-1]-'a')+1)
}
