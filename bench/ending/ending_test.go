package ending

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline/eot/ending"
)

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"I'd like a table, please.":       "i/0 would/1 like/0 a/0 table/2 please/4",
		"Hi! It costs $5.":                "hi/3 it/0 costs/0 #/4",
		"call me at 7 30 p.m. or not":     "call/0 me/1 at/0 #/0 p.m/1 or/0 not/4",
		"Dr. Brown said \"no.\" I left …": "dr/0 brown/0 said/0 no/3 i/0 left/4",
		"I live in Boston":                "i/0 live/1 in/0 boston/4",
		"don't":                           "do/0 not/4",
		" -- ":                            "",
	} {
		l := parse(text)
		var got []string
		for i, w := range l.Words {
			got = append(got, w+"/"+string('0'+rune(l.Kinds[i])))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %s, want %s", text, s, want)
		}
	}
}

func TestLinesAreReadOnce(t *testing.T) {
	all, err := Lines(strings.NewReader("Yes, it is.\n\nyes it is\nno\n"))
	if err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestSentences(t *testing.T) {
	var got []string
	for _, s := range parse("Hi. I am home. Call me").sentences() {
		got = append(got, strings.Join(s.Words, " "))
		if s.Kinds[len(s.Kinds)-1] != End {
			t.Errorf("%v", s)
		}
	}
	if want := []string{"hi", "i am home", "call me"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if all := parse("just one").sentences(); all != nil {
		t.Errorf("%v", all)
	}
}

func TestLexicon(t *testing.T) {
	lex, err := ReadLexicon(strings.NewReader("verb-object: carry fix stop\nnoun: stop box\nname: anna\n"))
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b string) bool { return lex[a] == lex[b] }
	if !same("carried", "fixed") || !same("carrying", "fixing") || !same("stopped", "fixed") || same("stop", "fix") || same("stop", "box") {
		t.Errorf("%v", lex)
	}
	for _, w := range []string{"carry", "carries", "fixes", "boxes", "anna", "stopping"} {
		if _, ok := lex[w]; !ok {
			t.Errorf("no %q", w)
		}
	}
	if _, err := ReadLexicon(strings.NewReader("noun: a\nwords\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

// TestFit: what was learned from some sentences holds for others, also of words
// that are not known.
func TestFit(t *testing.T) {
	var lines []Line
	for who := range strings.FieldsSeq("anna ben carl dora emil") {
		for what := range strings.FieldsSeq("bread milk soup tea rice") {
			lines = append(lines, parse(who+" wants the "+what+"."), parse("The "+what+" is for "+who+"."))
		}
	}
	o := Defaults()
	o.Rounds, o.Drop = 20, 1
	m, err := ending.Read(string(Fit(lines, o).Pack()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ open, whole string }{
		{"zora wants the", "zora wants the cake"}, {"the cake is for", "the cake is for zora"}, {"the milk is", "ben wants the milk"},
	} {
		if a, b := m.End(strings.Fields(c.open)), m.End(strings.Fields(c.whole)); a > -1 || b < 1 {
			t.Errorf("%q: %.1f, %q: %.1f", c.open, a, c.whole, b)
		}
	}
	r := Rate(m, lines)
	if odds := r.At(0.02); r.Above(End, odds) < 0.95 || r.Above(Inside, odds) > 0.05 {
		t.Errorf("%.2f of the ends above %.2f, %.2f of the others", r.Above(End, odds), odds, r.Above(Inside, odds))
	}
	var b bytes.Buffer
	if err := Tables(&b, []string{"here"}, []*Rating{r}); err != nil || !strings.Contains(b.String(), "here") {
		t.Errorf("%q, %v", b.String(), err)
	}
	if !bytes.Equal(Fit(lines, o).Pack(), Fit(lines, o).Pack()) {
		t.Error("fitted twice, and not the same")
	}
}

func TestTexts(t *testing.T) {
	f, err := os.Open("texts/classes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lex, err := ReadLexicon(f)
	if err != nil {
		t.Fatal(err)
	}
	for w, k := range lex {
		if k >= ending.Kinds-1 {
			t.Fatalf("%q: more kinds than there are rows for", w)
		}
	}
	lines, err := os.ReadFile("texts/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(lines), "\n"); n < 1000 {
		t.Errorf("%d lines", n)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	texts, classes := dir+"/said.txt", dir+"/classes.txt"
	var all strings.Builder
	for _, who := range []string{"anna", "ben", "carl", "dora"} {
		for _, what := range []string{"bread", "milk", "soup"} {
			all.WriteString(who + " wants the " + what + ".\n")
		}
	}
	for name, text := range map[string]string{texts: all.String(), classes: "noun: bread milk\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	j := Job{Transcripts: []string{texts}, Every: 3, Fit: dir + "/model", Classes: classes}
	if err := j.Run(&out, &errs); err != nil || !strings.Contains(out.String(), "said.txt") || !strings.Contains(errs.String(), "round 1") {
		t.Errorf("%v\n%s%s", err, &out, &errs)
	}
	if b, err := os.ReadFile(j.Fit); err != nil || len(b) < 1000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	j.Fit = ""
	if err := j.Run(&out, &errs); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]Job{
		"no such file": {Transcripts: []string{dir + "/none"}, Every: 1},
		"line 1":       {Transcripts: []string{texts}, Every: 2, Fit: dir + "/model", Classes: texts},
		"in 0":         {Transcripts: []string{texts}},
	} {
		if err := bad.Run(&out, &errs); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
