// Package model estimates the probability that a turn ends after given words. It combines
// a small recurrent network with weights for the last one to four words. It is pure and
// needs no punctuation or capitals.
//
// The English model was fitted by parley bench endings --fit with the classes, the grammar
// and, six times each, the two texts of bench/eot/texts, and with public sentences: every
// fourth of users and every 36th of agents of Schema-Guided Dialogue (Google, CC BY-SA
// 4.0), Taskmaster 3 and 4 (Google, CC BY 4.0), every fourth of MultiDoGO (Amazon, CDLA
// Permissive), Banking77, NLU++ and Restaurant-8k (PolyAI, CC BY 4.0), CLINC150 (CC BY
// 3.0), NLU Evaluation Data (X. Liu et al., CC BY 4.0; the first fold's training set), and
// the English sentences of the Tatoeba test sets of LASER (CC BY 2.0 FR).
package model

import (
	_ "embed"
	"math"
)

//go:embed english.bin
var english string

// English returns the English model.
func English() Model {
	m, err := Read(english)
	if err != nil {
		return Model{} // impossible: a test reads the model
	}
	return m
}

// Sizes of the model.
const (
	Width      = 32 // size of a word vector
	Hidden     = 48 // size of the recurrent state
	Gates      = 3 * Hidden
	Units      = 32 // number of output units; they read the state and the last two words
	UnitInputs = Hidden + 2*Width
	MaxWords   = 20      // maximum number of words that the model reads, from the end
	Shapes     = 256     // number of rows for unknown words
	Kinds      = 128     // number of rows for kinds of words
	Grams      = 1 << 16 // number of weights of word combinations
)

// Offsets of the layers in Weights.Layers.
const (
	In       = 0                         // Width*Gates weights for the word
	Rec      = In + Width*Gates          // Hidden*Gates weights for the state
	ReadAt   = Rec + Hidden*Gates        // UnitInputs*Units weights
	Bias     = ReadAt + UnitInputs*Units // one weight for each of the Gates
	UnitBias = Bias + Gates              // one weight for each of the Units
	Out      = UnitBias + Units          // one weight for each of the Units
	Shift    = Out + Units               // one weight
	Layers   = Shift + 1
)

// A Model holds weights in the format of Pack.
type Model struct {
	hashes, kinds, rows, in, rec, deep, grams   string
	bias                                        [Gates]float32
	unitBias, out                               [Units]float32
	row, inUnit, recUnit, deepUnit, gram, shift float32
	known                                       int
}

// Base is the first row of known words. Row 0 is empty; the rows between are for shapes
// and kinds.
const Base = 1 + Shapes + Kinds

// Row returns the row of a word class: its own row if the class is known, otherwise the row of its shape.
func (m *Model) Row(word string) int {
	h := Hash(word)
	low, high := 0, m.known
	for low < high {
		if mid := (low + high) / 2; uint32At(m.hashes, 4*mid) < h {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < m.known && uint32At(m.hashes, 4*low) == h {
		return Base + low
	}
	return 1 + Shape(word)
}

// uint32At reads 32 bits in little-endian order.
func uint32At(s string, at int) uint32 {
	return uint32(s[at]) | uint32(s[at+1])<<8 | uint32(s[at+2])<<16 | uint32(s[at+3])<<24
}

// GramIndexes returns the indexes in Weights.Grams of the last one to four words, and of the kinds of the last two to
// five words.
func GramIndexes(rows, kinds []int) (grams [8]uint32) {
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

// End returns the log odds that the turn ends after the words, which are in lower case and
// without punctuation.
func (m Model) End(words []string) float64 {
	var buf [96]string
	words = Classes(buf[:0], words[max(0, len(words)-64):])
	if len(words) == 0 || m.rows == "" {
		return math.Inf(-1)
	}
	var rows, kinds [MaxWords]int
	words = words[max(0, len(words)-MaxWords):]
	for i, w := range words {
		rows[i] = m.Row(w)
		kinds[i] = int(m.kinds[2*rows[i]]) | int(m.kinds[2*rows[i]+1])<<8
	}
	y := m.read(rows[:len(words)])
	for _, g := range GramIndexes(rows[:len(words)], kinds[:len(words)]) {
		y += float32(signed(m.grams[g])) * m.gram
	}
	return float64(y)
}

// one stands for 1 in the fixed-point numbers of the state.
const one = 1 << 10

// read runs a gated recurrent unit (K. Cho et al., 2014) over the words and returns the
// log odds.
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
		multiply(&in, m.in, x[:])
		multiply(&rec, m.rec, memory[:])
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
	addProducts(&deep, m.deep, memory[:])
	addProducts(&words, m.deep[Hidden*Units:], x[:])
	addProducts(&words, m.deep[(Hidden+Width)*Units:], before[:])
	y := m.shift
	for j := range Units {
		v := (float32(deep[j])/one+float32(words[j])*m.row)*m.deepUnit + m.unitBias[j]
		y += max(0, v) * m.out[j]
	}
	return y
}

// multiply multiplies the matrix w with x. w is divided into groups of 8 sums (lanes); each group holds its weights input
// by input. One 64-bit multiplication multiplies two weights, whose products take 32 bits each. If the lower product is
// negative, it borrows from the higher one, which is corrected at the end.
func multiply(sums *[Gates]int32, w string, x []int32) {
	const each, half = 0x000000ff000000ff, 0x8080808080808080
	all := int32(0)
	for _, v := range x {
		all += v
	}
	for g := range Gates / lanes {
		part := w[g*lanes*len(x):][:lanes*len(x)]
		var a, b, c, d int64
		for k, v := range x {
			q, v := uint64At(part, lanes*k)^half, int64(v) // weights plus 128, so that they are unsigned
			a += v * int64(q&each)
			b += v * int64(q>>8&each)
			c += v * int64(q>>16&each)
			d += v * int64(q>>24&each)
		}
		for i, sum := range [...]int64{a, b, c, d} {
			low := int32(sum)                       //nolint:gosec // the upper half is the other product
			high := int32((sum - int64(low)) >> 32) //nolint:gosec // 32 bits are left
			sums[g*lanes+i], sums[g*lanes+4+i] = low-128*all, high-128*all
		}
	}
}

// lanes is the number of weights read at once.
const lanes = 8

// uint64At reads 64 bits in little-endian order.
func uint64At(s string, at int) uint64 {
	b := s[at:][:8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// addProducts adds the products of x and the weights w to the units.
func addProducts(sum *[Units]int32, w string, x []int32) {
	for k, v := range x {
		row := w[k*Units:][:Units]
		for j := range Units {
			sum[j] += v * signed(row[j])
		}
	}
}

// Tanh approximates the hyperbolic tangent.
func Tanh(x float32) float32 {
	x = max(-3, min(x, 3))
	return x * (27 + x*x) / (27 + 9*x*x)
}

// Sigmoid approximates the logistic function.
func Sigmoid(x float32) float32 { return 0.5 + 0.5*Tanh(x/2) }

// signed reads a signed byte.
func signed(b byte) int32 { return int32(int8(b)) } //nolint:gosec // as they were written
