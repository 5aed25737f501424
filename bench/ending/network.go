package ending

import (
	"math"

	"github.com/parley-voice/parley/pipeline/eot/ending"
)

// A layers is the weights of ending.Weights.Layers with what fits them: steps of
// their own for every weight, by the mean and the mean square of its gradients
// (Adam, D. Kingma and J. Ba, 2014).
type layers struct {
	w, grad, mean, square []float32
	steps                 int
	trace                 [ending.Most]moment
}

// A moment is what the network made of a word.
type moment struct {
	x             [ending.Width]float32
	h, z, r, c, b [ending.Hidden]float32 // the memory after it, gates, candidate, and what the memory gave to it
	u             [ending.Units]float32
	dx            [ending.Width]float32
	d             float32 // gradient of the output
}

// run reads the word that is in the moment at t, and tells the log odds.
func (l *layers) run(t int) float32 {
	m := &l.trace[t]
	var h0 [ending.Hidden]float32
	var before [ending.Width]float32
	if t > 0 {
		h0, before = l.trace[t-1].h, l.trace[t-1].x
	}
	a := *(*[ending.Gates]float32)(l.w[ending.Bias:])
	var b [ending.Gates]float32
	l.forth(a[:], ending.In, m.x[:])
	l.forth(b[:], ending.Rec, h0[:])
	const n = ending.Hidden
	for j := range n {
		m.z[j] = ending.Sigmoid(a[j] + b[j])
		m.r[j] = ending.Sigmoid(a[n+j] + b[n+j])
		m.b[j] = b[2*n+j]
		m.c[j] = ending.Tanh(a[2*n+j] + m.r[j]*m.b[j])
		m.h[j] = m.z[j]*h0[j] + (1-m.z[j])*m.c[j]
	}
	m.u = *(*[ending.Units]float32)(l.w[ending.UnitBias:])
	l.forth(m.u[:], ending.ReadAt, m.h[:])
	l.forth(m.u[:], ending.ReadAt+n*ending.Units, m.x[:])
	l.forth(m.u[:], ending.ReadAt+(n+ending.Width)*ending.Units, before[:])
	y := l.w[ending.Shift]
	for j, o := range l.w[ending.Out : ending.Out+ending.Units] {
		y += max(0, m.u[j]) * o
	}
	return y
}

// forth adds to y what x gives by the weights from at on. The rows are taken four
// at a time, for speed.
func (l *layers) forth(y []float32, at int, x []float32) {
	n := len(y)
	for k := 0; k < len(x); k += 4 {
		w := l.w[at+k*n:]
		a, b, c, d := w[:n], w[n:][:n], w[2*n:][:n], w[3*n:][:n]
		xa, xb, xc, xd := x[k], x[k+1], x[k+2], x[k+3] //nolint:gosec // they are fours
		for j := range y {
			y[j] += (xa*a[j] + xb*b[j]) + (xc*c[j] + xd*d[j])
		}
	}
}

// through adds to dx and to the gradients of the weights from at on what d, the
// gradient of their outputs, makes of x.
func (l *layers) through(d []float32, at int, x, dx []float32) {
	n := len(d)
	for k := 0; k < len(x); k += 2 {
		w, g := l.w[at+k*n:], l.grad[at+k*n:]
		a, b, ga, gb := w[:n], w[n:][:n], g[:n], g[n:][:n]
		xa, xb := x[k], x[k+1] //nolint:gosec // they are pairs
		var sa, sb, ta, tb float32
		for j := 0; j < n-1; j += 2 {
			dj, dk := d[j], d[j+1]
			sa += dj * a[j]
			sb += dj * b[j]
			ta += dk * a[j+1]
			tb += dk * b[j+1]
			ga[j] += dj * xa
			gb[j] += dj * xb
			ga[j+1] += dk * xa
			gb[j+1] += dk * xb
		}
		dx[k] += sa + ta
		dx[k+1] += sb + tb
	}
}

// back carries the gradients d of n moments back: to grad, and to dx.
func (l *layers) back(n int) {
	var dh [ending.Hidden]float32
	for t := range n {
		l.trace[t].dx = [ending.Width]float32{}
	}
	for t := n - 1; t >= 0; t-- {
		if l.trace[t].d != 0 {
			l.backUnits(t, &dh)
		}
		dh = l.backGates(t, &dh)
	}
}

// backUnits adds what the units want of the memory at t to dh.
func (l *layers) backUnits(t int, dh *[ending.Hidden]float32) {
	m := &l.trace[t]
	l.grad[ending.Shift] += m.d
	var du [ending.Units]float32
	for j, u := range m.u {
		if u > 0 {
			du[j] = m.d * l.w[ending.Out+j]
			l.grad[ending.Out+j] += m.d * u
			l.grad[ending.UnitBias+j] += du[j]
		}
	}
	l.through(du[:], ending.ReadAt, m.h[:], dh[:])
	l.through(du[:], ending.ReadAt+ending.Hidden*ending.Units, m.x[:], m.dx[:])
	if t > 0 {
		before := &l.trace[t-1]
		l.through(du[:], ending.ReadAt+(ending.Hidden+ending.Width)*ending.Units, before.x[:], before.dx[:])
	}
}

// backGates takes the gradient of the memory after t to the one before it.
func (l *layers) backGates(t int, dh *[ending.Hidden]float32) (before [ending.Hidden]float32) {
	const n = ending.Hidden
	m := &l.trace[t]
	var h0 [n]float32
	if t > 0 {
		h0 = l.trace[t-1].h
	}
	var da, db [ending.Gates]float32
	for j, d := range dh {
		before[j] = d * m.z[j]
		dc := d * (1 - m.z[j]) * (1 - m.c[j]*m.c[j])
		dz := d * (h0[j] - m.c[j]) * m.z[j] * (1 - m.z[j])
		dr := dc * m.b[j] * m.r[j] * (1 - m.r[j])
		da[j], da[n+j], da[2*n+j] = dz, dr, dc
		db[j], db[n+j], db[2*n+j] = dz, dr, dc*m.r[j]
	}
	for j, d := range da {
		l.grad[ending.Bias+j] += d
	}
	l.through(da[:], ending.In, m.x[:], m.dx[:])
	if t > 0 {
		l.through(db[:], ending.Rec, h0[:], before[:])
	}
	return before
}

// step moves the weights against their gradients.
func (l *layers) step(rate float64) {
	const slow, square = 0.9, 0.999
	l.steps++
	rate *= math.Sqrt(1-math.Pow(square, float64(l.steps))) / (1 - math.Pow(slow, float64(l.steps)))
	for i, g := range l.grad {
		if g == 0 && max(l.mean[i], -l.mean[i]) < 1e-15 {
			continue // what is smaller than floats are is slow
		}
		l.mean[i] = slow*l.mean[i] + (1-slow)*g
		l.square[i] = square*l.square[i] + (1-square)*g*g
		l.w[i] -= float32(rate) * l.mean[i] / (float32(math.Sqrt(float64(l.square[i]))) + 1e-6)
		l.grad[i] = 0
	}
}
