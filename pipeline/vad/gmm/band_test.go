package gmm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

// TestBands checks that a tone appears only in its band, at its level.
func TestBands(t *testing.T) {
	for _, rate := range []int{8000, 16000} {
		for b, freq := range []float64{200, 450, 800, 1350, 2150, 3300} {
			var ft fft
			pcm := make(media.Frame, rate/50)
			for i := range pcm {
				pcm[i] = int16(8000 * math.Sin(2*math.Pi*freq*float64(i)/float64(rate)))
			}
			e := ft.bands(pcm)
			want := tone.Level(pcm)
			for i, v := range e {
				if i == b && math.Abs(float64(v)-want) > 1 || i != b && float64(v) > want-15 {
					t.Errorf("%d Hz: a tone of %v Hz at %.1f dBFS: bands %v", rate, freq, want, e)
					break
				}
			}
		}
	}
}

// TestBandsOfNoise checks the sum of the bands (Parseval's theorem).
func TestBandsOfNoise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var ft fft
	var sum float64
	for range 200 {
		f := make(media.Frame, 160)
		for i := range f {
			f[i] = int16(1000 * rnd.NormFloat64())
		}
		for _, v := range ft.bands(f) {
			sum += math.Pow(10, float64(v)/10) / 200
		}
	}
	want := 1000.0 / 32768 * 1000 / 32768 * 3900 / 4000
	if math.Abs(sum/want-1) > 0.05 {
		t.Errorf("power of white noise in the bands is %.3g, want %.3g", sum, want)
	}
}

func TestFrameAllocatesNothing(t *testing.T) {
	var a Analyzer
	m := Default()
	f := tone.Sine(8000, 160, 500, 0.3)
	if n := testing.AllocsPerRun(100, func() {
		x, _ := a.Frame(f, -10)
		m.Ratio(&x)
		a.Frame(f, -90)
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// TestOddFrames checks that frames of any length are accepted.
func TestOddFrames(t *testing.T) {
	var a Analyzer
	m := Default()
	for _, n := range []int{160, 0, 1, 80, 320, 333, 960, 160} {
		x, _ := a.Frame(make(media.Frame, n), -120)
		if r := m.Ratio(&x); math.IsNaN(r) || math.IsInf(r, 0) {
			t.Errorf("a frame of %d samples weighs %v: %v", n, r, x)
		}
	}
}

// BenchmarkFrame analyzes a tone in every other frame. This is the worst case, because the
// noise floor stays low.
func BenchmarkFrame(b *testing.B) {
	m := Default()
	for name, loud := range map[string]float64{"weighed": -10, "not looked at": -60} {
		b.Run(name, func(b *testing.B) {
			var a Analyzer
			f, still := tone.Sine(8000, 160, 500, 0.3), make(media.Frame, 160)
			b.ReportAllocs()
			for b.Loop() {
				a.Frame(still, -90)
				if x, above := a.Frame(f, loud); above {
					m.Ratio(&x)
				}
			}
		})
	}
}
