package load

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/result"
)

// TestJudgePacing checks that an even pace meets the targets, and that bunched or slow calls do
// not.
func TestJudgePacing(t *testing.T) {
	o := PacingOptions{Pace: 60, Campaigns: 2, Length: time.Minute}
	even := func(step time.Duration) (all []time.Time) {
		for i := range 200 {
			all = append(all, time.Unix(1000, 0).Add(time.Duration(i)*step))
		}
		return all
	}
	bunched := even(500 * time.Millisecond)
	for i := range 10 {
		bunched[40+i] = bunched[40]
	}
	for name, c := range map[string]struct {
		at            []time.Time
		pace, busiest string
	}{
		"even":    {even(500 * time.Millisecond), result.Met, result.Met},
		"slow":    {even(520 * time.Millisecond), result.Missed, result.Met},
		"bunched": {bunched, result.Met, result.Missed},
	} {
		var f result.File
		o.judge(&f, c.at, time.Second, time.Second)
		for metric, want := range map[string]string{"pace": c.pace, "busiest_second": c.busiest} {
			if m, _ := f.Find(metric, 0); m.Verdict != want {
				t.Errorf("%s: %s is %s %s", name, metric, m.Short(), m.Verdict)
			}
		}
	}
}
