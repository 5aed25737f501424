package conversation_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// TestRandomCalls runs random callers with failing providers. The caller must hear exactly the
// agent's lines of the transcript, in order.
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
	// Providers run concurrently. So that a seed always gives the same call, a fault depends only on the number of
	// the request.
	chance := func(what string, n, of int) int {
		h := fnv.New64a()
		fmt.Fprint(h, what, n)
		return rand.New(rand.NewPCG(seed, h.Sum64())).IntN(of)
	}
	script := fakeprovider.Typical()
	script.FirstToken = time.Duration(rnd.IntN(600)) * time.Millisecond
	script.FirstByte = time.Duration(rnd.IntN(300)) * time.Millisecond
	script.LeadingSilence = time.Duration(rnd.IntN(3)) * 50 * time.Millisecond
	script.Reply = func(m []fakeprovider.Message) string {
		return strings.TrimSpace(strings.Repeat(fmt.Sprintf("answer%d ", len(m)), 1+chance("reply", len(m), 8)))
	}
	if rnd.IntN(2) == 0 {
		script.Fault = func(p fakeprovider.Provider, n int) fakeprovider.Fault {
			return []fakeprovider.Fault{fakeprovider.None, fakeprovider.None, fakeprovider.None, fakeprovider.None, fakeprovider.Refuse, fakeprovider.Drop, fakeprovider.Stall, fakeprovider.Garble}[chance(string(p), n, 8)]
		}
	}
	c := start(t, script, pipeline.SessionConfig{Greeting: "welcome to the house"})
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
	// A word at an interruption may be damaged or missing.
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

// checkOrder checks the numbers and the endings of turns and lines.
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

// distance returns how many words must be added, removed or changed to make two texts equal.
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
