package eot

import "strings"

// An Expectation is the kind of answer that a question asks for.
type Expectation uint8

// Expectations.
const (
	Anything     Expectation = iota // the agent did not ask
	YesNo                           // yes or no
	Choice                          // one of several options
	OpenQuestion                    // an open question: more than one word
	Dictation                       // a number, an address, a spelled name
)

// stateWords are the English words that begin a yes-or-no question about a fact.
const stateWords = "is are was were do does did have has isn't aren't"

// Expect returns the kind of answer that the agent's last words ask for.
func Expect(asked, language string) Expectation {
	lex := lexiconFor(language)
	question := lastSentence(strings.ToLower(asked))
	question = strings.NewReplacer("qu'est-ce qu", "quoi ", "est-ce que", "", "est-ce qu'", "").Replace(question)
	words := tokens(question)
	if len(words) == 0 {
		return Anything
	}
	marked := strings.Contains(question, "?")
	first := opener(words, lex)
	confirming := marked && (hasPhrase(question, lex.confirms) || has(stateWords, first))
	switch {
	case hasPhrase(question, lex.numbers) && !confirming:
		return Dictation
	case !marked && !has(lex.deciding, first) && !has(lex.asking, first):
		return Anything
	case hasAny(words, lex.or):
		return Choice
	case hasAny(words, lex.asking) && !has(stateWords, first):
		return OpenQuestion
	default:
		return YesNo
	}
}

// opener returns the first word of the question itself, after words such as "okay" or "and".
func opener(words []string, lex lexicon) string {
	for _, w := range words {
		if !has(lex.yes, w) && !has("and so great thanks now alright", w) {
			return w
		}
	}
	return words[0]
}

func lastSentence(s string) string {
	s = strings.TrimSpace(s)
	end := strings.TrimRight(s, ".?!… ")
	if i := strings.LastIndexAny(end, ".?!"); i >= 0 {
		return strings.TrimSpace(s[i+1:])
	}
	return s
}

// tokens splits text into words without punctuation.
func tokens(text string) []string {
	words := strings.Fields(text)
	kept := words[:0]
	for _, w := range words {
		if w = strings.Trim(w, ".,?!…-–—:;\"'«»„“”¿¡()"); w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}

// has reports whether word is in a space-separated list.
func has(list, word string) bool {
	return word != "" && !strings.Contains(word, " ") && strings.Contains(" "+list+" ", " "+word+" ")
}

func hasAny(words []string, list string) bool {
	for _, w := range words {
		if has(list, w) {
			return true
		}
	}
	return false
}

// hasPhrase reports whether text contains one of the phrases, which are separated by bars.
func hasPhrase(text, phrases string) bool {
	for p := range strings.SplitSeq(phrases, "|") {
		if p != "" && strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// endsWithPhrase reports whether the words end with one of the phrases, which are
// separated by bars.
func endsWithPhrase(words []string, phrases string) bool {
	text := " " + strings.Join(words, " ")
	for p := range strings.SplitSeq(phrases, "|") {
		if p != "" && strings.HasSuffix(text, " "+p) {
			return true
		}
	}
	return false
}

// endsLike reports whether the word equals one of the space-separated endings or ends with
// it after more than two bytes.
func endsLike(word, endings string) bool {
	for e := range strings.FieldsSeq(endings) {
		if word == e || len(word) > len(e)+2 && strings.HasSuffix(word, e) {
			return true
		}
	}
	return false
}
