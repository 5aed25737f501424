package eot

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"I'd like a table, please.":       "i/1 would/2 like/1 a/1 table/3 please/5",
		"Hi! It costs $5.":                "hi/4 it/1 costs/1 #/5",
		"call me at 7 30 p.m. or not":     "call/1 me/2 at/1 #/1 p.m/2 or/1 not/5",
		"Dr. Brown said \"no.\" I left …": "dr/1 brown/1 said/1 no/4 i/1 left/5",
		"I live in Boston":                "i/1 live/2 in/1 boston/5",
		"don't":                           "do/1 not/5",
		" -- ":                            "",
	} {
		l := parse(text, Inside)
		var got []string
		for i, w := range l.Words {
			got = append(got, w+"/"+string('0'+rune(l.Kinds[i])))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: got %s, want %s", text, s, want)
		}
	}
}

func TestLinesAreReadOnce(t *testing.T) {
	all, err := Lines(strings.NewReader("Yes, it is.\n\nyes it is\nno\n"))
	if err != nil || len(all) != 2 {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestSentences(t *testing.T) {
	var got []string
	for _, s := range parse("Hi. I am home. Call me", Inside).sentences() {
		got = append(got, strings.Join(s.Words, " "))
		if s.Kinds[len(s.Kinds)-1] != End {
			t.Errorf("%v", s)
		}
	}
	if want := []string{"hi", "i am home", "call me"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if all := parse("just one", Inside).sentences(); all != nil {
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

// TestFit checks that the model works on new sentences and unknown words.
func TestFit(t *testing.T) {
	var lines []Line
	for who := range strings.FieldsSeq("anna ben carl dora emil") {
		for what := range strings.FieldsSeq("bread milk soup tea rice") {
			lines = append(lines, parse(who+" wants the "+what+".", Inside), parse("The "+what+" is for "+who+".", Inside))
		}
	}
	o := Defaults()
	o.Rounds, o.Drop = 20, 1
	m, err := model.Read(string(Fit(lines, o).Pack()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ open, whole string }{
		{"zora wants the", "zora wants the cake"}, {"the cake is for", "the cake is for zora"}, {"the milk is", "ben wants the milk"},
	} {
		if a, b := m.End(strings.Fields(c.open)), m.End(strings.Fields(c.whole)); a > -1 || b < 1 {
			t.Errorf("%q: got %.1f, %q: got %.1f", c.open, a, c.whole, b)
		}
	}
	r := Rate(m, lines)
	if odds := r.At(0.02); r.Above(End, odds) < 0.95 || r.Above(Inside, odds) > 0.05 {
		t.Errorf("got %.2f of the ends above %.2f, %.2f of the others", r.Above(End, odds), odds, r.Above(Inside, odds))
	}
	var b bytes.Buffer
	if err := Tables(&b, []string{"here"}, []*Rating{r}); err != nil || !strings.Contains(b.String(), "here") {
		t.Errorf("got %q, %v", b.String(), err)
	}
	if !bytes.Equal(Fit(lines, o).Pack(), Fit(lines, o).Pack()) {
		t.Error("two trainings differ")
	}
}

func TestGrammar(t *testing.T) {
	const rules = `say = <who> wants <what> | tell <who>~ that it is <what>, please
who = anna | <name>
what = the <thing>
thing = milk | bread`
	g, err := ReadGrammar(strings.NewReader(rules), map[string][]string{"name": {"ben"}})
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, l := range g.Say(100, rand.New(rand.NewPCG(1, 2))) {
		var b strings.Builder
		for i, w := range l.Words {
			b.WriteString(w + "/" + string('0'+rune(l.Kinds[i])) + " ")
		}
		said[strings.TrimSpace(b.String())] = true
	}
	for _, want := range []string{"anna/0 wants/0 the/0 milk/5", "tell/0 ben/1 that/0 it/0 is/0 the/0 bread/3 please/5"} {
		if !said[want] {
			t.Errorf("no %q", want)
		}
	}
	if len(said) != 8 {
		t.Errorf("got %d lines: %v", len(said), said)
	}
}

func TestGrammarRefuses(t *testing.T) {
	for rules, want := range map[string]string{"say = <who>": "who", "say = a\nsay": "line 2"} {
		if _, err := ReadGrammar(strings.NewReader(rules), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", rules, err)
		}
	}
}

// TestGrammarEnds checks that recursive rules terminate.
func TestGrammarEnds(t *testing.T) {
	g, err := ReadGrammar(strings.NewReader("say = so <say> and <say> | stop"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if all := g.Say(20, rand.New(rand.NewPCG(1, 2))); len(all) < 3 {
		t.Errorf("%v", all)
	}
}

// TestGradient checks the gradients of backpropagation against numeric gradients.
func TestGradient(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	draw := func() []float32 {
		x := make([]float32, model.Layers)
		for i := range x {
			x[i] = float32(rnd.NormFloat64() / 5)
		}
		return x
	}
	const words = 4
	l := layers{w: draw(), grad: make([]float32, model.Layers)}
	for i := range words {
		copy(l.trace[i].x[:], draw())
		l.trace[i].d = float32(i) - 1
	}
	guess := func() (y float64) {
		for i := range words {
			y += float64(l.trace[i].d) * float64(l.run(i))
		}
		return y
	}
	guess()
	l.back(words)
	along := func(at *float32) float64 {
		const step = 1.0 / 64
		*at += step
		up := guess()
		*at -= 2 * step
		down := guess()
		*at += step
		return (up - down) / (2 * step)
	}
	var dot, a, b float64
	check := func(at *float32, by float32) {
		want, got := along(at), float64(by)
		dot, a, b = dot+want*got, a+want*want, b+got*got
	}
	for i := range l.trace[:words] {
		for k := range model.Width {
			check(&l.trace[i].x[k], l.trace[i].dx[k])
		}
	}
	for i := 0; i < model.Layers; i += 7 {
		check(&l.w[i], l.grad[i])
	}
	if cos := dot / math.Sqrt(a*b); cos < 0.995 || math.Abs(math.Sqrt(a/b)-1) > 0.05 {
		t.Errorf("got cosine %.4f, lengths %.4f and %.4f", cos, math.Sqrt(a), math.Sqrt(b))
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
		if k >= model.Kinds-1 {
			t.Fatalf("%q: more kinds than rows", w)
		}
	}
	for _, name := range []string{"texts/everyday.txt", "texts/calls.txt"} {
		if said, problem := load(name, Lines); problem != nil || len(said) < 1000 {
			t.Errorf("%s: got %d lines, %v", name, len(said), problem)
		}
	}
	made, err := Job{Grammar: "texts/grammar.txt", Classes: "texts/classes.txt"}.say()
	if err != nil || len(made) < 10000 {
		t.Errorf("got %d lines, %v", len(made), err)
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
		t.Errorf("got %d bytes, %v", len(b), err)
	}
	j.Fit = ""
	if err := j.Run(&out, &errs); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]Job{
		"no such file": {Transcripts: []string{dir + "/none"}, Every: 1},
		"line 1":       {Transcripts: []string{texts}, Every: 2, Fit: dir + "/model", Classes: texts},
		"at least 1":   {Transcripts: []string{texts}},
	} {
		if err := bad.Run(&out, &errs); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
