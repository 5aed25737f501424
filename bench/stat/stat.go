// Package stat evaluates samples: quantiles with 95 % bootstrap intervals, shares with intervals,
// and histograms. Its random numbers have a fixed seed, so equal samples give equal results.
package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// An Estimate is a value with its 95 % interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// A Summary describes n values. Without values, all figures are 0.
type Summary struct {
	N    int      `json:"n"`
	Mean float64  `json:"mean"`
	P50  Estimate `json:"p50"`
	P90  Estimate `json:"p90"`
	P95  Estimate `json:"p95"`
	P99  Estimate `json:"p99"`
	Max  Estimate `json:"max"`
}

const (
	resamples = 2000
	seed      = 20261122
	tail      = 0.025 // share of the resamples outside an interval, on either side
)

// Summarize describes values. It does not modify them.
func Summarize(values []float64) Summary {
	s := Summary{N: len(values)}
	if s.N == 0 {
		return s
	}
	sorted := slices.Sorted(slices.Values(values))
	for _, v := range sorted {
		s.Mean += v / float64(s.N)
	}
	of := func(p float64) Estimate {
		low, high := interval(s.N, p, func(i int) float64 { return sorted[i] })
		return Estimate{sorted[rank(s.N, p)], low, high}
	}
	s.P50, s.P90, s.P95, s.P99, s.Max = of(.5), of(.9), of(.95), of(.99), of(1)
	return s
}

// Quantile returns the p-quantile of sorted values: the smallest value such that at least the
// share p of all values is not above it. It is 0 without values.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[rank(len(sorted), p)]
}

// At returns a figure by name: p50, p90, p95, p99, max or mean. It returns false for other names.
func (s Summary) At(name string) (Estimate, bool) {
	switch name {
	case "p50":
		return s.P50, true
	case "p90":
		return s.P90, true
	case "p95":
		return s.P95, true
	case "p99":
		return s.P99, true
	case "max":
		return s.Max, true
	case "mean":
		return Estimate{s.Mean, s.Mean, s.Mean}, true
	default:
		return Estimate{}, false
	}
}

// rank returns the index of the p-quantile of n sorted values.
func rank(n int, p float64) int {
	return max(0, min(n-1, int(math.Ceil(p*float64(n)-1e-9))-1))
}

// interval returns the bootstrap interval of the p-quantile of n sorted values. at returns the i-th value.
func interval(n int, p float64, at func(i int) float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // repeatable on purpose
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = at(drawRank(rng, n, p))
	}
	return ends(drawn)
}

// ends returns the 95 % interval of random draws of an estimate.
func ends(drawn []float64) (low, high float64) {
	slices.Sort(drawn)
	return Quantile(drawn, tail), Quantile(drawn, 1-tail)
}

// drawRank returns a random index among n sorted values: the position of the p-quantile of a
// resample. It needs no resample, because the k-th smallest of n uniform draws has the
// distribution Beta(k, n+1-k).
func drawRank(rng *rand.Rand, n int, p float64) int {
	k := rank(n, p) + 1
	a, b := gamma(rng, float64(k)), gamma(rng, float64(n+1-k))
	return min(n-1, int(float64(n)*a/(a+b)))
}

// gamma returns a random number with the gamma distribution for a shape of at least 1 (Marsaglia and Tsang).
func gamma(rng *rand.Rand, shape float64) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(1-rng.Float64()) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}

// Share returns the share times/n with Wilson's interval, which is valid also for small n.
func Share(times, n int) Estimate {
	if n == 0 {
		return Estimate{High: 1}
	}
	const z = 1.959964
	p, m := float64(times)/float64(n), float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Estimate{p, min(p, max(0, middle-half)), max(p, min(1, middle+half))}
}
