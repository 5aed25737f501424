package turn

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// normal is text without case, punctuation and spacing: what must be the same
// for two transcripts to ask for the same answer.
func normal(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\'' && r != '+' && r != '@'
	})
}

// wording is text by its normal words alone.
func wording(text string) string { return strings.Join(normal(text), " ") }

// backchannel tells that words are a listener's: they ask for nothing.
func backchannel(words []string) bool {
	if len(words) == 0 || len(words) > 3 {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(listening(), w) })
}

// listening lists what people say while they listen (English, German, Spanish,
// French, Russian, Kazakh).
func listening() []string {
	return []string{
		"mhm", "mm", "mmm", "mmhm", "hm", "hmm", "uh", "huh", "um", "aha", "ah", "oh", "uhhuh", "yeah", "yep", "yes", "ok",
		"okay", "right", "sure", "good", "great", "fine", "nice", "cool", "true", "exactly", "wow", "really", "see", "i",
		"ja", "genau", "gut", "klar", "ach", "so", "stimmt",
		"sí", "si", "claro", "vale", "ajá", "bueno",
		"oui", "ouais", "d'accord", "bien", "voilà",
		"да", "ага", "угу", "так", "хорошо", "понятно", "ясно",
		"иә", "жақсы", "түсінікті",
	}
}

// echo tells that words are the agent's own, come back over the line: the given
// share of them was in what it just said, be they cut off. Two letters are a word
// of their own: "no" is not the beginning of "november".
func echo(words []string, saying string, share float64) bool {
	said, n := normal(saying), 0
	for _, w := range words {
		cut := len(said) > 0 && strings.HasPrefix(said[len(said)-1], w)
		if cut || slices.ContainsFunc(said, func(s string) bool { return s == w || utf8.RuneCountInString(w) != 2 && strings.HasPrefix(s, w) }) {
			n++
		}
	}
	return n > 0 && float64(n) >= share*float64(len(words))
}

// asks tells that what was said ends with a question.
func asks(saying string) bool {
	end, _ := utf8.DecodeLastRuneInString(strings.TrimSpace(saying))
	return strings.ContainsRune("?？؟", end)
}

// readsBack tells that the agent is reading digits back.
func readsBack(saying string) bool {
	n := 0
	for _, w := range normal(saying) {
		if strings.IndexFunc(w, unicode.IsDigit) >= 0 || slices.Contains(digits(), w) {
			n++
		}
	}
	return n >= 3
}

func digits() []string {
	return []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
}
