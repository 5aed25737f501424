// Package wording is what the fake model says. Its answers tell by their every
// word what it was asked: four letters stand for the caller's last message, one
// for how many messages of the caller's the prompt had, and one counts the words
// of the answer. So a word that is heard tells from the sound alone whose it is.
package wording

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/pipeline/fake"
)

// Sizes of words.
const (
	Letters = 26
	Asked   = 4 // letters for the message
	Len     = Asked + 2
	// Few is how many words an answer has of which nothing else is asked.
	Few = 5
	// firstClause is how many words the first clause has, which the voice begins
	// with; a line's end parts it from the rest, for a mark would be heard.
	firstClause = 2
)

// Instructions are the agent's prompt, which asks for an answer of n words.
func Instructions(n int) string { return fmt.Sprintf("answer in %d words", n) }

// Reply is the fake model.
func Reply(messages []fake.Message) string {
	n, callers, last := Few, 0, ""
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
	words := Words(last, callers, n)
	first := strings.Join(words[:min(firstClause, n)], " ")
	return strings.TrimSpace(first + "\n" + strings.Join(words[min(firstClause, n):], " "))
}

// Words are what the fake model says to a message that is the callers-th of the
// caller's, in n words.
func Words(message string, callers, n int) []string {
	var words []string
	for i := range n {
		words = append(words, Stem(message)+Letter(callers)+Letter(i))
	}
	return words
}

// Letter is the n-th letter, from a on and round.
func Letter(n int) string { return string(rune('a' + n%Letters)) }

// Stem stands for a message.
func Stem(message string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(Normal(message)))
	sum := h.Sum32()
	var s strings.Builder
	for range Asked {
		s.WriteString(Letter(int(sum % Letters)))
		sum /= Letters
	}
	return s.String()
}

// Normal is a text as recognizers may write it, made alike.
func Normal(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789'", r)
	}), " ")
}

// Follower is the word after a word of an answer.
func Follower(word string) string {
	if len(word) != Len {
		return ""
	}
	return word[:Len-1] + Letter(int(word[Len-1]-'a')+1)
}
