package eot

import (
	"math"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

// layers trains model.Weights.Layers. Each weight has a step size from the mean and mean square
// of its gradients (Adam, D. Kingma and J. Ba, 2014).
type layers struct {
	w, grad, mean, square []float32
	steps                 int
	trace                 [model.MaxWords]moment
}

// A moment is the state of the network after one word.
type moment struct {
	x             [model.Width]float32
	h, z, r, c, b [model.Hidden]float32 // memory after the word, gates, candidate, and share of the memory
	u             [model.Units]float32
	dx            [model.Width]float32
	d             float32 // gradient of the output
}

// run computes the log odds after word t from the vector in moment t.
func (l *layers) run(t int) float32 {
	m := &l.trace[t]
	var h0 [model.Hidden]float32
	var before [model.Width]float32
	if t > 0 {
		h0, before = l.trace[t-1].h, l.trace[t-1].x
	}
	a := *(*[model.Gates]float32)(l.w[model.Bias:])
	var b [model.Gates]float32
	l.forth(a[:], model.In, m.x[:])
	l.forth(b[:], model.Rec, h0[:])
	const n = model.Hidden
	for j := range n {
		m.z[j] = model.Sigmoid(a[j] + b[j])
		m.r[j] = model.Sigmoid(a[n+j] + b[n+j])
		m.b[j] = b[2*n+j]
		m.c[j] = model.Tanh(a[2*n+j] + m.r[j]*m.b[j])
		m.h[j] = m.z[j]*h0[j] + (1-m.z[j])*m.c[j]
	}
	m.u = *(*[model.Units]float32)(l.w[model.UnitBias:])
	l.forth(m.u[:], model.ReadAt, m.h[:])
	l.forth(m.u[:], model.ReadAt+n*model.Units, m.x[:])
	l.forth(m.u[:], model.ReadAt+(n+model.Width)*model.Units, before[:])
	y := l.w[model.Shift]
	for j, o := range l.w[model.Out : model.Out+model.Units] {
		y += max(0, m.u[j]) * o
	}
	return y
}

// forth adds the product of x and the weights from index at to y. It handles four rows at a time for speed.
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

// through backpropagates d, the gradient of the outputs, through the weights from index at. It
// adds to dx and to the gradients of the weights.
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

// back backpropagates the output gradients of the first n moments into grad and into dx of the moments.
func (l *layers) back(n int) {
	var dh [model.Hidden]float32
	for t := range n {
		l.trace[t].dx = [model.Width]float32{}
	}
	for t := n - 1; t >= 0; t-- {
		if l.trace[t].d != 0 {
			l.backUnits(t, &dh)
		}
		dh = l.backGates(t, &dh)
	}
}

// backUnits adds the gradient that the output units cause for the memory at t to dh.
func (l *layers) backUnits(t int, dh *[model.Hidden]float32) {
	m := &l.trace[t]
	l.grad[model.Shift] += m.d
	var du [model.Units]float32
	for j, u := range m.u {
		if u > 0 {
			du[j] = m.d * l.w[model.Out+j]
			l.grad[model.Out+j] += m.d * u
			l.grad[model.UnitBias+j] += du[j]
		}
	}
	l.through(du[:], model.ReadAt, m.h[:], dh[:])
	l.through(du[:], model.ReadAt+model.Hidden*model.Units, m.x[:], m.dx[:])
	if t > 0 {
		before := &l.trace[t-1]
		l.through(du[:], model.ReadAt+(model.Hidden+model.Width)*model.Units, before.x[:], before.dx[:])
	}
}

// backGates backpropagates dh, the gradient of the memory after word t, to the memory before it.
func (l *layers) backGates(t int, dh *[model.Hidden]float32) (before [model.Hidden]float32) {
	const n = model.Hidden
	m := &l.trace[t]
	var h0 [n]float32
	if t > 0 {
		h0 = l.trace[t-1].h
	}
	var da, db [model.Gates]float32
	for j, d := range dh {
		before[j] = d * m.z[j]
		dc := d * (1 - m.z[j]) * (1 - m.c[j]*m.c[j])
		dz := d * (h0[j] - m.c[j]) * m.z[j] * (1 - m.z[j])
		dr := dc * m.b[j] * m.r[j] * (1 - m.r[j])
		da[j], da[n+j], da[2*n+j] = dz, dr, dc
		db[j], db[n+j], db[2*n+j] = dz, dr, dc*m.r[j]
	}
	for j, d := range da {
		l.grad[model.Bias+j] += d
	}
	l.through(da[:], model.In, m.x[:], m.dx[:])
	if t > 0 {
		l.through(db[:], model.Rec, h0[:], before[:])
	}
	return before
}

// step updates the weights with their gradients.
func (l *layers) step(rate float64) {
	const slow, square = 0.9, 0.999
	l.steps++
	rate *= math.Sqrt(1-math.Pow(square, float64(l.steps))) / (1 - math.Pow(slow, float64(l.steps)))
	for i, g := range l.grad {
		if g == 0 && max(l.mean[i], -l.mean[i]) < 1e-15 {
			continue // denormal floats are slow
		}
		l.mean[i] = slow*l.mean[i] + (1-slow)*g
		l.square[i] = square*l.square[i] + (1-square)*g*g
		l.w[i] -= float32(rate) * l.mean[i] / (float32(math.Sqrt(float64(l.square[i]))) + 1e-6)
		l.grad[i] = 0
	}
}
