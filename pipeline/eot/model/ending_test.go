package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct{ word, head, tail string }{
		{"don't", "do", "not"},
		{"can't", "can", "not"},
		{"cannot", "can", "not"},
		{"won't", "will", "not"},
		{"dont", "do", "not"},
		{"i'm", "i", "am"},
		{"im", "i", "am"},
		{"i've", "i", "have"},
		{"we're", "we", "are"},
		{"they'll", "they", "will"},
		{"i'd", "i", "would"},
		{"it's", "it's", ""},
		{"mother's", "mother's", ""},
		{"'t", "'t", ""},
		{"o'clock", "o'clock", ""},
		{"word", "word", ""},
		{"", "", ""},
	} {
		if head, tail := Split(c.word); head != c.head || tail != c.tail {
			t.Errorf("%q: %q and %q, want %q and %q", c.word, head, tail, c.head, c.tail)
		}
	}
}

func TestClasses(t *testing.T) {
	for text, want := range map[string]string{
		"on friday":                      "on #day",
		"two hundred and 5 dollars":      "# and # dollars",
		"the 3rd of may":                 "the #th of may",
		"in june":                        "in #month",
		"mary@example.org":               "#@",
		"five five five one":             "#",
		"we don't know":                  "we do not know",
		"the twelfth":                    "the #th",
		"":                               "",
		"seventy seven and sunday's one": "# and sunday's #",
	} {
		if got := strings.Join(Classes(nil, strings.Fields(text)), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// sample returns a model with one rule: after "stop" a turn has ended, until the word "go". The
// state remembers "stop".
func sample() *Weights {
	w := &Weights{Known: []uint32{Hash("go"), Hash("stop")}}
	slices.Sort(w.Known)
	w.Rows = make([][Width]float32, Base+2)
	w.Kinds = make([]uint16, Base+2)
	w.Layers = make([]float32, Layers)
	w.Grams = make([]float32, Grams)
	row := func(word string) *[Width]float32 {
		i, _ := slices.BinarySearch(w.Known, Hash(word))
		return &w.Rows[Base+i]
	}
	row("stop")[0], row("go")[1] = 1, 1
	w.Layers[Shift] = -1
	w.Layers[ReadAt+Hidden*Units], w.Layers[Out] = 2, 2 // whether the last word is "stop"
	for j := range Hidden {
		w.Layers[Bias+j] = -3 // each word replaces the state
	}
	w.Layers[In+2*Hidden] = 3 // state 0 is set by "stop", state 1 by "go"
	w.Layers[In+Gates+2*Hidden+1] = 3
	w.Layers[Bias] = 3 // only "stop" replaces state 0
	w.Layers[In] = -6
	w.Layers[ReadAt+1], w.Layers[ReadAt+Units+1], w.Layers[UnitBias+1], w.Layers[Out+1] = 1, 1, -1.5, 4
	return w
}

func TestPack(t *testing.T) {
	m, err := Read(string(sample().Pack()))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]float64{"please stop": 3, "stop please": -1, "go": -1, "stop": 3, "stop please go": 0.5, "please go": -1} {
		if got := m.End(strings.Fields(text)); math.Abs(got-want) > 0.05 {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := m.End(nil); !math.IsInf(got, -1) {
		t.Errorf("no words: %v", got)
	}
}

// TestMultiply checks that two weights at once give the same result as one by one.
func TestMultiply(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		matrix := make([]float32, Hidden*Gates)
		for i := range matrix {
			matrix[i] = float32(rnd.IntN(255) - 127)
		}
		x, want := make([]int32, Hidden), [Gates]int32{}
		for k := range x {
			x[k] = rnd.Int32N(2*one+1) - one
			for j := range want {
				want[j] += x[k] * int32(matrix[k*Gates+j])
			}
		}
		packed := make([]byte, 0, len(matrix))
		for _, v := range groupLanes(matrix) {
			packed = append(packed, byte(int8(v)))
		}
		var got [Gates]int32
		if multiply(&got, string(packed), x); got != want {
			t.Fatalf("%v\n%v", got, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	whole := string(sample().Pack())
	for name, data := range map[string]string{
		"nothing": "", "short": whole[:100], "cut": whole[:len(whole)-1], "long": whole + "x", "no model": "x" + whole[1:],
		"too many words": whole[:4] + "\xff\xff\xff\xff" + whole[8:],
	} {
		if _, err := Read(data); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestEnglish(t *testing.T) {
	if _, err := Read(english); err != nil {
		t.Fatal(err)
	}
	if n := len(english); n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
	m := English()
	for _, c := range []struct{ finished, open string }{
		{"i want to cancel my order", "i want to cancel my"},
		{"she lives in madrid", "she lives in"},
		{"the glorfindel is broken", "the glorfindel is"},
	} {
		if a, b := m.End(strings.Fields(c.finished)), m.End(strings.Fields(c.open)); a < b+2 {
			t.Errorf("%q: %.1f, %q: %.1f", c.finished, a, c.open, b)
		}
	}
}

func TestEndAllocatesNothing(t *testing.T) {
	m := English()
	words := strings.Fields("i would like to book a table for two on friday if you have one")
	if n := testing.AllocsPerRun(100, func() { m.End(words) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzEnd(f *testing.F) {
	f.Add("i don't know 5 5 5 mary@example.org")
	f.Add("' 't n't 're a'")
	f.Fuzz(func(t *testing.T, text string) {
		if y := English().End(strings.Fields(text)); math.IsNaN(y) || math.IsInf(y, 1) {
			t.Fatal(y)
		}
	})
}

func BenchmarkEnd(b *testing.B) {
	words := strings.Fields("i would like to book a table for two on friday if you have one")
	b.ReportAllocs()
	for b.Loop() {
		English().End(words)
	}
}
