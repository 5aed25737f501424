package eot

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// A Grammar generates lines with known ends of turn. It maps the name of a rule to its
// alternatives. A word in angle brackets refers to a rule or to a class of a lexicon. After a
// comma the words can be complete, after a tilde they may be; elsewhere they are incomplete.
type Grammar map[string][]string

// shallow is the nesting depth from which expand prefers alternatives with fewer references.
const shallow = 4

// ReadGrammar reads rules, one per line: a name, an equals sign, and alternatives separated by
// bars. classes maps the name of a class to its words.
func ReadGrammar(r io.Reader, classes map[string][]string) (Grammar, error) {
	g := Grammar{}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		name, alternatives, ok := strings.Cut(in.Text(), "=")
		if !ok {
			return nil, fmt.Errorf("line %d: want a rule name, an equals sign and alternatives", n)
		}
		for a := range strings.SplitSeq(alternatives, "|") {
			g[strings.TrimSpace(name)] = append(g[strings.TrimSpace(name)], strings.TrimSpace(a))
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("failed to read the grammar: %w", err)
	}
	for c, words := range classes {
		if _, ok := g[c]; !ok {
			g[c] = words
		}
	}
	for name, all := range g {
		for _, a := range all {
			for w := range strings.FieldsSeq(a) {
				if ref, _, ok := reference(w); ok && g[ref] == nil {
					return nil, fmt.Errorf("rule %q: %q is neither a rule nor a class", name, ref)
				}
			}
		}
	}
	return g, nil
}

// reference returns the rule that w refers to, and the rest of w.
func reference(w string) (name, rest string, ok bool) {
	if !strings.HasPrefix(w, "<") {
		return "", "", false
	}
	return strings.Cut(w[1:], ">")
}

// Say generates n different lines.
func (g Grammar) Say(n int, rnd *rand.Rand) []Line {
	said := map[string]bool{}
	var all []Line
	for range 10 * n {
		var b strings.Builder
		g.expand(&b, "say", 0, rnd)
		l := parse(b.String(), Open)
		if key := strings.Join(l.Words, " "); len(l.Words) > 0 && len(l.Words) < 40 && !said[key] {
			said[key] = true
			if all = append(all, l); len(all) == n {
				break
			}
		}
	}
	return all
}

// expand writes a random expansion of a rule.
func (g Grammar) expand(b *strings.Builder, rule string, deep int, rnd *rand.Rand) {
	all := g[rule]
	if len(all) == 0 {
		return
	}
	one := all[rnd.IntN(len(all))]
	for range deep / shallow {
		if other := all[rnd.IntN(len(all))]; strings.Count(other, "<") < strings.Count(one, "<") {
			one = other // makes recursion terminate
		}
	}
	for w := range strings.FieldsSeq(one) {
		if ref, rest, ok := reference(w); ok {
			g.expand(b, ref, deep+1, rnd)
			b.WriteString(rest)
			continue
		}
		b.WriteByte(' ')
		b.WriteString(w)
	}
}
