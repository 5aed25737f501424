package tts

import "strings"

// wholeWords cuts streamed text after its last white space: what is behind it
// may be half a word.
func wholeWords(text string) (whole, rest string) {
	cut := strings.LastIndexAny(text, " \n\t") + 1
	return text[:cut], text[cut:]
}
