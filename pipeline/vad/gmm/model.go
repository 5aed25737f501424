package gmm

import "math"

// A Gaussian is one component, in a form that is fast to evaluate.
type Gaussian struct {
	Weight float32 // logarithm of the product of the component's share and its normalization factor
	Mean   Features
	// White is the lower triangle, row by row, of the inverse Cholesky factor of the
	// covariance (a whitening transform).
	White [Dims * (Dims + 1) / 2]float32
}

// components is the number of Gaussians per mixture.
const components = 6

// A Mixture is a density over features.
type Mixture [components]Gaussian

// A Model compares speech with other sound.
type Model struct{ Speech, Other Mixture }

// Ratio returns the log-likelihood ratio of speech over other sound.
func (m *Model) Ratio(x *Features) float64 {
	return m.Speech.Density(x) - m.Other.Density(x)
}

// Density returns the log density at x.
func (m *Mixture) Density(x *Features) float64 {
	var each [components]float64
	top := math.Inf(-1)
	for i := range m {
		each[i] = m[i].Density(x)
		top = max(top, each[i])
	}
	sum := 0.0
	for _, v := range each {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}

// Density returns the log of the weighted density at x.
func (g *Gaussian) Density(x *Features) float64 {
	var d Features
	for i := range d {
		d[i] = x[i] - g.Mean[i]
	}
	var sum float32
	row := g.White[:]
	for i := range d {
		var y float32
		for j, w := range row[:i+1] {
			y += w * d[j]
		}
		row = row[i+1:]
		sum += y * y
	}
	return float64(g.Weight - sum/2)
}
