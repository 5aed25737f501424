package converse_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

// TestRandomCalls lets callers say what they like when they like while
// providers break at random, and holds the outcome to what was audible: the
// caller heard what the agent's lines say, in that order, and nothing else.
func TestRandomCalls(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomCall(t, seed) })
		})
	}
}

func randomCall(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	// The providers run beside the caller: their chance is a function of what
	// they are asked.
	chance := func(what string, n, of int) int {
		h := fnv.New64a()
		fmt.Fprint(h, what, n)
		return rand.New(rand.NewPCG(seed, h.Sum64())).IntN(of)
	}
	script := fake.Typical()
	script.FirstToken = time.Duration(rnd.IntN(600)) * time.Millisecond
	script.FirstByte = time.Duration(rnd.IntN(300)) * time.Millisecond
	script.LeadingSilence = time.Duration(rnd.IntN(3)) * 50 * time.Millisecond
	script.Reply = func(m []fake.Message) string {
		return strings.TrimSpace(strings.Repeat(fmt.Sprintf("answer%d ", len(m)), 1+chance("reply", len(m), 8)))
	}
	if rnd.IntN(2) == 0 {
		script.Fault = func(p fake.Provider, n int) fake.Fault {
			return []fake.Fault{fake.None, fake.None, fake.None, fake.None, fake.Refuse, fake.Drop, fake.Stall, fake.Garble}[chance(string(p), n, 8)]
		}
	}
	c := start(t, script, pipeline.Brief{Greeting: "welcome to the house"})
	for n := range 3 + rnd.IntN(8) {
		c.pass(time.Duration(rnd.IntN(5000)) * time.Millisecond)
		c.say(strings.TrimSpace(strings.Repeat(fmt.Sprintf("word%d ", n), 1+rnd.IntN(4))))
	}
	c.pass(time.Duration(rnd.IntN(8000)) * time.Millisecond)
	heard := strings.Fields(c.words())
	o := c.hangup()
	if o.Reason == "" {
		t.Error("no reason")
	}
	checkOrder(t, o)
	var said []string
	for _, l := range o.Lines {
		if l.Role == pipeline.RoleAgent {
			said = append(said, strings.Fields(strings.ToLower(l.Text))...)
		}
	}
	// A word may be cut at an interruption, heard as damaged or not at all.
	cuts := 1
	for _, l := range o.Lines {
		if l.Interrupted {
			cuts++
		}
	}
	if d := distance(heard, said); d > 2*cuts {
		t.Errorf("heard %q\nlines %q: %d apart, %d cuts", heard, said, d, cuts)
	}
}

// checkOrder holds turns and lines to their numbers and endings.
func checkOrder(t *testing.T, o pipeline.Outcome) {
	t.Helper()
	for i, turn := range o.Turns {
		if turn.Number != i {
			t.Errorf("turn %d has number %d", i, turn.Number)
		}
		if turn.Ending == "" || turn.Interrupted != (turn.Ending == pipeline.Interrupted) {
			t.Errorf("turn %d ends in %q", i, turn.Ending)
		}
		for _, s := range turn.Spans {
			if s.For < 0 {
				t.Errorf("turn %d: %s is %v", i, s.Phase, s.For)
			}
		}
	}
	last := time.Duration(0)
	for _, l := range o.Lines {
		if l.Text == "" || l.End < l.Start {
			t.Errorf("line %+v", l)
		}
		if l.Role == pipeline.RoleAgent {
			if l.Start < last {
				t.Errorf("two agent lines overlap: %+v", o.Lines)
			}
			last = l.End
		}
	}
}

// distance is how many words must be added, taken away or changed.
func distance(a, b []string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			next := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal = next
		}
	}
	return row[len(b)]
}
