package conversation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

const counting = "one two three four five six seven eight nine ten eleven twelve"

// counts runs a call in which the agent counts aloud, and calls during while the agent speaks. It returns the words
// that the caller heard.
func counts(t *testing.T, during func(*call)) (heard []string, o pipeline.Outcome) {
	t.Helper()
	script := fakeprovider.Typical()
	script.Reply = func([]fakeprovider.Message) string { return counting }
	c := start(t, script, pipeline.SessionConfig{})
	c.pass(500 * time.Millisecond)
	c.say("count please")
	c.pass(1700 * time.Millisecond)
	during(c)
	c.pass(6 * time.Second)
	heard = strings.Fields(c.words())
	return heard, c.hangup()
}

func cough(d time.Duration) []int16 {
	rnd := rand.New(rand.NewPCG(1, 2))
	pcm := make([]int16, d*8000/time.Second)
	for i := range pcm {
		pcm[i] = int16(9000 * rnd.NormFloat64() * (1 - float64(i)/float64(len(pcm))) / 3)
	}
	return pcm
}

// whole checks that the caller heard every word of the count. A word that a pause cut off may be heard twice.
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

func TestBackchannelLosesNoWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard, o := counts(t, func(c *call) { c.say("mhm okay") })
		whole(t, heard)
		if got := lines(o); !slices.Contains(got, "caller: mhm okay") || len(o.Turns) != 1 {
			t.Errorf("lines %q, %d turns", got, len(o.Turns))
		}
	})
}

func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fakeprovider.Typical()
		script.Reply = func([]fakeprovider.Message) string { return counting }
		c := start(t, script, pipeline.SessionConfig{Greeting: "welcome to the house of parley how can i help you today"})
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

// TestCallerContinuesIntoReply checks that the agent retracts an answer that has just begun if the caller continues,
// and that all words of the caller form one turn.
func TestCallerContinuesIntoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked [][]fakeprovider.Message
		script := fakeprovider.Typical()
		script.Reply = func(m []fakeprovider.Message) string {
			asked = append(asked, m)
			return "you said " + m[len(m)-1].Content + " and nothing else"
		}
		c := start(t, script, pipeline.SessionConfig{})
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
		if last := asked[len(asked)-1]; len(last) != 2 { // the instructions and one message of the caller
			t.Errorf("got messages %+v", last)
		}
	})
}

func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fakeprovider.Typical()
		script.Reply = func(m []fakeprovider.Message) string { return "got " + m[len(m)-1].Content }
		c := start(t, script, pipeline.SessionConfig{})
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

// TestTyped checks that typed words interrupt the greeting, are answered, and are lines of the transcript.
func TestTyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fakeprovider.Typical()
		script.Reply = func(m []fakeprovider.Message) string { return "got " + m[len(m)-1].Content }
		typed := make(chan string, 1)
		c := start(t, script, pipeline.SessionConfig{Typed: typed})
		c.pass(500 * time.Millisecond)
		typed <- "order 42"
		c.pass(4 * time.Second)
		o := c.hangup()
		if got := lines(o); !slices.Equal(got, []string{"caller: order 42", "agent: got order 42"}) {
			t.Errorf("lines %q", got)
		}
	})
}

// TestCardNumber checks that the model gets a pressed number and that nothing stored contains
// it, even if the model repeats it.
func TestCardNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const card = "4111111111111111"
		script := fakeprovider.Typical()
		told := ""
		script.Reply = func(m []fakeprovider.Message) string {
			told = m[len(m)-1].Content
			return "got " + card + " thanks"
		}
		c := start(t, script, pipeline.SessionConfig{})
		c.pass(500 * time.Millisecond)
		for _, k := range card + "#" {
			c.Press(k)
			c.pass(200 * time.Millisecond)
		}
		c.pass(8 * time.Second)
		o := c.hangup()
		if !strings.Contains(told, card) {
			t.Errorf("got messages %q", told)
		}
		if got := fmt.Sprintf("%+v", o.Lines); strings.Contains(got, "4111") || !strings.Contains(got, "[pressed 17 keys]") || !strings.Contains(got, "[16 digits]") {
			t.Errorf("lines %s", got)
		}
	})
}
