package ending

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/parley-voice/parley/pipeline/eot/ending"
)

// Options say how a model is fitted.
type Options struct {
	Rounds  int              // through all lines
	Words   int              // known, at most
	Rare    int              // words seen less often are not known
	Rate    float64          // of learning
	Drop    float64          // a word seen so often is taken for an unknown one every other time
	Doubt   float64          // the least share that is learned from places that look like ends
	Lexicon Lexicon          // what kinds of words there are
	Weigh   [End + 1]float32 // of a place of each kind
	// Progress is told of every round.
	Progress func(round int, loss float64)
}

// Defaults are the options of the house.
func Defaults() Options {
	return Options{Rounds: 3, Words: 7000, Rare: 3, Rate: 0.05, Drop: 10, Doubt: 0.1, Weigh: [...]float32{Inside: 1, Going: 0.15, Comma: 0.2, Closing: 0.7, End: 1}}
}

// fitter fits weights by stochastic gradient descent with a step of its own for
// every weight (AdaGrad, J. Duchi et al., 2011).
type fitter struct {
	ending.Weights
	rows      [][ending.Width]float32 // squares of gradients
	layer     [ending.Hidden]float32
	bias, out [ending.Hidden]float32
	grams     []float32
	shift     float32
	rate      float32
	index     map[string]int
	doubt     float64
	mean      *ending.Weights // of the last round
	blended   int
	seen      [ending.Shapes]float64 // how often a shape stood for a word
	count     map[int]float64
	base      []int // rows that the rows of known words stand on
	rnd       *rand.Rand
}

const bag = ending.Slots - 1

// Fit fits a model to lines.
func Fit(lines []Line, o Options) *ending.Weights {
	f := &fitter{rate: float32(o.Rate), doubt: o.Doubt, rnd: rand.New(rand.NewPCG(3, 4))} //nolint:gosec // repeatable on purpose
	f.know(lines, o)
	f.start()
	all := slices.Clone(lines)
	for _, l := range lines {
		all = append(all, l.sentences()...)
	}
	for r := range o.Rounds {
		f.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		loss, n := 0.0, 0.0
		f.rate = float32(o.Rate) * (1 - 0.8*float32(r)/float32(o.Rounds))
		for i, l := range all {
			if r == o.Rounds-1 && (i+1)%max(1, len(all)/snapshots) == 0 {
				f.blend()
			}
			rows, kinds := f.find(l, o.Drop)
			for i, k := range l.Kinds {
				w := o.Weigh[k]
				if w == 0 {
					continue
				}
				var s ending.Site
				s.See(rows[:i+1], kinds[:i+1])
				loss += float64(w) * f.learn(&s, k >= Closing, w)
				n += float64(w)
			}
		}
		if o.Progress != nil {
			o.Progress(r, loss/n)
		}
	}
	if f.blended > 0 {
		f.Weights = *f.mean
	}
	f.level()
	for i, b := range f.base {
		for k, v := range f.Rows[b] {
			f.Rows[ending.Base+i][k] += v
		}
	}
	return &f.Weights
}

// level brings the rows of shapes toward their mean, the more the less often they
// were seen: most endings of made-up words never were.
func (f *fitter) level() {
	const enough = 100
	var mean [ending.Width]float64
	all := 0.0
	for i, n := range f.seen {
		for k, v := range f.Rows[1+i] {
			mean[k] += n * float64(v)
		}
		all += n
	}
	for i, n := range f.seen {
		for k, v := range f.Rows[1+i] {
			f.Rows[1+i][k] = float32((n*float64(v) + enough*mean[k]/max(all, 1)) / (n + enough))
		}
	}
}

// snapshots is of how many states of the last round the weights are the mean
// (P. Izmailov et al., 2018).
const snapshots = 20

// blend takes the weights into their mean.
func (f *fitter) blend() {
	if f.blended++; f.blended == 1 {
		m := f.Weights
		m.Rows, m.Layer, m.Grams = slices.Clone(m.Rows), slices.Clone(m.Layer), slices.Clone(m.Grams)
		f.mean = &m
		return
	}
	m, share := f.mean, 1/float32(f.blended)
	toward := func(mean, x []float32) {
		for i, v := range x {
			mean[i] += (v - mean[i]) * share
		}
	}
	for i := range m.Rows {
		toward(m.Rows[i][:], f.Rows[i][:])
	}
	for i := range m.Layer {
		toward(m.Layer[i][:], f.Layer[i][:])
	}
	toward(m.Grams, f.Grams)
	toward(m.Bias[:], f.Bias[:])
	toward(m.Out[:], f.Out[:])
	m.Shift += (f.Shift - m.Shift) * share
}

// know chooses the words that have rows of their own: those of the lexicon, and
// the most frequent.
func (f *fitter) know(lines []Line, o Options) {
	count := map[string]int{}
	for _, l := range lines {
		for _, w := range l.Words {
			count[w]++
		}
	}
	for w := range o.Lexicon {
		count[w] += 1000000
	}
	var words []string
	for w, n := range count {
		if n >= o.Rare {
			words = append(words, w)
		}
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	words = words[:min(len(words), o.Words)]
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(ending.Hash(a), ending.Hash(b)) })
	f.index, f.count = map[string]int{}, map[int]float64{}
	for row := range ending.Base {
		f.Kinds = append(f.Kinds, uint16(row))
	}
	for i, w := range words {
		row := ending.Base + i
		kind, base := row, 1+ending.Shape(w)
		if k, ok := o.Lexicon[w]; ok {
			base = 1 + ending.Shapes + k
			kind = base
			count[w] -= 1000000
		} else if count[w] < 200 {
			kind = base
		}
		f.Known = append(f.Known, ending.Hash(w))
		f.Kinds = append(f.Kinds, uint16(kind))
		f.base = append(f.base, base)
		f.index[w] = row
		f.count[row] = float64(count[w])
	}
}

