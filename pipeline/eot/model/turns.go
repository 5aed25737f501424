package model

import (
	_ "embed"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

//go:embed turns.bin
var turns string

// EnglishTurns returns the English model of turns. It was fitted by parley bench endings
// --dialogues to meetings of the AMI corpus (J. Carletta et al., CC BY 4.0), to medical
// interviews (F. Fareez et al., CC BY 4.0) and to ACI-Bench (W. Yim et al., CC BY 4.0).
func EnglishTurns() Turns {
	m, err := ReadTurns(turns)
	if err != nil {
		return Turns{} // impossible: a test reads the model
	}
	return m
}

// TurnWeights is the number of weights of a model of turns.
const TurnWeights = 1 << 17

// Turns is a model of how often people end their turn after a complete clause. It is a logistic
// regression on the last words, the length of the turn, its sentences and the words of the other party.
type Turns struct {
	weights     string
	unit, shift float32
}

// A Clause is the end of a clause within a turn. Its words are in lower case and without punctuation.
type Clause struct {
	Words []string // the turn so far
	Asked []string // what the other party said before it
	// Mark is the last punctuation mark, or ' ' after a word; 0 if the recognizer uses no punctuation.
	// Only then are Sentences and Last set: the number of sentences, and the number of words of the last one.
	Mark            byte
	Sentences, Last int
}

// turnFeatures is the largest number of features of a clause.
const turnFeatures = 16

// Features appends the indexes of the weights that apply to the clause.
func (c Clause) Features(dst []uint32) []uint32 {
	var said, asked [96]string
	words := Classes(said[:0], c.Words[max(0, len(c.Words)-40):])
	before := Classes(asked[:0], c.Asked[max(0, len(c.Asked)-40):])
	kind, length, mark := questionKind(before), lengthBand(len(c.Words)), int(c.Mark)
	a, b, d := wordAt(words, 1), wordAt(words, 2), wordAt(words, 3)
	first := 0
	if len(c.Words) > 0 {
		head, _ := Split(c.Words[0])
		first = int(Hash(Class(head)))
	}
	n := 0
	add := func(parts ...int) {
		h := mix(uint32(n), min(mark, 1)) //nolint:gosec // few
		n++
		for _, p := range parts {
			h = mix(h, p)
		}
		dst = append(dst, h%TurnWeights)
	}
	add(a)
	add(a, b)
	add(a, b, d)
	add(first)
	add(length)
	add(length, a)
	add(kind)
	add(kind, a)
	add(kind, length)
	add(wordAt(before, 1))
	if mark == 0 {
		return dst
	}
	add(mark)
	add(mark, a)
	add(min(c.Sentences, 6))
	add(lengthBand(c.Last))
	add(mark, int(Hash(c.Words[max(0, len(c.Words)-c.Last)])))
	return dst
}

// wordAt returns the hash of a word, counted from the end.
func wordAt(words []string, fromEnd int) int {
	if fromEnd > len(words) {
		return 0
	}
	return int(Hash(words[len(words)-fromEnd]))
}

// lengthBand returns the band of a number of words.
func lengthBand(n int) int {
	for i, most := range [...]int{0, 1, 2, 3, 4, 6, 9, 14, 20, 30, 50, 100} {
		if n <= most {
			return i
		}
	}
	return 12
}

// Words that show the kind of a question.
const (
	openers    = " what where when who which how why whose "
	auxiliary  = " do does did is are was were can could would will have has should may shall "
	addressees = " you your we i it that there they he she this the "
)

// questionKind returns 0 without words, 1 for an open question, 2 for a yes-or-no question, otherwise 3.
func questionKind(asked []string) int {
	const recent = 14
	asked = asked[max(0, len(asked)-recent):]
	kind := min(3*len(asked), 3)
	for i, w := range asked {
		switch {
		case listed(openers, w):
			return 1
		case i > 0 && listed(auxiliary, asked[i-1]) && listed(addressees, w):
			kind = 2
		}
	}
	return kind
}

// listed reports whether a word is in a list with spaces around each word.
func listed(list, word string) bool {
	i := strings.Index(list, word)
	return i > 0 && list[i-1] == ' ' && list[i+len(word)] == ' '
}

// End returns the log odds that the turn ends with the clause. It is 0 for the zero value.
func (m Turns) End(c Clause) float64 {
	if m.weights == "" {
		return 0
	}
	var buf [turnFeatures]uint32
	y := m.shift
	for _, f := range c.Features(buf[:0]) {
		y += float32(signed(m.weights[f])) * m.unit
	}
	return float64(y)
}

const turnsMagic = "eob1"

// PackTurns encodes weights with 8 bits each.
func PackTurns(weights []float32, shift float32) []byte {
	var largest float32
	for _, w := range weights {
		largest = max(largest, w, -w)
	}
	unit := max(largest, 1e-6) / 127
	b := []byte(turnsMagic)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(unit))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(shift))
	b = slices.Grow(b, len(weights))
	for _, w := range weights {
		b = append(b, byte(int8(math.Round(float64(w/unit))))) //nolint:gosec // signed reads it
	}
	return b
}

// ReadTurns decodes a packed model of turns. The model refers to data.
func ReadTurns(data string) (Turns, error) {
	const head = len(turnsMagic) + 8
	if len(data) != head+TurnWeights || data[:len(turnsMagic)] != turnsMagic {
		return Turns{}, errModel
	}
	at := func(i int) float32 { return math.Float32frombits(uint32At(data, len(turnsMagic)+4*i)) }
	return Turns{weights: data[head:], unit: at(0), shift: at(1)}, nil
}

// Marks returns the last mark, the number of sentences and the number of words of the last one.
func Marks(text string) (mark byte, sentences, last int) {
	sentences = 1
	ended := false
	for w := range strings.FieldsSeq(text) {
		bare := strings.Trim(w, ".,?!…-–—:;\"'*()[]<>{}")
		if bare == "" {
			continue
		}
		if ended {
			sentences, last = sentences+1, 0
		}
		last++
		mark = w[len(w)-1]
		ended = mark == '.' || mark == '?' || mark == '!'
	}
	if mark != ',' && mark != '-' && !ended {
		mark = ' '
	}
	return mark, sentences, last
}
