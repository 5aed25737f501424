package audiogen

import (
	"context"
	"math"
	"math/rand/v2"
)

// A Kind is a kind of noise.
type Kind string

// Kinds of noise.
const (
	White  Kind = "white"
	Pink   Kind = "pink"
	Hum    Kind = "hum"    // mains hum of 50 Hz over hiss
	Babble Kind = "babble" // six voices that speak at once
	Music  Kind = "music"  // chords and arpeggios
	Line   Kind = "line"   // hiss of a quiet line at -65 dBFS
)

// A Maker generates noise at one rate. Use it from one goroutine.
type Maker struct {
	Rate   int // sample rate in Hz
	voices [][]int16
}

// NewMaker returns a Maker whose babble is a mix of voices that speak texts.
func NewMaker(ctx context.Context, rate int, voices []Voice, texts func(language string) []string) (*Maker, error) {
	m := &Maker{Rate: rate}
	for _, v := range voices {
		var all []int16
		for _, text := range texts(v.Language) {
			pcm, err := Say(ctx, v, text, rate)
			if err != nil {
				return nil, err
			}
			all = append(all, pcm...)
		}
		m.voices = append(m.voices, all)
	}
	return m, nil
}

// Noise returns n samples with a root mean square of 1.
func (m *Maker) Noise(k Kind, n int, rnd *rand.Rand) []float64 {
	var x []float64
	switch k {
	case Pink:
		x = pink(n, rnd)
	case Hum:
		x = hum(n, m.Rate, rnd)
	case Babble:
		x = m.babble(n, rnd)
	case Music:
		x = music(n, m.Rate, rnd)
	default:
		x = make([]float64, n)
		for i := range x {
			x[i] = rnd.NormFloat64()
		}
	}
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	g := 1 / math.Sqrt(max(sum, 1e-9)/float64(max(1, n)))
	for i := range x {
		x[i] *= g
	}
	return x
}

// pink returns noise with equal power per octave (P. Kellet's three-pole filter of white noise).
func pink(n int, rnd *rand.Rand) []float64 {
	x := make([]float64, n)
	var a, b, c float64
	for i := range x {
		w := rnd.NormFloat64()
		a = 0.99765*a + 0.0990460*w
		b = 0.96300*b + 0.2965164*w
		c = 0.57000*c + 1.0526913*w
		x[i] = a + b + c + 0.1848*w
	}
	return x
}

func hum(n, rate int, rnd *rand.Rand) []float64 {
	x := make([]float64, n)
	for h := 1; h <= 12; h++ {
		phase, level := rnd.Float64()*2*math.Pi, (0.3+rnd.Float64())/float64(h)
		for i := range x {
			x[i] += level * math.Sin(phase+2*math.Pi*50*float64(h*i)/float64(rate))
		}
	}
	for i := range x {
		x[i] += 0.05 * rnd.NormFloat64()
	}
	return x
}

func (m *Maker) babble(n int, rnd *rand.Rand) []float64 {
	const talkers = 6
	x := make([]float64, n)
	for t := range min(talkers, len(m.voices)) {
		v := m.voices[t]
		at := rnd.IntN(max(1, len(v)))
		for i := range x {
			x[i] += float64(v[(at+i)%len(v)])
		}
	}
	return x
}

// music plays a chord progression: a pad, and an arpeggio of plucked notes.
func music(n, rate int, rnd *rand.Rand) []float64 {
	x := make([]float64, n)
	root := 110 * math.Pow(2, rnd.Float64())
	beat := int(float64(rate) * (0.18 + 0.15*rnd.Float64()))
	steps := [][]float64{{0, 4, 7}, {5, 9, 12}, {7, 11, 14}, {-3, 0, 4}}
	for at, k := 0, 0; at < n; at, k = at+beat, k+1 {
		chord := steps[k/8%len(steps)]
		if k%8 == 0 {
			for _, s := range chord {
				note(x[at:min(n, at+8*beat+rate/10)], rate, root*math.Pow(2, s/12), 0.5, 0.4)
			}
		}
		s := chord[rnd.IntN(len(chord))] + 12*float64(1+rnd.IntN(2))
		note(x[at:min(n, at+6*beat)], rate, root*math.Pow(2, s/12), 0.8, 4)
	}
	return x
}

// note adds a note of five partials that decays by decay nepers per second.
func note(x []float64, rate int, freq, level, decay float64) {
	for h := 1; h <= 5 && freq*float64(h) < float64(rate)/2; h++ {
		w := 2 * math.Pi * freq * float64(h) / float64(rate)
		for i := range x {
			t := float64(i) / float64(rate)
			x[i] += level / float64(h) * min(1, t/0.01) * math.Exp(-decay*t) * math.Sin(w*float64(i)) * min(1, float64(len(x)-i)/80)
		}
	}
}

// highpass is a Butterworth filter of second order (R. Bristow-Johnson, "Audio EQ
// cookbook").
func highpass(freq, rate float64) func(float64) float64 {
	w := 2 * math.Pi * freq / rate
	alpha, c := math.Sin(w)/math.Sqrt2, math.Cos(w)
	a0 := 1 + alpha
	b0, b1 := (1+c)/2/a0, -(1+c)/a0
	a1, a2 := -2*c/a0, (1-alpha)/a0
	var s1, s2 float64
	return func(x float64) float64 {
		y := b0*x + s1
		s1 = b1*x - a1*y + s2
		s2 = b0*x - a2*y
		return y
	}
}

func clip(x float64) int16 { return int16(max(-32768, min(32767, x))) }
