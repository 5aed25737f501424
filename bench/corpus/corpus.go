// Package corpus generates what callers say: sentences from a grammar, with natural pauses, and
// coughs. Equal seeds give equal results.
package corpus

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Seeds. The turn machine may be tuned only on Development; published figures use HeldOut.
const (
	HeldOut     uint64 = 20261121
	Development uint64 = 7
)

// Bounds of the pauses of callers, which are uniformly distributed.
const (
	ShortestPause = 200 * time.Millisecond
	LongestPause  = 2 * time.Second
)

// A Kind tells whether the words before a pause can be a complete turn.
type Kind string

// Kinds of pauses.
const (
	MidClause Kind = "mid-clause"      // the words so far cannot be a complete turn
	Complete  Kind = "complete clause" // the words so far could be a complete turn
)

// A Part is some words and the pause after them.
type Part struct {
	Text  string
	Pause time.Duration // pause after the words; 0 after the last part
	Kind  Kind          // kind of the pause; empty after the last part
}

// A Turn is one utterance of a caller.
type Turn []Part

// Text returns the turn without pauses.
func (t Turn) Text() string {
	var all []string
	for _, p := range t {
		all = append(all, p.Text)
	}
	return strings.Join(all, " ")
}

// Kind returns the kind of the turn's pauses, which is the same for all; empty without pauses.
func (t Turn) Kind() Kind { return t[0].Kind }

// A Speaker generates turns. Use it from one goroutine.
type Speaker struct {
	rnd  *rand.Rand
	said map[string]bool
	deck []string // templates that this round has not used yet
	next Kind
	held bool // whether the speaker uses the held-out templates
}

// New returns a speaker. Speakers with equal seeds and streams say the same. Streams let many
// speakers share a seed.
func New(seed, stream uint64) *Speaker {
	s := &Speaker{
		rnd:  rand.New(rand.NewPCG(seed, stream)), //nolint:gosec // repeatable on purpose
		said: map[string]bool{},
		next: MidClause,
		held: seed == HeldOut,
	}
	if stream%2 == 1 {
		s.next = Complete
	}
	return s
}

func (s *Speaker) templates() []string {
	if s.held {
		return heldOutTemplates()
	}
	return templates()
}

// Rand returns the speaker's random source.
func (s *Speaker) Rand() *rand.Rand { return s.rnd }

// Between returns a uniformly distributed duration in whole milliseconds.
func (s *Speaker) Between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.rnd.Int64N(int64((high-low)/time.Millisecond)+1))*time.Millisecond
}

// Plain returns a turn without a pause that this speaker has not said yet.
func (s *Speaker) Plain() Turn {
	text := strings.NewReplacer(" "+midMark, "", " "+completeMark, "").Replace(s.sentence())
	return Turn{{Text: text}}
}

// Paused returns a turn with one or two pauses that this speaker has not said yet. Kinds
// alternate from turn to turn.
func (s *Speaker) Paused() Turn {
	kind, mark, other := s.next, midMark, completeMark
	s.next = Complete
	if kind == Complete {
		s.next, mark, other = MidClause, completeMark, midMark
	}
	pieces := strings.Split(strings.ReplaceAll(s.sentence(), " "+other, ""), " "+mark+" ")
	for len(pieces) > 3 || len(pieces) == 3 && s.rnd.IntN(3) == 0 {
		i := s.rnd.IntN(len(pieces) - 1)
		pieces[i] += " " + pieces[i+1]
		pieces = append(pieces[:i+1], pieces[i+2:]...)
	}
	var t Turn
	for i, text := range pieces {
		p := Part{Text: text}
		if i < len(pieces)-1 {
			p.Kind, p.Pause = kind, s.Between(ShortestPause, LongestPause)
		}
		t = append(t, p)
	}
	return t
}

// sentence returns a sentence, including pause marks, that this speaker has not said yet.
func (s *Speaker) sentence() string {
	for {
		if len(s.deck) == 0 {
			s.deck = s.templates()
			s.rnd.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
		}
		text := s.fill(s.deck[0])
		s.deck = s.deck[1:]
		if !s.said[text] {
			s.said[text] = true
			return text
		}
	}
}

// fill replaces each placeholder of a template by a random word.
func (s *Speaker) fill(template string) string {
	for {
		before, rest, ok := strings.Cut(template, "{")
		if !ok {
			return template
		}
		name, after, _ := strings.Cut(rest, "}")
		template = before + s.word(name) + after
	}
}

func (s *Speaker) word(name string) string {
	if name == "digits" { // people dictate digits in groups of three
		var all []string
		for range 3 {
			all = append(all, pick(s.rnd, words("digit")))
		}
		return strings.Join(all, " ")
	}
	return pick(s.rnd, words(name))
}

func pick(rnd *rand.Rand, from []string) string { return from[rnd.IntN(len(from))] }

// Check validates the grammar.
func Check() error {
	for _, t := range append(templates(), heldOutTemplates()...) {
		for _, mark := range []string{midMark, completeMark} {
			if !strings.Contains(t, " "+mark+" ") {
				return fmt.Errorf("template %q: missing pause mark %s", t, mark)
			}
		}
		for _, part := range strings.Split(t, "{")[1:] {
			name, _, ok := strings.Cut(part, "}")
			if !ok || name != "digits" && len(words(name)) == 0 {
				return fmt.Errorf("template %q: unknown word kind %q", t, name)
			}
		}
	}
	return nil
}
