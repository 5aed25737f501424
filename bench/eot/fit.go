package eot

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

// Options configure training.
type Options struct {
	Rounds  int              // number of passes over all lines
	Words   int              // largest vocabulary, in words
	Rare    int              // a word in the vocabulary occurs at least this often
	Rate    float64          // learning rate of word vectors
	Step    float64          // learning rate of the layers
	Drop    float64          // a word that occurs this often is replaced by an unknown word half of the time
	Doubt   float64          // smallest factor for the gradient of an Inside, Going or Comma place that the model takes for an end
	Lexicon Lexicon          // kinds of words
	Weigh   [End + 1]float32 // weight of each kind of place in the loss
	// Progress is called after every round.
	Progress func(round int, loss float64)
}

// Defaults returns the options of the shipped model.
func Defaults() Options {
	return Options{
		Rounds: 4, Words: 9000, Rare: 3, Rate: 0.05, Step: 0.002, Drop: 10, Doubt: 0.1,
		Weigh: [...]float32{Inside: 1, Open: 1, Going: 0.05, Comma: 0.02, Closing: 0.7, End: 1},
	}
}

// fitter trains weights by stochastic gradient descent. Rows (word vectors) and grams (weights of
// word sequences) have one step size per weight (AdaGrad, J. Duchi et al., 2011).
type fitter struct {
	model.Weights
	net     layers
	rows    [][model.Width]float32 // sums of squared gradients
	grams   []float32
	rate    float32
	index   map[string]int
	o       Options
	mean    *model.Weights // mean of snapshots of the last round
	blended int
	seen    [model.Shapes]float64 // how often the row of each shape was used
	count   map[int]float64
	base    []int // for each known word, the row of its shape or class, to which its own row is added
	rnd     *rand.Rand
}

// batch is the number of lines between two updates of the layers.
const batch = 16

// Fit trains a model on lines.
func Fit(lines []Line, o Options) *model.Weights {
	f := &fitter{o: o, rnd: rand.New(rand.NewPCG(3, 4))} //nolint:gosec // repeatable on purpose
	f.know(lines, o)
	f.start()
	all := slices.Clone(lines)
	for _, l := range lines {
		all = append(all, l.sentences()...)
	}
	for r := range o.Rounds {
		f.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		loss, n := 0.0, 0.0
		for i, l := range all {
			done := (float64(r) + float64(i)/float64(len(all))) / float64(o.Rounds)
			if r == o.Rounds-1 && (i+1)%max(1, len(all)/snapshots) == 0 {
				f.blend()
			}
			f.rate = float32(o.Rate * (1 - 0.9*done))
			sum, places := f.learn(f.crop(l))
			loss, n = loss+sum, n+places
			if i%batch == batch-1 || i == len(all)-1 {
				f.net.step(o.Step * (1 - 0.95*done))
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
			f.Rows[model.Base+i][k] += v
		}
	}
	return &f.Weights
}

// small is the total error of a line below which backpropagation is skipped.
const small = 0.1

// crop returns a random part of the line if it is longer than the model's context.
func (f *fitter) crop(l Line) Line {
	if over := len(l.Words) - model.MaxWords; over > 0 {
		at := f.rnd.IntN(over + 1)
		return Line{l.Words[at : at+model.MaxWords], l.Kinds[at : at+model.MaxWords]}
	}
	return l
}

// level moves the rows of shapes toward their mean. Rows of rare shapes move most.
func (f *fitter) level() {
	const enough = 100
	var mean [model.Width]float64
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

// snapshots is the number of states of the weights in the last round whose mean is the result (P.
// Izmailov et al., 2018).
const snapshots = 20

// blend adds the current weights to the mean.
func (f *fitter) blend() {
	if f.blended++; f.blended == 1 {
		m := f.Weights
		m.Rows, m.Layers, m.Grams = slices.Clone(m.Rows), slices.Clone(m.Layers), slices.Clone(m.Grams)
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
	toward(m.Layers, f.Layers)
	toward(m.Grams, f.Grams)
}

// know chooses the vocabulary: the words of the lexicon and the most frequent other words.
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
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(model.Hash(a), model.Hash(b)) })
	f.index, f.count = map[string]int{}, map[int]float64{}
	for row := range model.Base {
		f.Kinds = append(f.Kinds, uint16(row))
	}
	for i, w := range words {
		row := model.Base + i
		kind, base := row, 1+model.Shape(w)
		if k, ok := o.Lexicon[w]; ok {
			base = 1 + model.Shapes + k
			kind = base
			count[w] -= 1000000
		} else if count[w] < 200 {
			kind = base
		}
		f.Known = append(f.Known, model.Hash(w))
		f.Kinds = append(f.Kinds, uint16(kind))
		f.base = append(f.base, base)
		f.index[w] = row
		f.count[row] = float64(count[w])
	}
}

