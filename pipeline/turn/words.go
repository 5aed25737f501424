package turn

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// normal splits text into words without case and punctuation. Two transcripts with the
// same normal words need the same answer.
func normal(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\'' && r != '+' && r != '@'
	})
}

func wording(text string) string { return strings.Join(normal(text), " ") }

// backchannel reports whether words are a backchannel, which needs no answer.
func backchannel(words []string) bool {
	if len(words) == 0 || len(words) > 3 {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(listening(), w) })
}

// listening returns the words of backchannels (English, German, Spanish, French, Russian, Kazakh).
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

// echo reports whether at least the given share of words is in saying, the agent's recent
// speech. A prefix of a word counts, because a word may be cut off, except one of two letters:
// "no" is not the beginning of "november".
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

func asks(saying string) bool {
	end, _ := utf8.DecodeLastRuneInString(strings.TrimSpace(saying))
	return strings.ContainsRune("?？؟", end)
}

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
