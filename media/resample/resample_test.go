package resample

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media/tone"
)

func TestTonesPass(t *testing.T) {
	for _, r := range [][2]int{{24000, 8000}, {22050, 8000}, {16000, 8000}, {8000, 16000}, {8000, 48000}, {48000, 16000}} {
		from, to := r[0], r[1]
		for _, freq := range []float64{300, 1000, 3000} {
			pcm := tone.Sine(from, from, freq, 0.5)
			out := PCM(pcm, from, to)
			if d := len(out) - to; d < -2 || d > 2 {
				t.Errorf("%d→%d: a second has %d samples", from, to, len(out))
			}
			mid := out[to/10 : to*9/10]
			if p := tone.Power(mid, to, freq); math.Abs(10*math.Log10(p/0.25)) > 0.5 {
				t.Errorf("%d→%d: %v Hz has power %.4f, want 0.25", from, to, freq, p)
			}
		}
	}
}

func TestAliasing(t *testing.T) {
	out := PCM(tone.Sine(24000, 24000, 5000, 0.9), 24000, 8000)
	if l := tone.Level(out[800 : len(out)-800]); l > -60 {
		t.Errorf("5 kHz leaves %.0f dBFS at 8 kHz", l)
	}
}

func TestStreaming(t *testing.T) {
	pcm := tone.Sine(22050, 5000, 700, 0.8)
	whole := New(22050, 8000).Resample(nil, pcm)
	rapid.Check(t, func(t *rapid.T) {
		r := New(22050, 8000)
		var out []int16
		for rest := pcm; len(rest) > 0; {
			n := min(len(rest), rapid.IntRange(1, 900).Draw(t, "n"))
			out = r.Resample(out, rest[:n])
			rest = rest[n:]
		}
		if len(out) != len(whole) {
			t.Fatalf("%d samples, want %d", len(out), len(whole))
		}
		for i := range out {
			if out[i] != whole[i] {
				t.Fatalf("sample %d differs", i)
			}
		}
	})
}
