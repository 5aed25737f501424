package asr

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/pipeline"
)

const ms = time.Millisecond

func final(text string, from, to time.Duration) heard {
	return heard{Result: pipeline.Result{Text: text, Final: true, Start: from, End: to}}
}

func partial(text string, from, to time.Duration) heard {
	return heard{Result: pipeline.Result{Text: text, Start: from, End: to}}
}

func answer(h heard) heard { h.answer = true; return h }

func TestLedger(t *testing.T) {
	type step struct {
		ask  time.Duration // of sound; 0: none
		take *heard
		late time.Duration // 0: not called
		want []string      // texts; with ! where Finalized
	}
	say := func(h heard) *heard { return &h }
	for name, steps := range map[string][]step{
		"an answer is marked":            {{ask: 900 * ms}, {take: say(answer(final("hi", 0, 800*ms))), want: []string{"hi!"}}},
		"a final result is none":         {{ask: 900 * ms}, {take: say(final("hi", 0, 800*ms)), want: []string{"hi"}}},
		"an answer to nobody is a final": {{take: say(answer(final("hi", 0, 800*ms))), want: []string{"hi"}}},
		"nothing was said":               {{ask: 900 * ms}, {take: say(heard{none: true, upTo: 950 * ms}), want: []string{"!"}}},
		"not yet understood so far":      {{ask: 900 * ms}, {take: say(heard{none: true, upTo: 850 * ms})}},
		"late: what is understood":       {{take: say(partial("hi", 0, 500*ms)), want: []string{"hi"}}, {ask: 900 * ms}, {late: patience, want: []string{"hi!"}}},
		"late, and then it comes": {
			{take: say(partial("hi", 0, 500*ms)), want: []string{"hi"}},
			{ask: 900 * ms},
			{late: patience, want: []string{"hi!"}},
			{take: say(answer(final("hi", 0, 800*ms)))},
		},
		"late without times, and then it comes": {
			{take: say(heard{none: true}), want: nil},
			{ask: 900 * ms},
			{late: patience, want: []string{"!"}},
			{take: say(answer(final("hi", 0, 0)))},
			{ask: 1500 * ms},
			{take: say(answer(final("ho", 0, 0))), want: []string{"ho!"}},
		},
		"two at once": {{ask: 900 * ms}, {ask: 1000 * ms}, {take: say(heard{none: true, upTo: 2 * time.Second}), want: []string{"!", "!"}}},
		"at work":     {{ask: 900 * ms}, {take: say(heard{none: true, working: true})}, {late: patience}, {late: atWork, want: []string{"!"}}},
	} {
		l := ledger{quiet: 1}
		for i, s := range steps {
			var got []pipeline.Result
			var err error
			switch {
			case s.ask > 0:
				l.ask(s.ask, 0)
			case s.take != nil:
				got = l.take(*s.take, 0)
			default:
				got, err = l.late(s.late)
			}
			if err != nil || len(got) != len(s.want) {
				t.Errorf("%s, step %d: %+v, %v, want %q", name, i, got, err, s.want)
				break
			}
			for j, r := range got {
				text := r.Text
				if r.Finalized {
					text += "!"
				}
				if text != s.want[j] || r.Finalized && !r.Final {
					t.Errorf("%s, step %d: %+v, want %q", name, i, r, s.want[j])
				}
			}
		}
	}
}

func TestLedgerGivesUpOnTheSilent(t *testing.T) {
	l := ledger{quiet: 2}
	for _, want := range []error{nil, errSilent} {
		l.ask(time.Second, 0)
		if _, err := l.late(patience); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// TestLedgerAnswersOnce: whatever comes, each Finalize has one answer in the
// end, and no word is told twice.
func TestLedgerAnswersOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l ledger
		asked, answered := 0, 0
		told := map[time.Duration]int{}
		note := func(rs []pipeline.Result) {
			for _, r := range rs {
				if r.Finalized {
					answered++
				}
				for _, w := range r.Words {
					if r.Final {
						told[w.Start]++
					}
				}
			}
		}
		var at, now, from time.Duration
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			at, now = at+300*ms, now+300*ms
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				l.ask(at, now)
				asked++
			case 1:
				h := final("w", from, at)
				h.Words = []pipeline.Word{{Text: "w", Start: at - 200*ms, End: at - 100*ms}}
				h.answer, from = rapid.Bool().Draw(t, "answer"), at
				note(l.take(h, now))
			case 2:
				h := partial("w", from, at)
				h.Words = []pipeline.Word{{Text: "w", Start: at - 200*ms, End: at - 100*ms}}
				note(l.take(h, now))
			case 3:
				note(l.take(heard{none: true, upTo: at}, now))
			default:
				rs, err := l.late(now)
				if err != nil {
					t.Fatal(err)
				}
				note(rs)
			}
		}
		rs, _ := l.late(now + time.Hour)
		note(rs)
		if asked != answered {
			t.Fatalf("%d asked, %d answered", asked, answered)
		}
		for at, n := range told {
			if n > 1 {
				t.Fatalf("the word at %v was told %d times", at, n)
			}
		}
	})
}
