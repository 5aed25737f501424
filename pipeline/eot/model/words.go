package model

import "strings"

// Word classes. The exact number, day or month does not affect the end of a turn. No real word
// looks like a class.
const (
	Number  = "#"
	rank    = "#th"
	day     = "#day"
	month   = "#month"
	address = "#@"
)

// Classes appends the classes of words to dst. Numbers, ordinals, days, months and addresses
// are one class each. A run of numbers becomes one number, and a contraction becomes its two
// words.
func Classes(dst, words []string) []string {
	for _, w := range words {
		head, tail := Split(w)
		head = Class(head)
		if n := len(dst); head == Number && n > 0 && dst[n-1] == Number {
			continue
		}
		dst = append(dst, head)
		if tail != "" {
			dst = append(dst, tail)
		}
	}
	return dst
}

// Split splits a contraction such as "don't" or "we'll"; tail is empty for other words.
// "'s" is not split.
func Split(w string) (head, tail string) {
	switch w {
	case "can't", "cant", "cannot":
		return "can", "not"
	case "won't":
		return "will", "not"
	case "im":
		return "i", "am"
	case "ive":
		return "i", "have"
	case "dont", "doesnt", "didnt", "isnt", "wasnt", "havent", "couldnt", "wouldnt":
		return w[:len(w)-2], "not"
	}
	i := strings.IndexByte(w, '\'')
	if i < 1 {
		return w, ""
	}
	switch w[i:] {
	case "'t":
		if w[i-1] == 'n' && i > 1 {
			return w[:i-1], "not"
		}
	case "'m":
		return w[:i], "am"
	case "'d":
		return w[:i], "would"
	case "'re":
		return w[:i], "are"
	case "'ve":
		return w[:i], "have"
	case "'ll":
		return w[:i], "will"
	}
	return w, ""
}

// Class returns the class of a lower-case word, or the word itself.
func Class(w string) string {
	switch w {
	case "":
		return w
	case "zero", "oh", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
		"thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty",
		"fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million":
		return Number
	case "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday":
		return day
	case "january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december":
		return month
	case "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth",
		"fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth", "thirtieth":
		return rank
	}
	if w[0] >= '0' && w[0] <= '9' {
		if n := len(w); n > 2 {
			switch w[n-2:] {
			case "st", "nd", "rd", "th":
				return rank
			}
		}
		return Number
	}
	if strings.IndexByte(w, '@') >= 0 {
		return address
	}
	return w
}

// Hash returns the FNV-1a hash of a word.
func Hash(word string) uint32 {
	h := uint32(2166136261)
	for i := range len(word) {
		h = (h ^ uint32(word[i])) * 16777619
	}
	return h
}

// Shape returns the shape of an unknown word, 0 to Shapes-1. It depends on the last letters only.
func Shape(word string) int {
	end := max(0, len(word)-3)
	if n := len(word); n > 2 && word[n-2] == '\'' {
		end = n - 2 // as in "mother's"
	}
	return int(Hash(word[end:]) % Shapes)
}
