package eot

import "strings"

// An Expectation is what kind of answer a question wants.
type Expectation uint8

// Expectations.
const (
	Anything  Expectation = iota // nothing was asked
	YesNo                        // yes or no
	Choice                       // one of some that were named
	Telling                      // an open question: more than a word
	Dictation                    // a number, an address, a spelled name
)

// stating are the English words that ask whether something is so, never for it.
const stating = "is are was were do does did have has isn't aren't"

// Expect tells what answer the agent's last words want.
func Expect(asked, language string) Expectation {
	lex := speech(language)
	question := lastSentence(strings.ToLower(asked))
	question = strings.NewReplacer("qu'est-ce qu", "quoi ", "est-ce que", "", "est-ce qu'", "").Replace(question)
	words := tokens(question)
	if len(words) == 0 {
		return Anything
	}
	marked := strings.Contains(question, "?")
	first := opener(words, lex)
	confirming := marked && (hasPhrase(question, lex.sureness) || has(stating, first))
	switch {
	case hasPhrase(question, lex.numbers) && !confirming:
		return Dictation
	case !marked && !has(lex.deciding, first) && !has(lex.asking, first):
		return Anything
	case hasAny(words, lex.or):
		return Choice
	case hasAny(words, lex.asking) && !has(stating, first):
		return Telling
	default:
		return YesNo
	}
}

// opener is the first word that is not there to soften the question.
func opener(words []string, lex lexicon) string {
	for _, w := range words {
		if !has(lex.yes, w) && !has("and so great thanks now alright", w) {
			return w
		}
	}
	return words[0]
}

// lastSentence is what stands after the last full stop that has something
// behind it.
func lastSentence(s string) string {
	s = strings.TrimSpace(s)
	end := strings.TrimRight(s, ".?!… ")
	if i := strings.LastIndexAny(end, ".?!"); i >= 0 {
		return strings.TrimSpace(s[i+1:])
	}
	return s
}

// tokens are the words of text, without the marks around them.
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

// has tells whether word stands in a list parted by spaces.
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

// hasPhrase tells whether text holds one of the phrases parted by bars.
func hasPhrase(text, phrases string) bool {
	for p := range strings.SplitSeq(phrases, "|") {
		if p != "" && strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// closes tells whether the words end with one of the phrases parted by bars.
func closes(words []string, phrases string) bool {
	text := " " + strings.Join(words, " ")
	for p := range strings.SplitSeq(phrases, "|") {
		if p != "" && strings.HasSuffix(text, " "+p) {
			return true
		}
	}
	return false
}

// endsLike tells whether the word has one of the endings, which are parted by
// spaces, and something before it, or is one.
func endsLike(word, endings string) bool {
	for e := range strings.FieldsSeq(endings) {
		if word == e || len(word) > len(e)+2 && strings.HasSuffix(word, e) {
			return true
		}
	}
	return false
}
