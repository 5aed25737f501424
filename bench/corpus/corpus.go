// Package corpus makes up what callers say: sentences by grammar, with the pauses
// that people make in them, and the sounds that are no words. All of it follows
// from a seed.
package corpus

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Seeds. Whoever tunes the turn machine looks at what Development makes and
// never at what HeldOut makes: published figures are of HeldOut.
const (
	HeldOut     uint64 = 20261121
	Development uint64 = 7
)

// How long callers pause, uniformly.
const (
	ShortestPause = 200 * time.Millisecond
	LongestPause  = 2 * time.Second
)

// A Kind is where in a sentence a pause stands.
type Kind string

// Kinds.
const (
	MidClause Kind = "mid-clause"      // what was said so far cannot be all
	Complete  Kind = "complete clause" // what was said so far could be all
)

// A Part is some words and the pause after them.
type Part struct {
	Text  string
	Pause time.Duration // 0 after the last part
	Kind  Kind          // of the pause; empty after the last part
}

// A Turn is one thing that a caller has to say.
type Turn []Part

// Text is the turn without its pauses.
func (t Turn) Text() string {
	var all []string
	for _, p := range t {
		all = append(all, p.Text)
	}
	return strings.Join(all, " ")
}

// Kind is the kind of the turn's pauses, which are all of one kind; empty where
// it has none.
func (t Turn) Kind() Kind { return t[0].Kind }

// A Speaker makes turns up. It belongs to one goroutine.
type Speaker struct {
	rnd  *rand.Rand
	said map[string]bool
	deck []string // templates that come before any comes again
	next Kind
	held bool // says what nothing is tuned on
}

// New returns the speaker of a seed. Speakers of one seed and different streams
// say different things.
func New(seed, stream uint64) *Speaker {
	s := &Speaker{rnd: rand.New(rand.NewPCG(seed, stream)), said: map[string]bool{}, next: MidClause, held: seed == HeldOut} //nolint:gosec // repeatable on purpose
	if stream%2 == 1 {
		s.next = Complete
	}
	return s
}

// templates are those of the speaker's seed.
func (s *Speaker) templates() []string {
	if s.held {
		return heldOutTemplates()
	}
	return templates()
}

// Rand is the speaker's source of chance.
func (s *Speaker) Rand() *rand.Rand { return s.rnd }

// Between is a time between two, uniformly, in whole milliseconds.
func (s *Speaker) Between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.rnd.Int64N(int64((high-low)/time.Millisecond)+1))*time.Millisecond
}

// Plain is a turn without a pause that this speaker has not said before.
func (s *Speaker) Plain() Turn {
	text := strings.NewReplacer(" "+midMark, "", " "+completeMark, "").Replace(s.sentence())
	return Turn{{Text: text}}
}

// Paused is a turn that this speaker has not said before, with one pause or two.
// The kinds take turns.
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

// sentence is a marked sentence that was not said before.
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

// fill puts words in the places of a template.
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
	if name == "digits" { // as people dictate them: three by three
		var all []string
		for range 3 {
			all = append(all, pick(s.rnd, words("digit")))
		}
		return strings.Join(all, " ")
	}
	return pick(s.rnd, words(name))
}

func pick(rnd *rand.Rand, from []string) string { return from[rnd.IntN(len(from))] }

// Check says what is wrong with the grammar, if anything.
func Check() error {
	for _, t := range append(templates(), heldOutTemplates()...) {
		for _, mark := range []string{midMark, completeMark} {
			if !strings.Contains(t, " "+mark+" ") {
				return fmt.Errorf("template %q: no place for a pause marked %s", t, mark)
			}
		}
		for _, part := range strings.Split(t, "{")[1:] {
			name, _, ok := strings.Cut(part, "}")
			if !ok || name != "digits" && len(words(name)) == 0 {
				return fmt.Errorf("template %q: %q is no kind of word", t, name)
			}
		}
	}
	return nil
}
