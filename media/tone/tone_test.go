package tone

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func texts(words []Word) string {
	var all []string
	for _, w := range words {
		all = append(all, strings.ToLower(w.Text))
	}
	return strings.Join(all, " ")
}

func TestEncodeDecode(t *testing.T) {
	for _, rate := range []int{8000, 16000, 24000} {
		const text = "Hello, this is Parley. It's 42% #1!"
		pcm, words := Encode(rate, text)
		decoded := NewDecoder(rate).Decode(append(pcm, make([]int16, rate/10)...))
		if got := texts(decoded); got != strings.ToLower(text) {
			t.Errorf("at %d Hz got %q", rate, got)
		}
		for i := range min(len(words), len(decoded)) {
			if d := (words[i].Start - decoded[i].Start).Abs(); d > 8*time.Millisecond {
				t.Errorf("at %d Hz word %q is off by %v", rate, words[i].Text, d)
			}
		}
	}
}

// TestCyrillic checks that Russian and Kazakh words are encoded and decoded.
func TestCyrillic(t *testing.T) {
	const text = "сәлеметсіз бе, это parley? ёж қазақша сөйлейді һәм объявляет!"
	pcm, _ := Encode(8000, text)
	if got := texts(NewDecoder(8000).Decode(append(pcm, make([]int16, 800)...))); got != text {
		t.Errorf("got %q", got)
	}
}

// TestDecodeRandom decodes random words with random phases, levels and chunk sizes, and with noise that is 25 dB
// quieter.
func TestDecodeRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9']{1,12}`)
		text := strings.Join(rapid.SliceOfN(word, 1, 6).Draw(t, "words"), " ")
		lead := rapid.IntRange(0, 400).Draw(t, "lead")
		gain := rapid.Float64Range(0.3, 1.5).Draw(t, "gain")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		pcm, _ := Encode(8000, text)
		line := append(make([]int16, lead), pcm...)
		line = append(line, make([]int16, 800)...)
		for i, x := range line {
			line[i] = int16(gain*float64(x) + 150*rnd.NormFloat64())
		}
		h := NewDecoder(8000)
		var decoded []Word
		for len(line) > 0 {
			n := min(len(line), rapid.IntRange(1, 400).Draw(t, "chunk"))
			decoded = append(decoded, h.Decode(line[:n])...)
			line = line[n:]
		}
		if got := texts(decoded); got != text {
			t.Fatalf("got %q, want %q", got, text)
		}
	})
}

func TestDecodeIgnoresOtherAudio(t *testing.T) {
	noise := make([]int16, 8000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = int16(4000 * rnd.NormFloat64())
	}
	for name, pcm := range map[string][]int16{
		"noise": noise, "sine": Sine(8000, 8000, 1000, 0.5), "silence": make([]int16, 8000),
	} {
		if words := NewDecoder(8000).Decode(append(pcm, make([]int16, 800)...)); len(words) > 0 {
			t.Errorf("%s: got %v", name, words)
		}
	}
}

func TestPowerAndLevel(t *testing.T) {
	pcm := Sine(8000, 1600, 1000, 0.5)[200:1400]
	if p := Power(pcm, 8000, 1000); math.Abs(p-0.25) > 0.01 {
		t.Errorf("power of a half-scale sine is %v", p)
	}
	if p := Power(pcm, 8000, 1500); p > 0.001 {
		t.Errorf("power at another frequency is %v", p)
	}
	if l := Level(pcm); math.Abs(l+9) > 0.1 {
		t.Errorf("level of a half-scale sine is %v dBFS", l)
	}
}
