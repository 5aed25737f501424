package scenario

import (
	"reflect"
	"strings"
	"testing"

	"github.com/parley-voice/parley/bench/corpus"
)

func TestPlan(t *testing.T) {
	o := PlanOptions{Pauses: 600, Seed: corpus.HeldOut}
	calls, err := o.Plan()
	if again, _ := o.Plan(); err != nil || !reflect.DeepEqual(calls, again) {
		t.Error("equal seeds gave different plans")
	}
	o.Only = []Name{Plain, "mobile"}
	if _, err := o.Plan(); err == nil || !strings.Contains(err.Error(), `only "mobile": accepted are [pauses plain`) {
		t.Errorf("%v", err)
	}
	pauses, count, ids := map[corpus.Kind]int{}, map[Name]int{}, map[string]bool{}
	for _, c := range calls {
		if ids[c.ID] || len(c.Turns) != len(c.Lines) {
			t.Errorf("call %s: got %d turns, %d lines", c.ID, len(c.Turns), len(c.Lines))
		}
		ids[c.ID] = true
		texts := map[string]bool{}
		for _, m := range c.Turns {
			if m.Text != "" && texts[m.Text] {
				t.Errorf("%q is said twice on %s", m.Text, c.ID)
			}
			texts[m.Text] = true
			count[c.Name]++
			if c.Name == Pauses {
				pauses[m.Parts.Kind()] += len(m.Spans) - 1
			}
		}
	}
	if n := pauses[corpus.MidClause] + pauses[corpus.Complete]; n < 600 || n > 640 || pauses[corpus.MidClause] < 280 || pauses[corpus.Complete] < 280 {
		t.Errorf("%v", pauses)
	}
	for _, n := range []Name{Plain, BargeIn, Backchannel, Cough, Resume, Echo, Hangup} {
		if count[n] < 40 {
			t.Errorf("got %d lines of %s", count[n], n)
		}
	}
}
