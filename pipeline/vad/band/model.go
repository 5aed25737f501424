package band

import "math"

// A Gaussian is one of a mixture, in the form that is quickest to weigh.
type Gaussian struct {
	Weight float32 // logarithm of its share and of what makes it a density
	Mean   Features
	// White is the lower triangle, row by row, of the inverse Cholesky factor
	// of the covariance: it makes the distance from Mean round.
	White [Dims * (Dims + 1) / 2]float32
}

// components is how many Gaussians a mixture has.
const components = 6

// A Mixture is a density over features.
type Mixture [components]Gaussian

// A Model weighs speech against the rest.
type Model struct{ Speech, Other Mixture }

// Ratio is the logarithm of how much likelier x is in speech than elsewhere.
func (m *Model) Ratio(x *Features) float64 {
	return m.Speech.Density(x) - m.Other.Density(x)
}

// Density is the logarithm of the density at x.
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

// Density is the logarithm of the weighted density at x.
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
