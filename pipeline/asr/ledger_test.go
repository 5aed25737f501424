package asr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

func begun(item string) heard { return heard{none: true, begun: true, item: item} }

func of(item string, h heard) heard { h.item = item; return h }

// saying is a partial result of text, of which a word is said every 400 ms.
func saying(text string) heard {
	h := heard{Result: pipeline.Result{Text: text}}
	for i, w := range strings.Fields(text) {
		at := time.Duration(i) * 400 * ms
		h.Words = append(h.Words, pipeline.Word{Text: w, Start: at, End: at + 300*ms})
		h.End = at + 300*ms
	}
	return h
}

func spoken(text string) heard { h := saying(text); h.Final = true; return h }

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
			{take: say(answer(final("hi", 0, 0))), want: []string{"hi"}},
			{ask: 1500 * ms},
			{take: say(answer(final("ho", 0, 0))), want: []string{"ho!"}},
		},
		"late with some of the words, and then with all": {
			{take: say(saying("yes")), want: []string{"yes"}},
			{ask: 900 * ms},
			{late: patience, want: []string{"yes!"}},
			{take: say(answer(spoken("yes please"))), want: []string{"please"}},
		},
		"a word that a question falls into": {
			{ask: 1000 * ms},
			{take: say(answer(heard{Result: pipeline.Result{Text: "yes", Final: true, End: 1000 * ms, Words: []pipeline.Word{{Text: "yes", End: 300 * ms}}}})), want: []string{"yes!"}},
			{ask: 2000 * ms},
			{take: say(answer(heard{Result: pipeline.Result{Text: "please", Final: true, Start: 960 * ms, End: 1200 * ms, Words: []pipeline.Word{{Text: "please", Start: 960 * ms, End: 1200 * ms}}}})), want: []string{"please!"}},
		},
		"late with some of the words, without times": {
			{ask: 900 * ms},
			{take: say(begun("a"))},
			{take: say(of("a", heard{Result: pipeline.Result{Text: "i want to cancel"}})), want: []string{"i want to cancel"}},
			{late: atWork, want: []string{"i want to cancel!"}},
			{take: say(of("a", heard{Result: pipeline.Result{Text: "I want to cancel the second"}}))},
			{take: say(of("a", answer(final("I want to cancel the second order.", 0, 0)))), want: []string{"the second order."}},
		},
		"what never comes is not the next": {
			{ask: 900 * ms},
			{take: say(begun("a"))},
			{late: atWork, want: []string{"!"}},
			{ask: 1900 * ms},
			{take: say(begun("b"))},
			{take: say(of("b", answer(final("hi", 0, 0)))), want: []string{"hi!"}},
			{ask: 2900 * ms},
			{take: say(begun("c"))},
			{take: say(of("c", answer(final("ho", 0, 0)))), want: []string{"ho!"}},
		},
		"in another order": {
			{ask: 900 * ms},
			{take: say(begun("a"))},
			{ask: 1900 * ms},
			{take: say(begun("b"))},
			{take: say(of("b", answer(final("second", 0, 0))))},
			{take: say(of("a", answer(final("first", 0, 0)))), want: []string{"first!", "second!"}},
		},
		"in another order, and the first comes late": {
			{ask: 900 * ms},
			{take: say(begun("a"))},
			{ask: 1900 * ms},
			{take: say(begun("b"))},
			{take: say(of("b", answer(final("second", 0, 0))))},
			{late: atWork, want: []string{"!", "second!"}},
			{take: say(of("a", answer(final("first", 0, 0)))), want: []string{"first"}},
		},
		"late beside the next question": {
			{take: say(heard{none: true})},
			{ask: 900 * ms},
			{late: patience, want: []string{"!"}},
			{ask: 3000 * ms},
			{take: say(answer(final("", 0, 850*ms)))},
			{take: say(answer(final("", 850*ms, 3000*ms))), want: []string{"!"}},
		},
		"two at once": {{ask: 900 * ms}, {ask: 1000 * ms}, {take: say(heard{none: true, upTo: 2 * time.Second}), want: []string{"!", "!"}}},
		"at work":     {{ask: 900 * ms}, {take: say(heard{none: true, begun: true})}, {late: patience}, {late: atWork, want: []string{"!"}}},
	} {
		l := ledger{quiet: 1}
		for i, s := range steps {
			var got []pipeline.Result
			var err error
			switch {
			case s.ask > 0:
				l.ask(s.ask, 0)
			case s.take != nil:
				got = l.take(*s.take)
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
				note(l.take(h))
			case 2:
				h := partial("w", from, at)
				h.Words = []pipeline.Word{{Text: "w", Start: at - 200*ms, End: at - 100*ms}}
				note(l.take(h))
			case 3:
				note(l.take(heard{none: true, upTo: at}))
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

// TestLedgerLosesNothing plays a provider that answers each Finalize late, or
// never, and one that names what it answers in any order. Each word that it
// tells as final is told once, and each Finalize is answered once.
func TestLedgerLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.Bool().Draw(t, "names")
		interims := rapid.Bool().Draw(t, "interims")
		lag := func() time.Duration { return time.Duration(rapid.IntRange(0, 4000).Draw(t, "lag")) * ms }
		type message struct {
			at time.Duration
			h  heard
		}
		var all []message
		var asks []time.Duration
		var spoken []string
		slow, now, from := lag(), time.Duration(0), time.Duration(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "sentences") {
			h := heard{answer: true, Result: pipeline.Result{Final: true, Start: now}}
			for j := range rapid.IntRange(0, 5).Draw(t, "words") {
				w := pipeline.Word{Text: fmt.Sprintf("w%d.%d", i, j), Start: now, End: now + 200*ms}
				now += 300 * ms
				h.Words, h.Text, h.End = append(h.Words, w), strings.TrimSpace(h.Text+" "+w.Text), w.End
				if interims && !names {
					p := h
					p.Final, p.answer, p.Words = false, false, slices.Clone(h.Words)
					all = append(all, message{now + slow, p})
				}
			}
			now += 200 * ms
			asks = append(asks, now)
			if h.End = max(h.End, from); h.End == 0 {
				h.End = now
			}
			from = h.End
			if names {
				h.item, h.Words, h.Start, h.End = fmt.Sprint(i), nil, 0, 0
				all = append(all, message{now, heard{none: true, begun: true, item: h.item}})
				slow = lag()
			}
			if h.Text == "" || !names || rapid.IntRange(0, 4).Draw(t, "comes") > 0 {
				all = append(all, message{now + slow, h})
				spoken = append(spoken, strings.Fields(h.Text)...)
			}
			now += time.Duration(rapid.IntRange(0, 4000).Draw(t, "pause")) * ms
		}
		slices.SortStableFunc(all, func(a, b message) int { return int(a.at - b.at) })
		var l ledger
		var told []string
		answers, asked := 0, len(asks)
		note := func(rs []pipeline.Result) {
			for _, r := range rs {
				if r.Finalized {
					answers++
				}
				if r.Final {
					told = append(told, strings.Fields(r.Text)...)
				}
			}
		}
		for at := time.Duration(0); at < now+time.Minute; at += 10 * ms {
			if len(asks) > 0 && asks[0] <= at {
				l.ask(asks[0], asks[0])
				asks = asks[1:]
			}
			for ; len(all) > 0 && all[0].at <= at; all = all[1:] {
				note(l.take(all[0].h))
			}
			if due, ok := l.due(); ok && due <= at {
				rs, _ := l.late(at)
				note(rs)
			}
		}
		slices.Sort(told)
		slices.Sort(spoken)
		if !slices.Equal(told, spoken) || answers != asked {
			t.Fatalf("told %q of %q, %d answers to %d", told, spoken, answers, asked)
		}
	})
}
