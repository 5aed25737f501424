package acoustic

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media/tone"
)

const rate = 8000

// at returns n samples of silence with pcm at position from.
func at(n, from int, pcm []int16) []int16 {
	all := make([]int16, n)
	copy(all[from:], pcm)
	return all
}

func near(a, b, within int) bool { return a-b <= within && b-a <= within }

func TestStretches(t *testing.T) {
	word, _ := tone.Encode(rate, "one")
	two, _ := tone.Encode(rate, "two words")
	line := at(3*rate, 777, word)
	copy(line[rate:], two)
	got := Measure(line, rate).Stretches(rate / 5)
	want := []Span{{777, 777 + len(word)}, {rate, rate + len(two)}}
	if len(got) != 2 {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if !near(got[i].From, want[i].From, 80) || !near(got[i].To, want[i].To, 80) {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
	if all := Measure(line, rate).Stretches(rate / 50); len(all) != 3 {
		t.Errorf("gap of 20 ms: got %v", all)
	}
	if all := Measure(make([]int16, rate), rate).Stretches(1600); all != nil {
		t.Errorf("silence: got %v, want no span", all)
	}
}

func TestShortClickIsNoOnset(t *testing.T) {
	line := at(rate, 4000, tone.Sine(rate, 120, 1000, 0.5))
	if from, ok := Measure(line, rate).Onset(0); ok {
		t.Errorf("click of 15 ms: got an onset at %d, want none", from)
	}
	line = at(rate, 4000, tone.Sine(rate, 400, 1000, 0.5))
	if from, ok := Measure(line, rate).Onset(0); !ok || !near(from, 4000, 80) {
		t.Errorf("50 ms of sound at 4000: got %d, %v", from, ok)
	}
	if _, ok := Measure(line, rate).Onset(4800); ok {
		t.Error("got an onset after the sound, want none")
	}
	quiet := at(rate, 4000, tone.Sine(rate, 800, 1000, 0.004))
	if from, ok := Measure(quiet, rate).Onset(0); ok {
		t.Errorf("sine at -51 dBFS: got an onset at %d, want none", from)
	}
}

// TestStretchesFindSounds checks that Stretches finds a sound anywhere, to within one window.
func TestStretchesFindSounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := make([]int16, 0, 4*rate)
		var want []Span
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			line = append(line, make([]int16, rapid.IntRange(1800, 6000).Draw(t, "silence"))...)
			n := rapid.IntRange(400, 4000).Draw(t, "sound")
			want = append(want, Span{len(line), len(line) + n})
			line = append(line, tone.Sine(rate, n, 700, rapid.Float64Range(.1, .9).Draw(t, "amplitude"))...)
		}
		line = append(line, make([]int16, 3000)...)
		got := Measure(line, rate).Stretches(1600)
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for i := range want {
			if !near(got[i].From, want[i].From, 80) || !near(got[i].To, want[i].To, 80) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

// softened applies a gain in dB from a sample on, after a fade of 10 ms.
func softened(pcm []int16, from int, db float64) []int16 {
	out := append([]int16(nil), pcm...)
	for i := from; i < len(out); i++ {
		g := db * min(1, float64(i-from)/80)
		out[i] = int16(float64(out[i]) * math.Pow(10, g/20))
	}
	return out
}

func TestDuck(t *testing.T) {
	line, words := tone.Encode(rate, "alpha bravo charlie delta echo")
	inWord := int(words[2].Start.Seconds()*rate) + 800
	inGap := int(words[2].End.Seconds()*rate) + 200
	next := int(words[3].Start.Seconds() * rate)
	for name, c := range map[string]struct {
		pcm  []int16
		from int
		want int // -1 means that there is none
		seen bool
	}{
		"in a word":          {softened(line, inWord, -12), inWord - 400, inWord, true},
		"in a gap":           {softened(line, inGap, -12), inGap - 400, next, false},
		"too little":         {softened(line, inWord, -6), inWord - 400, -1, false},
		"none":               {line, inWord - 400, -1, false},
		"silence, not quiet": {softened(line, inWord, -120), inWord - 400, -1, false},
	} {
		d, ok := Measure(c.pcm, rate).Duck(c.from, len(line))
		if ok != (c.want >= 0) || ok && (!near(d.At, c.want, 160) || d.Seen != c.seen) {
			t.Errorf("%s: got %+v, %v; want %d, seen %v", name, d, ok, c.want, c.seen)
		}
	}
	if _, ok := Measure(make([]int16, rate), rate).Duck(4000, rate); ok {
		t.Error("silence: got a duck, want none")
	}
}
