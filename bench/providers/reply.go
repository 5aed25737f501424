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
	// firstClause is the number of words before the line break in a reply. The voice starts with
	// these words. A punctuation mark would be audible, but a line break is not.
	firstClause = 2
)

// Prompt returns an agent prompt that asks for replies of n words.
func Prompt(n int) string { return fmt.Sprintf("answer in %d words", n) }

// Reply is the fake model. Each word of a reply shows which message it answers, so that a
// listener can tell. Four letters hash the caller's last message, one letter counts the caller's
// messages in the prompt, and one counts the words of the reply.
func Reply(messages []fakeprovider.Message) string { return reply(messages, ShortReply) }

// ReplyOf returns a model like Reply whose replies have n words, unless the prompt asks for
// another number.
func ReplyOf(n int) func([]fakeprovider.Message) string {
	return func(messages []fakeprovider.Message) string { return reply(messages, n) }
}

func reply(messages []fakeprovider.Message, n int) string {
	callers, last := 0, ""
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

// ReplyWords returns the n words of the reply to a message. callers is the number of caller
// messages so far, including this one.
func ReplyWords(message string, callers, n int) []string {
	var words []string
	for i := range n {
		words = append(words, Stem(message)+Letter(callers)+Letter(i))
	}
	return words
}

// Letter returns the letter with index n modulo 26; 0 is a.
func Letter(n int) string { return string(rune('a' + n%Letters)) }

// Stem returns a hash of a message: StemLen letters.
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

// Normalize returns text in lower case and without punctuation, because recognizers differ in both.
func Normalize(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789'", r)
	}), " ")
}

// NextWord returns the word that follows word in a reply, or "" if word is not of a reply.
func NextWord(word string) string {
	if len(word) != WordLen {
		return ""
	}
	return word[:WordLen-1] + Letter(int(word[WordLen-1]-'a')+1)
}
