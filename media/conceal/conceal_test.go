package conceal

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// voice is like speech: 120 Hz and its overtones, or a tone of hz alone.
func voice(rate int, from, n int, hz float64, overtones int) []int16 {
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

// likeness is the correlation of two frames, 1 for the same.
func likeness(a, b []int16) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// jump is the largest step between two samples.
func jump(f []int16) (most int) {
	for i := 1; i < len(f); i++ {
		most = max(most, int(math.Abs(float64(f[i])-float64(f[i-1]))))
	}
	return most
}

func TestLossSoundsLikeWhatWasLost(t *testing.T) {
	for name, row := range map[string]struct {
		hz        float64
		overtones int
		like      float64
	}{
		"man": {110, 8, 0.95}, "woman": {220, 6, 0.88}, "child": {390, 4, 0.95}, "tone": {1004, 1, 0.9},
	} {
		for _, rate := range []int{8000, 16000} {
			n := rate / 50
			c := New(rate)
			for k := range 10 {
				c.Good(voice(rate, k*n, n, row.hz, row.overtones))
			}
			var heard []int16
			heard = append(heard, voice(rate, 9*n, n, row.hz, row.overtones)...)
			f := make([]int16, n)
			c.Lost(f)
			truth := voice(rate, 10*n, n, row.hz, row.overtones)
			if like := likeness(f, truth); like < row.like {
				t.Errorf("%s at %d: likeness %.3f", name, rate, like)
			}
			heard = append(heard, f...)
			next := voice(rate, 11*n, n, row.hz, row.overtones)
			c.Good(next)
			heard = append(heard, next...)
			if most, natural := jump(heard), jump(truth); most > natural*3/2 {
				t.Errorf("%s at %d: a step of %d where %d is natural", name, rate, most, natural)
			}
		}
	}
}

func TestLossFadesToTheBackground(t *testing.T) {
	const rate, n = 8000, 160
	c := New(rate)
	source := newBackground()
	source.tell(60)
	for range 120 { // 2.4 s of a room
		f := make([]int16, n)
		source.noise(f)
		c.Good(f)
	}
	for k := range 10 {
		c.Good(voice(rate, k*n, n, 150, 4))
	}
	f := make([]int16, n)
	before := math.Inf(1)
	for k := range 3 {
		c.Lost(f)
		if level := dB(f); level >= before {
			t.Errorf("frame %d: %.1f dB after %.1f", k, level, before)
		}
		before = dB(f)
	}
	for k := range 50 {
		c.Lost(f)
		if level := dB(f); math.Abs(level+60) > 2 {
			t.Fatalf("frame %d: %.1f dB, the room has -60", k, level)
		}
	}
}

// TestWhatHasEndedDoesNotComeBack loses the sound after the end of a word.
func TestWhatHasEndedDoesNotComeBack(t *testing.T) {
	c := New(8000)
	for k := range 10 {
		c.Good(voice(8000, k*160, 160, 150, 4))
	}
	f := make([]int16, 160)
	c.Good(f)
	for k := range 3 {
		if c.Lost(f); dB(f) > -60 {
			t.Errorf("frame %d after the word: %.1f dBFS", k, dB(f))
		}
	}
}

// TestOnsetIsNotMadeLong loses what follows the first 20 ms of a sound: it goes
// on for no longer than it was heard.
func TestOnsetIsNotMadeLong(t *testing.T) {
	c, f := New(8000), make([]int16, 160)
	for range 10 {
		clear(f)
		c.Good(f)
	}
	c.Good(voice(8000, 0, 160, 300, 2))
	c.Lost(f)
	if dB(f) < -40 {
		t.Errorf("%.1f dBFS at once", dB(f))
	}
	if c.Lost(f); dB(f) > -60 {
		t.Errorf("%.1f dBFS after 20 ms", dB(f))
	}
}

func TestNoiseOfALoudLineIsNotLoud(t *testing.T) {
	c := New(8000)
	for k := range 200 { // music, without a pause
		c.Good(voice(8000, k*160, 160, 300, 5))
	}
	f := make([]int16, 160)
	for range 10 {
		c.Lost(f)
	}
	if level := dB(f); level > -39 {
		t.Errorf("noise of %.1f dB", level)
	}
}

func TestQuietHasTheLevelThatWasTold(t *testing.T) {
	for _, level := range []uint8{45, 60, 70} {
		c := New(16000)
		c.Good(voice(16000, 0, 320, 200, 3))
		f := make([]int16, 320)
		for range 5 {
			c.Quiet(f, level)
		}
		if got := dB(f); math.Abs(got+float64(level)) > 1 {
			t.Errorf("-%d dBov became %.1f", level, got)
		}
	}
	c, f := New(8000), make([]int16, 160)
	c.Quiet(f, 127)
	if slices.ContainsFunc(f, func(v int16) bool { return v != 0 }) {
		t.Error("the lowest level is not silence")
	}
}

func TestNothingIsMadeUpOfNothing(t *testing.T) {
	c, f := New(8000), []int16{1, 2, 3}
	c.Lost(f)
	if !slices.Equal(f, make([]int16, 3)) {
		t.Errorf("%v", f)
	}
}

// TestLeftOutFramesLeaveNoClick leaves frames out of a tone, and adds some.
func TestLeftOutFramesLeaveNoClick(t *testing.T) {
	const n = 160
	c := New(8000)
	var heard []int16
	for k := range 100 {
		f := voice(8000, k*n, n, 431, 1)
		switch k % 10 {
		case 5:
			c.Skip()
			continue
		case 9:
			more := make([]int16, n)
			c.Lost(more)
			heard = append(heard, more...)
		}
		c.Good(f)
		heard = append(heard, f...)
	}
	if most, natural := jump(heard), jump(voice(8000, 0, n, 431, 1)); most > natural*5/4 {
		t.Errorf("a step of %d where %d is natural", most, natural)
	}
}

// TestAmend puts the second half of a frame where it belongs; the frame after
// it is heard as it came.
func TestAmend(t *testing.T) {
	c := New(8000)
	c.Good(voice(8000, 0, 160, 200, 3))
	f := make([]int16, 160)
	c.Lost(f)
	copy(f[80:], voice(8000, 240, 80, 200, 3))
	c.Amend(f, true)
	next := voice(8000, 320, 160, 200, 3)
	want := slices.Clone(next)
	if c.Good(next); !slices.Equal(next, want) {
		t.Error("a frame after a whole end was blended")
	}
}

func TestStill(t *testing.T) {
	c := New(8000)
	source := newBackground()
	source.tell(55)
	f := make([]int16, 160)
	for range 20 {
		source.noise(f)
		c.Good(f)
	}
	source.noise(f)
	if !c.Still(f) || !c.Still(make([]int16, 160)) || c.Still(voice(8000, 0, 160, 200, 3)) {
		t.Error("the room is not told from speech")
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
				c.Good(f)
			case 1:
				c.Lost(f)
			case 2:
				c.Quiet(f, uint8(rapid.IntRange(0, 127).Draw(t, "level")))
			case 3:
				c.Skip()
			default:
				c.Lost(f)
				c.Amend(f, rapid.Bool().Draw(t, "whole"))
			}
		}
		for range 4 { // whatever came before, it ends
			c.Lost(f)
		}
		if level := dB(f); level > -39 {
			t.Fatalf("%.1f dB without end", level)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	c, f := New(16000), voice(16000, 0, 320, 200, 4)
	if n := testing.AllocsPerRun(100, func() { c.Good(f); c.Lost(f); c.Lost(f); c.Quiet(f, 60) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGood(b *testing.B) {
	c, f := New(8000), voice(8000, 0, 160, 200, 4)
	b.ReportAllocs()
	for b.Loop() {
		c.Good(f)
	}
}

// BenchmarkLost loses every second frame, so that each is searched for a pitch.
func BenchmarkLost(b *testing.B) {
	for _, rate := range []int{8000, 16000} {
		b.Run(map[int]string{8000: "8kHz", 16000: "16kHz"}[rate], func(b *testing.B) {
			c, f := New(rate), voice(rate, 0, rate/50, 200, 4)
			b.ReportAllocs()
			for b.Loop() {
				c.Good(f)
				c.Lost(f)
			}
		})
	}
}
