// Package ending tells how likely it is that nothing comes after some words: by
// a small network that reads them one after the other, and by weights of the last
// one to four of them together. It is pure, and needs neither marks nor capitals.
//
// The model of English was fitted by parley bench endings --fit, with the classes,
// the grammar and, six times each, the two texts of bench/ending/texts; and with
// sentences of others: every fourth of users and every 36th of agents of
// Schema-Guided Dialogue (Google, CC BY-SA 4.0), Taskmaster 3 and 4 (Google, CC BY
// 4.0), every fourth of MultiDoGO (Amazon, CDLA Permissive), Banking77, NLU++ and
// Restaurant-8k (PolyAI, CC BY 4.0), CLINC150 (CC BY 3.0), NLU Evaluation Data (X.
// Liu et al., CC BY 4.0; the first fold's training set), and the English sentences
// of the Tatoeba test sets of LASER (CC BY 2.0 FR).
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
	Width  = 32 // of a word
	Hidden = 48 // of the memory that is carried from word to word
	Gates  = 3 * Hidden
	Units  = 32 // that read the memory and the last two words
	Deep   = Hidden + 2*Width
	Most   = 20      // words that count, the last ones
	Shapes = 256     // rows for words that are not known
	Kinds  = 128     // rows for kinds of words
	Grams  = 1 << 16 // weights of the last words together
)

// Where the weights of the layers are, one layer after the other.
const (
	In       = 0                   // Width*Gates, of a word
	Rec      = In + Width*Gates    // Hidden*Gates, of the memory
	ReadAt   = Rec + Hidden*Gates  // Deep*Units
	Bias     = ReadAt + Deep*Units // Gates
	UnitBias = Bias + Gates        // Units
	Out      = UnitBias + Units    // Units
	Shift    = Out + Units         // 1
	Layers   = Shift + 1
)

// A Model is weights, as Pack writes them.
type Model struct {
	hashes, kinds, rows, in, rec, deep, grams   string
	bias                                        [Gates]float32
	unitBias, out                               [Units]float32
	row, inUnit, recUnit, deepUnit, gram, shift float32
	known                                       int
}

// Base is the first row of a word that is known. Row 0 is none; those between
// are of shapes and kinds.
const Base = 1 + Shapes + Kinds

// Row is the row of a word of a class: its own, or the one of its shape.
func (m *Model) Row(word string) int {
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

// Together are the weights in Grams of the last one to four words together, and of
// their kinds.
func Together(rows, kinds []int) (grams [8]uint32) {
	const half = len(grams) / 2
	n := len(rows)
	words, sorts := uint32(1), uint32(2)
	for i := range half + 1 {
		row, kind := 0, 0
		if i < n {
			row, kind = rows[n-1-i], kinds[n-1-i]
		}
		words, sorts = mix(words, row), mix(sorts, kind)
		if i < half {
			grams[i] = words % Grams
		}
		if i > 0 {
			grams[half+i-1] = sorts % Grams
		}
	}
	return grams
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
	var rows, kinds [Most]int
	words = words[max(0, len(words)-Most):]
	for i, w := range words {
		rows[i] = m.Row(w)
		kinds[i] = int(m.kinds[2*rows[i]]) | int(m.kinds[2*rows[i]+1])<<8
	}
	y := m.read(rows[:len(words)])
	for _, g := range Together(rows[:len(words)], kinds[:len(words)]) {
		y += float32(signed(m.grams[g])) * m.gram
	}
	return float64(y)
}

// one is 1 in the memory's numbers.
const one = 1 << 10

// read reads the words with a gated recurrent unit (K. Cho et al., 2014), and
// tells what it makes of them.
func (m *Model) read(rows []int) float32 {
	var h [Hidden]float32
	var memory [Hidden]int32
	var x, before [Width]int32
	for _, row := range rows {
		before = x
		for k := range Width {
			x[k] = signed(m.rows[row*Width+k])
		}
		var in, rec [Gates]int32
		product(&in, m.in, x[:])
		product(&rec, m.rec, memory[:])
		for j := range Hidden {
			v := func(i int) (a, b float32) {
				return float32(in[i])*m.inUnit + m.bias[i], float32(rec[i]) * m.recUnit
			}
			az, bz := v(j)
			ar, br := v(Hidden + j)
			ac, bc := v(2*Hidden + j)
			z := Sigmoid(az + bz)
			h[j] = z*h[j] + (1-z)*Tanh(ac+Sigmoid(ar+br)*bc)
			memory[j] = int32(h[j] * one)
		}
	}
	var deep, words [Units]int32
	add(&deep, m.deep, memory[:])
	add(&words, m.deep[Hidden*Units:], x[:])
	add(&words, m.deep[(Hidden+Width)*Units:], before[:])
	y := m.shift
	for j := range Units {
		v := (float32(deep[j])/one+float32(words[j])*m.row)*m.deepUnit + m.unitBias[j]
		y += max(0, v) * m.out[j]
	}
	return y
}

// product multiplies a matrix with x. The matrix has its weights for the first
// lanes sums one input after the other, then those for the next. Two weights are
// multiplied at once: 32 bits hold a sum, and what it borrows from its neighbor
// is given back.
func product(sums *[Gates]int32, w string, x []int32) {
	const each, half = 0x000000ff000000ff, 0x8080808080808080
	all := int32(0)
	for _, v := range x {
		all += v
	}
	for g := range Gates / lanes {
		part := w[g*lanes*len(x):][:lanes*len(x)]
		var a, b, c, d int64
		for k, v := range x {
			q, v := word8(part, lanes*k)^half, int64(v) // weights and 128, so that there are no signs
			a += v * int64(q&each)
			b += v * int64(q>>8&each)
			c += v * int64(q>>16&each)
			d += v * int64(q>>24&each)
		}
		for i, sum := range [...]int64{a, b, c, d} {
			low := int32(sum)                       //nolint:gosec // the rest is its neighbor's
			high := int32((sum - int64(low)) >> 32) //nolint:gosec // 32 bits are left
			sums[g*lanes+i], sums[g*lanes+4+i] = low-128*all, high-128*all
		}
	}
}

// lanes is how many weights are read at once.
const lanes = 8

// word8 reads 64 bits, the least first.
func word8(s string, at int) uint64 {
	b := s[at:][:8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// add adds what x gives to the units, by the weights w.
func add(sum *[Units]int32, w string, x []int32) {
	for k, v := range x {
		row := w[k*Units:][:Units]
		for j := range Units {
			sum[j] += v * signed(row[j])
		}
	}
}

// Tanh is nearly the hyperbolic tangent.
func Tanh(x float32) float32 {
	x = max(-3, min(x, 3))
	return x * (27 + x*x) / (27 + 9*x*x)
}

// Sigmoid is nearly the logistic function.
func Sigmoid(x float32) float32 { return 0.5 + 0.5*Tanh(x/2) }

// signed reads 8 bits with a sign.
func signed(b byte) int32 { return int32(int8(b)) } //nolint:gosec // as they were written
