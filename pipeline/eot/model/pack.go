package model

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// Weights is a model before packing.
type Weights struct {
	Known  []uint32         // sorted hashes of the words
	Rows   [][Width]float32 // rows in the order: empty, shapes, kinds, known words
	Kinds  []uint16         // kind of each row; GramIndexes combines them
	Layers []float32        // layers in the order of In, Rec and so on, with one row per input
	Grams  []float32
}

const magic = "eot2"

var errModel = errors.New("not an end-of-turn model")

// Pack encodes the weights with 8 bits each.
func (w *Weights) Pack() []byte {
	b := []byte(magic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(w.Known))) //nolint:gosec // few
	rows := make([]float32, 0, len(w.Rows)*Width)
	for _, r := range w.Rows {
		rows = append(rows, r[:]...)
	}
	in, rec := groupLanes(w.Layers[In:Rec]), groupLanes(w.Layers[Rec:ReadAt])
	packed := make([][]byte, 0, 5)
	var scales [5]float32
	for i, x := range [][]float32{rows, in, rec, w.Layers[ReadAt:Bias], w.Grams} {
		p, s := quantize(x)
		packed, scales[i] = append(packed, p), s
	}
	for _, f := range slices.Concat(scales[:], w.Layers[Bias:]) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	for _, h := range w.Known {
		b = binary.LittleEndian.AppendUint32(b, h)
	}
	for _, k := range w.Kinds {
		b = binary.LittleEndian.AppendUint16(b, k)
	}
	return append(b, slices.Concat(packed...)...)
}

// groupLanes returns a matrix of Gates columns in the order that multiply reads.
func groupLanes(x []float32) []float32 {
	all := make([]float32, 0, len(x))
	for g := 0; g < Gates; g += lanes {
		for i := g; i < len(x); i += Gates {
			all = append(all, x[i:i+lanes]...)
		}
	}
	return all
}

// quantize returns x in steps of scale, within -127 to 127. The largest of every 5,000
// nonzero values are clipped.
func quantize(x []float32) (q []byte, scale float32) {
	sizes := []float32{1e-6}
	for _, v := range x {
		if v != 0 {
			sizes = append(sizes, max(v, -v))
		}
	}
	slices.Sort(sizes)
	scale = sizes[len(sizes)-1-len(sizes)/5000] / 127
	for _, v := range x {
		q = append(q, byte(int8(math.Round(float64(max(-127, min(v/scale, 127))))))) //nolint:gosec // signed reads it
	}
	return q, scale
}

// Read decodes a packed model. The model refers to data.
func Read(data string) (Model, error) {
	const floats = 5 + Layers - Bias
	head := len(magic) + 4 + 4*floats
	if len(data) < head || data[:len(magic)] != magic {
		return Model{}, errModel
	}
	m := Model{known: int(uint32At(data, len(magic)))}
	at := len(magic) + 4
	next := func() float32 {
		at += 4
		return math.Float32frombits(uint32At(data, at-4))
	}
	m.row, m.inUnit, m.recUnit, m.deepUnit, m.gram = next(), next(), next(), next(), next()
	m.inUnit *= m.row
	m.recUnit /= one
	for i := range m.bias {
		m.bias[i] = next()
	}
	for i := range m.unitBias {
		m.unitBias[i] = next()
	}
	for i := range m.out {
		m.out[i] = next()
	}
	m.shift = next()
	data = data[head:]
	if m.known > 1<<16 {
		return Model{}, errModel
	}
	rows := Base + m.known
	for _, part := range []struct {
		to   *string
		size int
	}{
		{&m.hashes, 4 * m.known},
		{&m.kinds, 2 * rows},
		{&m.rows, rows * Width},
		{&m.in, Rec - In},
		{&m.rec, ReadAt - Rec},
		{&m.deep, Bias - ReadAt},
		{&m.grams, Grams},
	} {
		if len(data) < part.size {
			return Model{}, errModel
		}
		*part.to, data = data[:part.size], data[part.size:]
	}
	if data != "" {
		return Model{}, errModel
	}
	return m, nil
}
