package plc

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// speech returns a signal like speech: a tone at hz with overtones, or a single tone if overtones is 1.
func speech(rate int, from, n int, hz float64, overtones int) []int16 {
	f := make([]int16, n)
	for i := range f {
		at := float64(from+i) / float64(rate)
		sum := 0.0
		for k := 1; k <= overtones; k++ {
			sum += math.Sin(2*math.Pi*hz*float64(k)*at) / float64(k)
		}
		f[i] = int16(6000 * sum)
	}
	return f
}

func dB(f []int16) float64 { return 10 * math.Log10(power(f)/(32768*32768)) }

// similarity returns the correlation of two frames: 1 if they are equal.
func similarity(a, b []int16) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// maxStep returns the largest difference between two neighboring samples.
func maxStep(f []int16) (most int) {
	for i := 1; i < len(f); i++ {
		most = max(most, int(math.Abs(float64(f[i])-float64(f[i-1]))))
	}
	return most
}

func TestConcealmentResemblesAudio(t *testing.T) {
	for name, row := range map[string]struct {
		hz         float64
		overtones  int
		similarity float64
	}{
		"man": {110, 8, 0.95}, "woman": {220, 6, 0.88}, "child": {390, 4, 0.95}, "tone": {1004, 1, 0.9},
	} {
		for _, rate := range []int{8000, 16000} {
			n := rate / 50
			c := New(rate)
			for k := range 10 {
				c.Receive(speech(rate, k*n, n, row.hz, row.overtones))
			}
			var output []int16
			output = append(output, speech(rate, 9*n, n, row.hz, row.overtones)...)
			f := make([]int16, n)
			c.Conceal(f)
			truth := speech(rate, 10*n, n, row.hz, row.overtones)
			if got := similarity(f, truth); got < row.similarity {
				t.Errorf("%s at %d: correlation %.3f", name, rate, got)
			}
			output = append(output, f...)
			next := speech(rate, 11*n, n, row.hz, row.overtones)
			c.Receive(next)
			output = append(output, next...)
			if most, natural := maxStep(output), maxStep(truth); most > natural*3/2 {
				t.Errorf("%s at %d: got a step of %d, natural is %d", name, rate, most, natural)
			}
		}
	}
}

func TestConcealmentFadesToBackground(t *testing.T) {
	const rate, n = 8000, 160
	c := New(rate)
	source := newBackground()
	source.setLevel(60)
	for range 120 { // 2.4 s of background noise
		f := make([]int16, n)
		source.noise(f)
		c.Receive(f)
	}
	for k := range 10 {
		c.Receive(speech(rate, k*n, n, 150, 4))
	}
	f := make([]int16, n)
	before := math.Inf(1)
	for k := range 3 {
		c.Conceal(f)
		if level := dB(f); level >= before {
			t.Errorf("frame %d: %.1f dB after %.1f", k, level, before)
		}
		before = dB(f)
	}
	for k := range 50 {
		c.Conceal(f)
		if level := dB(f); math.Abs(level+60) > 2 {
			t.Fatalf("frame %d: %.1f dB, background is -60", k, level)
		}
	}
}

func TestEndedSpeechIsNotRepeated(t *testing.T) {
	c := New(8000)
	for k := range 10 {
		c.Receive(speech(8000, k*160, 160, 150, 4))
	}
	f := make([]int16, 160)
	c.Receive(f)
	for k := range 3 {
		if c.Conceal(f); dB(f) > -60 {
			t.Errorf("frame %d after the word: %.1f dBFS", k, dB(f))
		}
	}
}

// TestOnsetIsNotProlonged loses the audio after the first 20 ms of a sound, and checks that the concealment does not
// last longer than the sound did.
func TestOnsetIsNotProlonged(t *testing.T) {
	c, f := New(8000), make([]int16, 160)
	for range 10 {
		clear(f)
		c.Receive(f)
	}
	c.Receive(speech(8000, 0, 160, 300, 2))
	c.Conceal(f)
	if dB(f) < -40 {
		t.Errorf("%.1f dBFS at once", dB(f))
	}
	if c.Conceal(f); dB(f) > -60 {
		t.Errorf("%.1f dBFS after 20 ms", dB(f))
	}
}

func TestBackgroundNoiseIsCapped(t *testing.T) {
	c := New(8000)
	for k := range 200 { // music without a pause
		c.Receive(speech(8000, k*160, 160, 300, 5))
	}
	f := make([]int16, 160)
	for range 10 {
		c.Conceal(f)
	}
	if level := dB(f); level > -39 {
		t.Errorf("noise of %.1f dB", level)
	}
}

