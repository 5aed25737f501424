package overview

import (
	"encoding/binary"
	"errors"
	"math"
)

// Response times are counted in buckets: one below firstBound, then buckets whose upper bound is bucketRatio times the
// lower one, and one for all longer times, from 21 s. A percentile is the geometric mean of its bucket's bounds, so from 50 ms
// to 21 s it differs from the exact one by at most 4 %: the square root of bucketRatio.
const (
	buckets     = 80
	firstBound  = 50.0 // ms
	bucketRatio = 1.08
)

// A Histogram counts response times by bucket.
type Histogram [buckets]int

func bucketOf(ms float64) int {
	if ms < firstBound {
		return 0
	}
	return min(1+int(math.Log(ms/firstBound)/math.Log(bucketRatio)), buckets-1)
}

// Add counts a response time in milliseconds.
func (h *Histogram) Add(ms float64) { h[bucketOf(ms)]++ }

// Count returns the number of response times.
func (h *Histogram) Count() (n int) {
	for _, c := range h {
		n += c
	}
	return n
}

// Percentile returns a percentile in milliseconds, and false without response times. Part is between 0 and 1.
func (h *Histogram) Percentile(part float64) (ms float64, ok bool) {
	rank := max(1, int(math.Ceil(part*float64(h.Count()))))
	for n, c := range h {
		if rank -= c; rank > 0 {
			continue
		}
		if n == 0 {
			return firstBound / 2, true
		}
		return firstBound * math.Pow(bucketRatio, float64(n)-0.5), true
	}
	return 0, false
}

var errVarints = errors.New("the varints of a statistic are damaged")

// merge adds the counts of encoded histograms, one after the other, times sign.
func (h *Histogram) merge(encoded []byte, sign int) error {
	return readVarints(encoded, 2, func(v []int) error {
		if v[0] >= buckets {
			return errVarints
		}
		h[v[0]] += sign * v[1]
		return nil
	})
}

func (h *Histogram) encode() []byte {
	out := []byte{}
	for n, c := range h {
		if c != 0 {
			out = appendVarints(out, n, c)
		}
	}
	return out
}

// hours is the number of hours in a week.
const hours = 7 * 24

// A Cell counts the calls that were dialed in one hour of the callees' weeks, and those that a person answered.
type Cell struct{ Dialed, Answered int }

// A Week has a cell for each hour from Sunday 0:00.
type Week [hours]Cell

func (w *Week) merge(encoded []byte) error {
	return readVarints(encoded, 3, func(v []int) error {
		if v[0] >= hours {
			return errVarints
		}
		w[v[0]].Dialed += v[1]
		w[v[0]].Answered += v[2]
		return nil
	})
}

func (w *Week) encode() []byte {
	out := []byte{}
	for n, c := range w {
		if c != (Cell{}) {
			out = appendVarints(out, n, c.Dialed, c.Answered)
		}
	}
	return out
}

func appendVarints(out []byte, all ...int) []byte {
	for _, v := range all {
		out = binary.AppendUvarint(out, uint64(v)) //nolint:gosec // counts are never negative here
	}
	return out
}

// readVarints calls each with the next numbers, width at a time.
func readVarints(encoded []byte, width int, each func(v []int) error) error {
	v := make([]int, width)
	for len(encoded) > 0 {
		for i := range v {
			x, size := binary.Uvarint(encoded)
			if size <= 0 || x > math.MaxInt32 {
				return errVarints
			}
			v[i], encoded = int(x), encoded[size:]
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}
