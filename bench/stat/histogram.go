package stat

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Histogram stores values from 0 to 3.6 million with three significant digits and a resolution
// of 0.001, such as milliseconds up to one hour. Values outside are moved to the nearest bound.
// Its text form is that of HDR histogram tools (V2, compressed, base64), in thousandths. The zero
// value is empty.
type Histogram struct {
	h     *hdrhistogram.Histogram
	steps []Step
	upTo  []int // number of values up to each step
}

// A Step says that the share Share of all values is at most Value.
type Step struct{ Value, Share float64 }

const (
	unit   = 1000          // units per 1, the resolution
	most   = 3_600_000_000 // largest value in units
	digits = 3
	// maxSize exceeds the size in bytes of any uncompressed histogram.
	maxSize = 1 << 18
)

// Collect returns a histogram of values.
func Collect(values []float64) Histogram {
	h := hdrhistogram.New(1, most, digits)
	for _, v := range values {
		_ = h.RecordValue(int64(math.Round(max(0, min(v*unit, most))))) // within the bounds
	}
	return stepped(h)
}

// stepped returns h with its steps, which Quantile uses.
func stepped(h *hdrhistogram.Histogram) Histogram {
	out, n := Histogram{h: h}, 0
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			n += int(b.Count)
			out.steps = append(out.steps, Step{float64(b.To) / unit, float64(n) / float64(h.TotalCount())})
			out.upTo = append(out.upTo, n)
		}
	}
	return out
}

// N returns the number of values.
func (h Histogram) N() int {
	if len(h.upTo) == 0 {
		return 0
	}
	return h.upTo[len(h.upTo)-1]
}

// Quantile returns the p-quantile; 0 if the histogram is empty.
func (h Histogram) Quantile(p float64) float64 {
	if h.N() == 0 {
		return 0
	}
	return h.value(rank(h.N(), p))
}

// value returns the i-th smallest value, counted from 0.
func (h Histogram) value(i int) float64 { return h.steps[sort.SearchInts(h.upTo, i+1)].Value }

// Steps returns the cumulative distribution in ascending order.
func (h Histogram) Steps() []Step { return h.steps }

// Differ returns the p-quantile of b minus the p-quantile of a. The difference is significant if
// its interval excludes 0.
func Differ(a, b Histogram, p float64) Estimate {
	d := Estimate{Value: b.Quantile(p) - a.Quantile(p)}
	if a.N() == 0 || b.N() == 0 {
		d.Low, d.High = math.Inf(-1), math.Inf(1)
		return d
	}
	rng := rand.New(rand.NewPCG(seed, uint64(a.N())<<32|uint64(b.N()))) //nolint:gosec // repeatable on purpose
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = b.value(drawRank(rng, b.N(), p)) - a.value(drawRank(rng, a.N(), p))
	}
	d.Low, d.High = ends(drawn)
	return d
}

// MarshalText implements encoding.TextMarshaler.
func (h Histogram) MarshalText() ([]byte, error) {
	if h.h == nil {
		return nil, nil
	}
	b, err := h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("histogram: %w", err)
	}
	return b, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Histogram) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*h = Histogram{}
		return nil
	}
	defer func() {
		if r := recover(); r != nil { // the decoder panics on invalid input
			err = fmt.Errorf("histogram: damaged: %v", r)
		}
	}()
	if err = check(text); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	d, err := hdrhistogram.Decode(text)
	if err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	*h = stepped(d)
	return nil
}

// check rejects a histogram with other limits, which could need any amount of memory and time.
func check(text []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return err
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[min(8, len(raw)):]))
	if err != nil {
		return err
	}
	inner, err := io.ReadAll(io.LimitReader(z, maxSize))
	if err != nil {
		return err
	}
	if len(inner) < hdrhistogram.ENCODING_HEADER_SIZE || len(inner) == maxSize {
		return errors.New("histogram size does not match")
	}
	if binary.BigEndian.Uint32(inner[12:]) != digits || binary.BigEndian.Uint64(inner[16:]) != 1 ||
		binary.BigEndian.Uint64(inner[24:]) != most {
		return fmt.Errorf("bounds do not match: accepted are %d digits of 1 to %d", digits, int64(most))
	}
	return nil
}
