package converse_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

const counting = "one two three four five six seven eight nine ten eleven twelve"

// counts has the agent count, and lets beside happen in the middle of it.
func counts(t *testing.T, beside func(*call)) (heard []string, o pipeline.Outcome) {
	t.Helper()
	script := fake.Typical()
	script.Reply = func([]fake.Message) string { return counting }
	c := start(t, script, pipeline.Brief{})
	c.pass(500 * time.Millisecond)
	c.say("count please")
	c.pass(1700 * time.Millisecond)
	beside(c)
	c.pass(6 * time.Second)
	heard = strings.Fields(c.words())
	return heard, c.hangup()
}

// cough is a burst of noise that fades.
func cough(d time.Duration) []int16 {
	rnd := rand.New(rand.NewPCG(1, 2))
	pcm := make([]int16, d*8000/time.Second)
	for i := range pcm {
		pcm[i] = int16(9000 * rnd.NormFloat64() * (1 - float64(i)/float64(len(pcm))) / 3)
	}
	return pcm
}

// whole holds what was heard to the count, without a word lost; a word that a
// pause cut is said again.
func whole(t *testing.T, heard []string) {
	t.Helper()
	kept := slices.DeleteFunc(slices.Clone(heard), func(w string) bool { return !strings.Contains(" "+counting+" ", " "+w+" ") })
	if got := strings.Join(slices.Compact(kept), " "); got != counting || len(heard) > 14 {
		t.Errorf("the caller heard %q", heard)
	}
}

func TestCoughLosesNoWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard, o := counts(t, func(c *call) { c.Say(cough(300 * time.Millisecond)) })
		whole(t, heard)
		if o.Turns[0].Ending != pipeline.Answered || len(o.Turns) != 1 {
			t.Errorf("turns %+v", o.Turns)
		}
	})
}

func TestListenersWordLosesNoWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard, o := counts(t, func(c *call) { c.say("mhm okay") })
		whole(t, heard)
		if got := lines(o); !slices.Contains(got, "caller: mhm okay") || len(o.Turns) != 1 {
			t.Errorf("lines %q, %d turns", got, len(o.Turns))
		}
	})
}

// TestEcho: a line that returns the agent's voice at -20 dB does not stop it.
func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fake.Typical()
		script.Reply = func([]fake.Message) string { return counting }
		c := start(t, script, pipeline.Brief{Greeting: "welcome to the house of parley how can i help you today"})
		c.Echo(100*time.Millisecond, 0.1)
		c.pass(5 * time.Second)
		c.say("count please")
		c.pass(7 * time.Second)
		heard := strings.Fields(c.words())
		o := c.hangup()
		if !strings.HasSuffix(strings.Join(heard, " "), counting) {
			t.Errorf("the caller heard %q", heard)
		}
		if len(o.Turns) != 2 || o.Turns[1].Ending != pipeline.Answered {
			t.Errorf("turns %+v, lines %q", o.Turns, lines(o))
		}
	})
}

// TestCallerGoesOnIntoTheAnswer: an answer that just began is taken back, and
// what the caller said is one turn.
func TestCallerGoesOnIntoTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked [][]fake.Message
		script := fake.Typical()
		script.Reply = func(m []fake.Message) string {
			asked = append(asked, m)
			return "you said " + m[len(m)-1].Content + " and nothing else"
		}
		c := start(t, script, pipeline.Brief{})
		c.pass(500 * time.Millisecond)
		c.say("a table for two people")
		c.pass(600 * time.Millisecond)
		c.say("outside if possible")
		c.pass(5 * time.Second)
		heard := c.words()
		o := c.hangup()
		if !strings.HasSuffix(heard, "you said a table for two people outside if possible and nothing else") {
			t.Errorf("the caller heard %q", heard)
		}
		if len(o.Turns) != 1 || o.Turns[0].MergedFrom != 2 || o.Turns[0].Interrupted {
			t.Errorf("turns %+v", o.Turns)
		}
		if last := asked[len(asked)-1]; len(last) != 2 { // the instructions, and one message of the caller's
			t.Errorf("the model was asked with %+v", last)
		}
	})
}

func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fake.Typical()
		script.Reply = func(m []fake.Message) string { return "got " + m[len(m)-1].Content }
		c := start(t, script, pipeline.Brief{})
		c.pass(500 * time.Millisecond)
		for _, k := range "42#" {
			c.Press(k)
			c.pass(300 * time.Millisecond)
		}
		c.pass(4 * time.Second)
		o := c.hangup()
		if got := lines(o); len(got) != 2 || got[0] != "caller: [pressed 42#]" || !strings.Contains(got[1], "42#") {
			t.Errorf("lines %q", got)
		}
	})
}

// TestCardNumber: a number that is pressed reaches the model, and nothing that is
// kept, though the model repeats it.
func TestCardNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const card = "4111111111111111"
		script := fake.Typical()
		told := ""
		script.Reply = func(m []fake.Message) string {
			told = m[len(m)-1].Content
			return "got " + card + " thanks"
		}
		c := start(t, script, pipeline.Brief{})
		c.pass(500 * time.Millisecond)
		for _, k := range card + "#" {
			c.Press(k)
			c.pass(200 * time.Millisecond)
		}
		c.pass(8 * time.Second)
		o := c.hangup()
		if !strings.Contains(told, card) {
			t.Errorf("the model was told %q", told)
		}
		if got := fmt.Sprintf("%+v", o.Lines); strings.Contains(got, "4111") || !strings.Contains(got, "[pressed 17 keys]") || !strings.Contains(got, "[16 digits]") {
			t.Errorf("lines %s", got)
		}
	})
}
