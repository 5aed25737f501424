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
	Rate    float64          // of learning words
	Step    float64          // of learning the layers
	Drop    float64          // a word seen so often is taken for an unknown one every other time
	Doubt   float64          // the least share that is learned from places that look like ends
	Lexicon Lexicon          // what kinds of words there are
	Weigh   [End + 1]float32 // of a place of each kind
	// Progress is told of every round.
	Progress func(round int, loss float64)
}

// Defaults are the options of the house.
func Defaults() Options {
	return Options{Rounds: 4, Words: 9000, Rare: 3, Rate: 0.05, Step: 0.002, Drop: 10, Doubt: 0.1, Weigh: [...]float32{Inside: 1, Open: 1, Going: 0.05, Comma: 0.02, Closing: 0.7, End: 1}}
}

// fitter fits weights by stochastic gradient descent; rows and grams have steps
// of their own for every weight (AdaGrad, J. Duchi et al., 2011).
type fitter struct {
	ending.Weights
	net     layers
	rows    [][ending.Width]float32 // squares of gradients
	grams   []float32
	rate    float32
	index   map[string]int
	o       Options
	mean    *ending.Weights // of the last rounds
	blended int
	seen    [ending.Shapes]float64 // how often a shape stood for a word
	count   map[int]float64
	base    []int // rows that the rows of known words stand on
	rnd     *rand.Rand
}

// batch is after how many lines the layers are moved.
const batch = 16

// Fit fits a model to lines.
func Fit(lines []Line, o Options) *ending.Weights {
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
			f.Rows[ending.Base+i][k] += v
		}
	}
	return &f.Weights
}

// small is how much the guesses about a line may be off, all together, where
// nothing is learned from it.
const small = 0.1

// crop is some of a line that is longer than what the model reads at once.
func (f *fitter) crop(l Line) Line {
	if over := len(l.Words) - ending.Most; over > 0 {
		at := f.rnd.IntN(over + 1)
		return Line{l.Words[at : at+ending.Most], l.Kinds[at : at+ending.Most]}
	}
	return l
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
	f.Layers = make([]float32, ending.Layers)
	f.net = layers{w: f.Layers, grad: make([]float32, ending.Layers), mean: make([]float32, ending.Layers), square: make([]float32, ending.Layers)}
	draw := func(from, to, inputs int) {
		for i := from; i < to; i++ {
			f.Layers[i] = float32(f.rnd.NormFloat64() / math.Sqrt(float64(inputs)))
		}
	}
	draw(ending.In, ending.Rec, ending.Width)
	draw(ending.Rec, ending.ReadAt, ending.Hidden)
	draw(ending.ReadAt, ending.Bias, ending.Deep)
	draw(ending.Out, ending.Shift, ending.Units)
	f.Layers[ending.Shift] = -2
	f.Grams = make([]float32, ending.Grams)
	f.grams = make([]float32, ending.Grams)
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

// learn learns from a line, and returns the loss before and of how many places.
func (f *fitter) learn(l Line) (loss, n float64) {
	rows, kinds := f.find(l, f.o.Drop)
	wide, off := f.rnd.Float64() < 0.7, float32(0)
	for t, row := range rows {
		m := &f.net.trace[t]
		m.x, m.d = [ending.Width]float32{}, 0
		f.lay(&m.x, row)
		y := f.net.run(t)
		k := l.Kinds[t]
		weight := f.o.Weigh[k]
		if weight == 0 {
			continue
		}
		grams := ending.Together(rows[:t+1], kinds[:t+1])
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

// lay is the word of a row.
func (f *fitter) lay(x *[ending.Width]float32, row int) {
	*x = f.Rows[row]
	if row >= ending.Base {
		for k, v := range &f.Rows[f.base[row-ending.Base]] {
			x[k] += v
		}
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