// start draws the first weights.
func (f *fitter) start() {
	f.Rows = make([][ending.Width]float32, ending.Base+len(f.Known))
	f.rows = make([][ending.Width]float32, len(f.Rows))
	for i := range f.Rows[:ending.Base] {
		for k := range f.Rows[i] {
			f.Rows[i][k] = float32(0.3 * f.rnd.NormFloat64())
		}
	}
	f.Layer = make([][ending.Hidden]float32, ending.Slots*ending.Width)
	for i := range f.Layer {
		for j := range f.Layer[i] {
			f.Layer[i][j] = float32(f.rnd.NormFloat64() / math.Sqrt(float64(len(f.Layer))) * 2)
		}
	}
	for j := range f.Out {
		f.Out[j] = float32(f.rnd.NormFloat64() / 4)
	}
	f.Grams = make([]float32, ending.Grams)
	f.grams = make([]float32, ending.Grams)
	f.Shift = -2
}

// find are the rows of a line, and their kinds. Some words are taken for unknown
// ones, so that those are learned.
func (f *fitter) find(l Line, drop float64) (rows, kinds []int) {
	rows, kinds = make([]int, len(l.Words)), make([]int, len(l.Words))
	for i, w := range l.Words {
		row, ok := f.index[w]
		switch {
		case !ok:
			row = 1 + ending.Shape(w)
		case w[0] == '#':
		case f.rnd.Float64() < drop/(drop+f.count[row]):
			if row = f.base[row-ending.Base]; f.rnd.IntN(5) == 0 {
				row = 1 + ending.Shape(w)
			}
		}
		if row <= ending.Shapes {
			f.seen[row-1]++
		}
		rows[i], kinds[i] = row, int(f.Kinds[row])
	}
	return rows, kinds
}

// learn learns from one site, and returns the loss before.
func (f *fitter) learn(s *ending.Site, end bool, weight float32) float64 {
	var x [ending.Slots][ending.Width]float32
	for i, row := range s.Rows {
		f.lay(&x[i], row, 1)
	}
	share := 1 / float32(s.Said)
	for _, row := range s.All[:s.Said] {
		f.lay(&x[bag], row, share)
	}
	h := f.Bias
	for i := range x {
		for k, v := range &x[i] {
			w := &f.Layer[i*ending.Width+k]
			for j := range &h {
				h[j] += v * w[j]
			}
		}
	}
	y := f.Shift
	for j, v := range &h {
		y += max(0, v) * f.Out[j]
	}
	wide := f.rnd.Float64() < 0.7
	if wide {
		for _, g := range s.Grams {
			y += f.Grams[g]
		}
	}
	p := 1 / (1 + math.Exp(float64(-y)))
	loss, d := -math.Log(1-p+1e-9), float32(p)
	if end {
		loss, d = -math.Log(p+1e-9), float32(p-1)
	}
	d *= weight
	if !end {
		d *= float32(max(f.doubt, 1-p))
	}
	if max(d, -d) < 0.02 {
		return loss
	}
	if wide {
		for _, g := range s.Grams {
			f.step(&f.Grams[g], &f.grams[g], d+1e-3*f.Grams[g])
		}
	}
	f.back(s, &x, &h, d, share)
	return loss
}

// back carries the gradient back to the words.
func (f *fitter) back(s *ending.Site, x *[ending.Slots][ending.Width]float32, h *[ending.Hidden]float32, d, share float32) {
	f.step(&f.Shift, &f.shift, d)
	var g, by [ending.Hidden]float32
	for j, v := range h {
		if v > 0 {
			g[j] = d * f.Out[j]
			f.step(&f.Out[j], &f.out[j], d*v)
			f.step(&f.Bias[j], &f.bias[j], g[j])
			f.layer[j] += g[j] * g[j]
			by[j] = f.rate * g[j] / float32(math.Sqrt(float64(f.layer[j])+1e-2))
		}
	}
	for i := range x {
		var dx [ending.Width]float32
		for k, v := range x[i] {
			w := &f.Layer[i*ending.Width+k]
			for j, gj := range &g {
				dx[k] += gj * w[j]
				w[j] -= by[j] * v
			}
		}
		if i < bag {
			f.move(s.Rows[i], &dx)
			continue
		}
		for k := range dx {
			dx[k] *= share
		}
		for _, row := range s.All[:s.Said] {
			f.move(row, &dx)
		}
	}
}

// lay adds the word of a row to x.
func (f *fitter) lay(x *[ending.Width]float32, row int, share float32) {
	own := &f.Rows[row]
	if row < ending.Base {
		for k, v := range own {
			x[k] += v * share
		}
		return
	}
	for k, v := range &f.Rows[f.base[row-ending.Base]] {
		x[k] += (v + own[k]) * share
	}
}

// move moves the word of a row.
func (f *fitter) move(row int, by *[ending.Width]float32) {
	if row >= ending.Base {
		f.move(f.base[row-ending.Base], by)
	}
	for k, v := range by {
		f.step(&f.Rows[row][k], &f.rows[row][k], v)
	}
}

// step moves a weight against its gradient.
func (f *fitter) step(w, square *float32, g float32) {
	*square += g * g
	*w -= f.rate * g / float32(math.Sqrt(float64(*square)+1e-4))
}