func TestComfortNoiseLevel(t *testing.T) {
	for _, level := range []uint8{45, 60, 70} {
		c := New(16000)
		c.Receive(speech(16000, 0, 320, 200, 3))
		f := make([]int16, 320)
		for range 5 {
			c.ComfortNoise(f, level)
		}
		if got := dB(f); math.Abs(got+float64(level)) > 1 {
			t.Errorf("-%d dBov became %.1f", level, got)
		}
	}
	c, f := New(8000), make([]int16, 160)
	c.ComfortNoise(f, 127)
	if slices.ContainsFunc(f, func(v int16) bool { return v != 0 }) {
		t.Error("the lowest level: got noise, want silence")
	}
}

func TestConcealBeforeAudio(t *testing.T) {
	c, f := New(8000), []int16{1, 2, 3}
	c.Conceal(f)
	if !slices.Equal(f, make([]int16, 3)) {
		t.Errorf("%v", f)
	}
}

func TestSkipIsSmooth(t *testing.T) {
	const n = 160
	c := New(8000)
	var output []int16
	for k := range 100 {
		f := speech(8000, k*n, n, 431, 1)
		switch k % 10 {
		case 5:
			c.Skip()
			continue
		case 9:
			more := make([]int16, n)
			c.Conceal(more)
			output = append(output, more...)
		}
		c.Receive(f)
		output = append(output, f...)
	}
	if most, natural := maxStep(output), maxStep(speech(8000, 0, n, 431, 1)); most > natural*5/4 {
		t.Errorf("got a step of %d, natural is %d", most, natural)
	}
}

func TestPatch(t *testing.T) {
	c := New(8000)
	c.Receive(speech(8000, 0, 160, 200, 3))
	f := make([]int16, 160)
	c.Conceal(f)
	copy(f[80:], speech(8000, 240, 80, 200, 3))
	c.Patch(f, true)
	next := speech(8000, 320, 160, 200, 3)
	want := slices.Clone(next)
	if c.Receive(next); !slices.Equal(next, want) {
		t.Error("the frame after a complete end was blended")
	}
}

func TestIsBackground(t *testing.T) {
	c := New(8000)
	source := newBackground()
	source.setLevel(55)
	f := make([]int16, 160)
	for range 20 {
		source.noise(f)
		c.Receive(f)
	}
	source.noise(f)
	if !c.IsBackground(f) || !c.IsBackground(make([]int16, 160)) || c.IsBackground(speech(8000, 0, 160, 200, 3)) {
		t.Error("IsBackground does not separate noise from speech")
	}
}

func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]int{8000, 16000}).Draw(t, "rate")
		c, f := New(rate), make([]int16, rate/50)
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				amp := rapid.IntRange(0, 32767).Draw(t, "amp")
				hz := rapid.Float64Range(20, 3900).Draw(t, "hz")
				for i := range f {
					f[i] = int16(float64(amp) * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
				}
				c.Receive(f)
			case 1:
				c.Conceal(f)
			case 2:
				c.ComfortNoise(f, uint8(rapid.IntRange(0, 127).Draw(t, "level")))
			case 3:
				c.Skip()
			default:
				c.Conceal(f)
				c.Patch(f, rapid.Bool().Draw(t, "whole"))
			}
		}
		for range 4 { // every signal must have faded out after four frames
			c.Conceal(f)
		}
		if level := dB(f); level > -39 {
			t.Fatalf("%.1f dB, want a fade-out", level)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	c, f := New(16000), speech(16000, 0, 320, 200, 4)
	if n := testing.AllocsPerRun(100, func() { c.Receive(f); c.Conceal(f); c.Conceal(f); c.ComfortNoise(f, 60) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReceive(b *testing.B) {
	c, f := New(8000), speech(8000, 0, 160, 200, 4)
	b.ReportAllocs()
	for b.Loop() {
		c.Receive(f)
	}
}

// BenchmarkConceal loses every second frame, so that each lost frame needs a pitch search.
func BenchmarkConceal(b *testing.B) {
	for _, rate := range []int{8000, 16000} {
		b.Run(map[int]string{8000: "8kHz", 16000: "16kHz"}[rate], func(b *testing.B) {
			c, f := New(rate), speech(rate, 0, rate/50, 200, 4)
			b.ReportAllocs()
			for b.Loop() {
				c.Receive(f)
				c.Conceal(f)
			}
		})
	}
}
