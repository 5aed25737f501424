package input

import (
	"math"
	"testing"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/eot"
)

// voice returns n frames of a voice with ten partials. pitch (in Hz) and gain are functions of
// the position from 0 to 1.
func voice(rate, frames int, pitch, gain func(t float64) float64) []int16 {
	pcm := make([]int16, frames*rate/50)
	phase := 0.0
	for i := range pcm {
		t := float64(i) / float64(len(pcm))
		phase += 2 * math.Pi * pitch(t) / float64(rate)
		for h := 1.0; h <= 10; h++ {
			pcm[i] += int16(3000 * gain(t) / h * math.Sin(h*phase))
		}
	}
	return pcm
}

func prosodyOf(rate int, pcm []int16) eot.Prosody {
	var e prosodyEstimator
	e.Begin()
	n := rate / 50
	for at := 0; at+n <= len(pcm); at += n {
		e.Frame(pcm[at:at+n], tone.Level(pcm[at:at+n]), true)
	}
	for range 9 {
		e.Frame(make(media.Frame, n), -120, false)
	}
	return e.End()
}

func TestProsody(t *testing.T) {
	level := func(float64) float64 { return 1 }
	late := func(from, to float64) func(float64) float64 {
		return func(t float64) float64 { return from + (to-from)*max(0, t-0.7)/0.3 }
	}
	for _, rate := range []int{8000, 16000} {
		for name, c := range map[string]struct {
			pitch, gain func(float64) float64
			fall, trail [2]float64 // minimum and maximum
		}{
			"level man":     {late(110, 110), level, [2]float64{-0.5, 0.5}, [2]float64{-1, 1}},
			"falling man":   {late(120, 80), level, [2]float64{2, 6}, [2]float64{-2, 2}},
			"rising woman":  {late(200, 280), level, [2]float64{-6, -2}, [2]float64{-2, 2}},
			"trailing off":  {late(200, 200), late(1, 0.1), [2]float64{-0.5, 0.5}, [2]float64{4, 20}},
			"falling child": {late(330, 240), late(1, 0.5), [2]float64{2, 6}, [2]float64{1, 8}},
		} {
			p := prosodyOf(rate, voice(rate, 75, c.pitch, c.gain))
			if !p.Known || p.Fall < c.fall[0] || p.Fall > c.fall[1] || p.Trail < c.trail[0] || p.Trail > c.trail[1] {
				t.Errorf("%s at %d Hz: got %+v, want a fall of %v and a trail of %v", name, rate, p, c.fall, c.trail)
			}
		}
	}
}

func TestPitch(t *testing.T) {
	for _, want := range []float64{70, 85, 120, 180, 250, 350} {
		var e prosodyEstimator
		pcm := voice(8000, 6, func(float64) float64 { return want }, func(float64) float64 { return 1 })
		for at := 0; at < len(pcm); at += 160 {
			e.Frame(pcm[at:at+160], -20, true)
		}
		got := math.Pow(2, e.pitch[5]/12)
		if math.Abs(12*math.Log2(got/want)) > 0.7 {
			t.Errorf("got a pitch of %[2].1f Hz, want %[1]v", want, got)
		}
	}
}

// TestTooLittle checks that short, silent and unpitched input has no prosody.
func TestTooLittle(t *testing.T) {
	noise := make([]int16, 8000)
	for i := range noise {
		noise[i] = int16(uint32(i*i)*2654435761>>18) - 8192
	}
	one := func(float64) float64 { return 1 }
	for name, pcm := range map[string][]int16{
		"nothing": nil, "silence": make([]int16, 8000), "noise": noise,
		"a syllable": voice(8000, 8, func(float64) float64 { return 120 }, one),
	} {
		if p := prosodyOf(8000, pcm); p != (eot.Prosody{}) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestOddFrames checks that frames and stretches of any length are accepted.
func TestOddFrames(t *testing.T) {
	var e prosodyEstimator
	for i := range 2000 {
		e.Frame(tone.Sine(8000, i%400, 150, 0.5), -10, i%3 > 0)
	}
	if p := e.End(); math.IsNaN(p.Fall) || math.IsNaN(p.Trail) {
		t.Errorf("%+v", p)
	}
}

func TestProsodyAllocations(t *testing.T) {
	var e prosodyEstimator
	f := tone.Sine(8000, 160, 150, 0.5)
	if n := testing.AllocsPerRun(100, func() { e.Frame(f, -10, true); e.End() }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func BenchmarkProsody(b *testing.B) {
	var e prosodyEstimator
	f := tone.Sine(16000, 320, 150, 0.5)
	for b.Loop() {
		e.Frame(f, -10, true)
	}
}
