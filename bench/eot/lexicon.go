package eot

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

// A Lexicon maps a word to its kind, 0 to model.Kinds-1. Words with the same set of classes have the same kind.
type Lexicon map[string]int

// ReadLexicon reads word classes, one per line: name, colon, words. It adds the other forms of verbs and nouns.
func ReadLexicon(r io.Reader) (Lexicon, error) {
	classes, err := readClasses(r)
	if err != nil {
		return nil, err
	}
	kinds, lex := map[string]int{}, Lexicon{}
	var words []string
	for w := range classes {
		if model.Class(w) == w {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	for _, w := range words {
		slices.Sort(classes[w])
		key := strings.Join(classes[w], "+")
		k, ok := kinds[key]
		if !ok {
			k = min(len(kinds), model.Kinds-1)
			kinds[key] = k
		}
		lex[w] = k
	}
	return lex, nil
}

// readClasses returns the classes of each word.
func readClasses(r io.Reader) (map[string][]string, error) {
	classes := map[string][]string{}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		name, words, ok := strings.Cut(in.Text(), ":")
		if !ok {
			return nil, fmt.Errorf("line %d: want a class name, a colon and words", n)
		}
		for w := range strings.FieldsSeq(words) {
			for form, as := range forms(name, w) {
				if !slices.Contains(classes[form], as) {
					classes[form] = append(classes[form], as)
				}
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("failed to read the word classes: %w", err)
	}
	return classes, nil
}

// ReadMembers returns the words of each class.
func ReadMembers(r io.Reader) (map[string][]string, error) {
	classes, err := readClasses(r)
	members := map[string][]string{}
	for w, all := range classes {
		for _, c := range all {
			members[c] = append(members[c], w)
		}
	}
	for _, words := range members {
		slices.Sort(words)
	}
	return members, err
}

// forms returns w and its other forms, with the class of each.
func forms(class, w string) map[string]string {
	all := map[string]string{w: class}
	stem := strings.TrimSuffix(w, "e")
	s := w + "s"
	switch {
	case strings.HasSuffix(w, "y") && !strings.ContainsAny(w[len(w)-2:len(w)-1], "aeiou"):
		s = w[:len(w)-1] + "ies"
	case strings.HasSuffix(w, "s"), strings.HasSuffix(w, "sh"), strings.HasSuffix(w, "ch"), strings.HasSuffix(w, "x"):
		s = w + "es"
	}
	switch class {
	case "verb", "verb-object", "verb-clause":
		all[s] = class + "-s"
		all[stem+"ing"] = class + "-ing"
		past := stem + "ed"
		if strings.HasSuffix(s, "ies") {
			past = w[:len(w)-1] + "ied"
		}
		all[past] = class + "-past"
		if last := w[len(w)-1:]; len(w) > 2 && stem == w && !strings.ContainsAny(last, "aeiouywx") &&
			strings.ContainsAny(w[len(w)-2:len(w)-1], "aeiou") {
			all[w+last+"ing"], all[w+last+"ed"] = class+"-ing", class+"-past" // as in "stopping"
		}
	case "noun":
		all[s] = "noun-s"
	}
	return all
}