// start initializes the weights.
func (f *fitter) start() {
	f.Rows = make([][model.Width]float32, model.Base+len(f.Known))
	f.rows = make([][model.Width]float32, len(f.Rows))
	for i := range f.Rows[:model.Base] {
		for k := range f.Rows[i] {
			f.Rows[i][k] = float32(0.3 * f.rnd.NormFloat64())
		}
	}
	f.Layers = make([]float32, model.Layers)
	empty := func() []float32 { return make([]float32, model.Layers) }
	f.net = layers{w: f.Layers, grad: empty(), mean: empty(), square: empty()}
	draw := func(from, to, inputs int) {
		for i := from; i < to; i++ {
			f.Layers[i] = float32(f.rnd.NormFloat64() / math.Sqrt(float64(inputs)))
		}
	}
	draw(model.In, model.Rec, model.Width)
	draw(model.Rec, model.ReadAt, model.Hidden)
	draw(model.ReadAt, model.Bias, model.UnitInputs)
	draw(model.Out, model.Shift, model.Units)
	f.Layers[model.Shift] = -2
	f.Grams = make([]float32, model.Grams)
	f.grams = make([]float32, model.Grams)
}

// find returns the index of each word's vector, and the kind of each word. It replaces some words, rare ones
// more often, by the vector of unknown words of the same class or spelling, so that these vectors are trained too.
func (f *fitter) find(l Line, drop float64) (rows, kinds []int) {
	rows, kinds = make([]int, len(l.Words)), make([]int, len(l.Words))
	for i, w := range l.Words {
		row, ok := f.index[w]
		switch {
		case !ok:
			row = 1 + model.Shape(w)
		case w[0] == '#':
		case f.rnd.Float64() < drop/(drop+f.count[row]):
			if row = f.base[row-model.Base]; f.rnd.IntN(5) == 0 {
				row = 1 + model.Shape(w)
			}
		}
		if row <= model.Shapes {
			f.seen[row-1]++
		}
		rows[i], kinds[i] = row, int(f.Kinds[row])
	}
	return rows, kinds
}

// learn trains on a line. It returns the loss before the training step, and the sum of the
// weights of the places.
func (f *fitter) learn(l Line) (loss, n float64) {
	rows, kinds := f.find(l, f.o.Drop)
	wide, off := f.rnd.Float64() < 0.7, float32(0)
	for t, row := range rows {
		m := &f.net.trace[t]
		m.x, m.d = [model.Width]float32{}, 0
		f.lay(&m.x, row)
		y := f.net.run(t)
		k := l.Kinds[t]
		weight := f.o.Weigh[k]
		if weight == 0 {
			continue
		}
		grams := model.GramIndexes(rows[:t+1], kinds[:t+1])
		if wide {
			for _, g := range grams {
				y += f.Grams[g]
			}
		}
		p := 1 / (1 + math.Exp(float64(-y)))
		d, one := float32(p), -math.Log(1-p+1e-9)
		if k >= Closing {
			d, one = float32(p-1), -math.Log(p+1e-9)
		} else if k != Open {
			d *= float32(max(f.o.Doubt, 1-p))
		}
		m.d = d * weight
		off += max(m.d, -m.d)
		loss, n = loss+float64(weight)*one, n+float64(weight)
		if wide {
			for _, g := range grams {
				f.step(&f.Grams[g], &f.grams[g], m.d+1e-3*f.Grams[g])
			}
		}
	}
	if off < small {
		return loss, n
	}
	f.net.back(len(rows))
	for t, row := range rows {
		f.move(row, &f.net.trace[t].dx)
	}
	return loss, n
}

// lay computes the vector of a row: for a known word, its own row plus its base row.
func (f *fitter) lay(x *[model.Width]float32, row int) {
	*x = f.Rows[row]
	if row >= model.Base {
		for k, v := range &f.Rows[f.base[row-model.Base]] {
			x[k] += v
		}
	}
}

// move updates a row, and for a known word also its base row, with the gradient by.
func (f *fitter) move(row int, by *[model.Width]float32) {
	if row >= model.Base {
		f.move(f.base[row-model.Base], by)
	}
	for k, v := range by {
		f.step(&f.Rows[row][k], &f.rows[row][k], v)
	}
}

// step moves w against its gradient g. square is the sum of the squared gradients of w.
func (f *fitter) step(w, square *float32, g float32) {
	*square += g * g
	*w -= f.rate * g / float32(math.Sqrt(float64(*square)+1e-4))
}
