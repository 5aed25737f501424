package ending

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// Weights are a model before it is packed.
type Weights struct {
	Known []uint32          // hashes of the words, sorted
	Rows  [][Width]float32  // none, shapes, kinds, known words
	Kinds []uint16          // of the rows, for Grams
	Layer [][Hidden]float32 // Slots*Width
	Bias  [Hidden]float32
	Out   [Hidden]float32
	Grams []float32
	Shift float32
}

const magic = "eot1"

var errModel = errors.New("not a model of endings")

// Pack writes the weights, with 8 bits each.
func (w *Weights) Pack() []byte {
	b := []byte(magic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(w.Known))) //nolint:gosec // few
	var rows, layer []float32
	for _, r := range w.Rows {
		rows = append(rows, r[:]...)
	}
	for _, r := range w.Layer {
		layer = append(layer, r[:]...)
	}
	packed := make([][]byte, 0, 3)
	var scales [3]float32
	for i, x := range [][]float32{rows, layer, w.Grams} {
		p, s := quantize(x)
		packed, scales[i] = append(packed, p), s
	}
	floats := []float32{scales[0], scales[0] * scales[1], scales[2], w.Shift}
	floats = slices.Concat(floats, w.Bias[:], w.Out[:])
	for _, f := range floats {
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

// quantize is x in steps of scale, within -127 and 127. The largest in 5,000 of
// those that are not 0 are cut.
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

// Read reads a packed model. It keeps data.
func Read(data string) (Model, error) {
	const floats = 4 + 2*Hidden
	head := len(magic) + 4 + 4*floats
	if len(data) < head || data[:len(magic)] != magic {
		return Model{}, errModel
	}
	m := Model{known: int(word4(data, len(magic)))}
	f := func(i int) float32 { return math.Float32frombits(word4(data, len(magic)+4+4*i)) }
	m.row, m.unit, m.gram, m.shift = f(0), f(1), f(2), f(3)
	for j := range Hidden {
		m.bias[j], m.out[j] = f(4+j), f(4+Hidden+j)
	}
	data = data[head:]
	if m.known > 1<<16 {
		return Model{}, errModel
	}
	rows := (Base + m.known) * Width
	if len(data) != 4*m.known+2*(Base+m.known)+rows+Slots*Width*Hidden+Grams {
		return Model{}, errModel
	}
	m.hashes, data = data[:4*m.known], data[4*m.known:]
	m.kinds, data = data[:2*(Base+m.known)], data[2*(Base+m.known):]
	m.rows, data = data[:rows], data[rows:]
	m.hidden, m.grams = data[:Slots*Width*Hidden], data[Slots*Width*Hidden:]
	return m, nil
}
