package providers

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// Sizes of words.
const (
	Letters = 26
	StemLen = 4 // letters that encode the message
	WordLen = StemLen + 2
	// ShortReply is the default number of words of a reply.
	ShortReply = 5
	// firstClause is the number of words before the line break, with which the voice starts. A
	// punctuation mark would be audible, but a line break is not.
	firstClause = 2
)

// Prompt returns an agent prompt that requests replies of n words.
func Prompt(n int) string { return fmt.Sprintf("answer in %d words", n) }

// Reply is the fake model. Each word of a reply encodes the message that it answers: four
// letters hash the caller's last message, one letter counts the caller's messages in the
// prompt, and one counts the words of the reply. So a listener can tell which message a word
// answers.
func Reply(messages []fakeprovider.Message) string {
	n, callers, last := ShortReply, 0, ""
	for _, m := range messages {
		switch m.Role {
		case "system":
			if f := strings.Fields(m.Content); len(f) == 4 {
				if want, err := strconv.Atoi(f[2]); err == nil {
					n = want
				}
			}
		case "user":
			callers, last = callers+1, m.Content
		}
	}
	words := ReplyWords(last, callers, n)
	first := strings.Join(words[:min(firstClause, n)], " ")
	return strings.TrimSpace(first + "\n" + strings.Join(words[min(firstClause, n):], " "))
}

// ReplyWords returns the n words of the reply to a message that is the caller's callers-th.
func ReplyWords(message string, callers, n int) []string {
	var words []string
	for i := range n {
		words = append(words, Stem(message)+Letter(callers)+Letter(i))
	}
	return words
}

// Letter returns the n-th letter, modulo 26.
func Letter(n int) string { return string(rune('a' + n%Letters)) }

// Stem returns the hash of a message.
func Stem(message string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(Normalize(message)))
	sum := h.Sum32()
	var s strings.Builder
	for range StemLen {
		s.WriteString(Letter(int(sum % Letters)))
		sum /= Letters
	}
	return s.String()
}

// Normalize removes the differences between the spellings of recognizers.
func Normalize(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789'", r)
	}), " ")
}

// NextWord returns the word that follows word in a reply.
func NextWord(word string) string {
	if len(word) != WordLen {
		return ""
	}
	return word[:WordLen-1] + Letter(int(word[WordLen-1]-'a')+1)
}
