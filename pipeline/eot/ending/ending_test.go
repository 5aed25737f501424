package ending

import (
	"math"
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

// sample is a model that has learned one thing: "stop" ends.
func sample() *Weights {
	w := &Weights{Known: []uint32{Hash("go"), Hash("stop")}, Shift: -1}
	slices.Sort(w.Known)
	w.Rows = make([][Width]float32, Base+2)
	w.Kinds = make([]uint16, Base+2)
	w.Layer = make([][Hidden]float32, Slots*Width)
	w.Grams = make([]float32, Grams)
	i, _ := slices.BinarySearch(w.Known, Hash("stop"))
	w.Rows[Base+i][0] = 1
	w.Layer[0][0], w.Out[0] = 2, 2
	return w
}

func TestPack(t *testing.T) {
	m, err := Read(string(sample().Pack()))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]float64{"please stop": 3, "stop please": -1, "go": -1, "stop": 3} {
		if got := m.End(strings.Fields(text)); math.Abs(got-want) > 0.05 {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := m.End(nil); !math.IsInf(got, -1) {
		t.Errorf("no words: %v", got)
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
	if n := len(english); n > 256<<10 {
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
