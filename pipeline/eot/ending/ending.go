// Package ending tells how likely it is that nothing comes after some words: by
// a small network over the last words, and by weights of the last one to four of
// them together. It is pure, and needs neither marks nor capitals.
//
// The model of English was fitted by parley bench endings --fit to bench/ending/texts
// and to transcripts of people who talk or write to agents: Schema-Guided
// Dialogue (Google, CC BY-SA 4.0), Taskmaster 3 and 4 (Google, CC BY 4.0),
// MultiDoGO (Amazon, CDLA Permissive), Banking77, NLU++ and Restaurant-8k
// (PolyAI, CC BY 4.0).
package ending

import (
	_ "embed"
	"math"
)

//go:embed english.bin
var english string

// English is the model of English.
func English() Model {
	m, err := Read(english)
	if err != nil {
		return Model{} // a test sees to it that this is not so
	}
	return m
}

// Sizes of the model.
const (
	Width  = 16      // of a word
	Hidden = 32      // units
	Window = 8       // last words that count one by one
	Slots  = 11      // Window, the first two words, and the sum of all
	Shapes = 256     // rows for words that are not known
	Kinds  = 128     // rows for kinds of words
	Grams  = 1 << 16 // weights of the last words together
	Most   = 24      // words that count at all
)

const (
	firsts = Window     // slot of the first word
	bag    = Window + 2 // slot of the sum
)

// A Site is what the model sees of a place between words.
type Site struct {
	Rows  [bag]int  // of the last words, the last first, and of the first two
	All   [Most]int // of the last words
	Said  int       // how many of All there are
	Grams [8]uint32
}

// A Model is weights, as Pack writes them.
type Model struct {
	hashes, kinds, rows, hidden, grams string
	bias, out                          [Hidden]float32
	row, unit, gram, shift             float32
	known                              int
}

// Base is the first row of a word that is known. Row 0 is none; those between
// are of shapes and kinds.
const Base = 1 + Shapes + Kinds

// Row is the row of a word of a class: its own, or the one of its shape.
func (m Model) Row(word string) int {
	h := Hash(word)
	low, high := 0, m.known
	for low < high {
		if mid := (low + high) / 2; word4(m.hashes, 4*mid) < h {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < m.known && word4(m.hashes, 4*low) == h {
		return Base + low
	}
	return 1 + Shape(word)
}

// word4 reads 32 bits, the least first.
func word4(s string, at int) uint32 {
	return uint32(s[at]) | uint32(s[at+1])<<8 | uint32(s[at+2])<<16 | uint32(s[at+3])<<24
}

// See fills in the site after words, whose rows and kinds are given.
func (s *Site) See(rows, kinds []int) {
	n := len(rows)
	for i := range Window {
		s.Rows[i] = 0
		if i < n {
			s.Rows[i] = rows[n-1-i]
		}
	}
	for i := range 2 {
		s.Rows[firsts+i] = 0
		if i < n {
			s.Rows[firsts+i] = rows[i]
		}
	}
	s.Said = copy(s.All[:], rows[max(0, n-Most):])
	const half = len(s.Grams) / 2
	words, sorts := uint32(1), uint32(2)
	for i := range half + 1 {
		row, kind := 0, 0
		if i < n {
			row, kind = rows[n-1-i], kinds[n-1-i]
		}
		words, sorts = mix(words, row), mix(sorts, kind)
		if i < half {
			s.Grams[i] = words % Grams
		}
		if i > 0 {
			s.Grams[half+i-1] = sorts % Grams
		}
	}
}

func mix(h uint32, with int) uint32 {
	h = (h + uint32(with) + 1) * 2654435761 //nolint:gosec // few
	return h ^ h>>15
}

// End is the log odds that nothing comes after the words, which are in lower
// case and without marks.
func (m Model) End(words []string) float64 {
	var buf [96]string
	words = Classes(buf[:0], words[max(0, len(words)-64):])
	if len(words) == 0 || m.rows == "" {
		return math.Inf(-1)
	}
	var rows, kinds [64]int
	words = words[max(0, len(words)-len(rows)):]
	for i, w := range words {
		rows[i] = m.Row(w)
		kinds[i] = int(m.kinds[2*rows[i]]) | int(m.kinds[2*rows[i]+1])<<8
	}
	var s Site
	s.See(rows[:len(words)], kinds[:len(words)])
	return m.score(&s)
}

// score is the model's output.
func (m Model) score(s *Site) float64 {
	var sum [Hidden]int32
	for i, row := range s.Rows {
		m.add(&sum, i, row)
	}
	var all, x [Width]int32
	for _, row := range s.All[:s.Said] {
		for k := range Width {
			all[k] += signed(m.rows[row*Width+k])
		}
	}
	for k := range x {
		x[k] = all[k] / int32(s.Said) //nolint:gosec // Most at most
	}
	for k, v := range x {
		w := m.hidden[(bag*Width+k)*Hidden:][:Hidden]
		for j := range Hidden {
			sum[j] += v * signed(w[j])
		}
	}
	y := m.shift
	for j, v := range sum {
		y += max(0, float32(v)*m.unit+m.bias[j]) * m.out[j]
	}
	for _, g := range s.Grams {
		y += float32(signed(m.grams[g])) * m.gram
	}
	return float64(y)
}

// add adds the word in slot i to the units.
func (m Model) add(sum *[Hidden]int32, i, row int) {
	x := m.rows[row*Width:][:Width]
	for k := range Width {
		v := signed(x[k])
		w := m.hidden[(i*Width+k)*Hidden:][:Hidden]
		for j := range Hidden {
			sum[j] += v * signed(w[j])
		}
	}
}

// signed reads 8 bits with a sign.
func signed(b byte) int32 { return int32(int8(b)) } //nolint:gosec // as they were written
