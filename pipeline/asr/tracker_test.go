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

func final(text string, from, to time.Duration) update {
	return update{Result: pipeline.Result{Text: text, Final: true, Start: from, End: to}}
}

func partial(text string, from, to time.Duration) update {
	return update{Result: pipeline.Result{Text: text, Start: from, End: to}}
}

func answer(h update) update { h.answer = true; return h }

func begun(item string) update { return update{empty: true, named: true, item: item} }

func of(item string, h update) update { h.item = item; return h }

// saying returns an interim result with one word every 400 ms.
func saying(text string) update {
	h := update{Result: pipeline.Result{Text: text}}
	for i, w := range strings.Fields(text) {
		at := time.Duration(i) * 400 * ms
		h.Words = append(h.Words, pipeline.Word{Text: w, Start: at, End: at + 300*ms})
		h.End = at + 300*ms
	}
	return h
}

func spoken(text string) update { h := saying(text); h.Final = true; return h }

func TestLedger(t *testing.T) {
	type step struct {
		ask  time.Duration // audio position of the request; 0 for none
		take *update
		late time.Duration // time of the call of onTimeout; 0 for none
		want []string      // texts of the results; a ! marks a Finalized result
	}
	say := func(h update) *update { return &h }
	for name, steps := range map[string][]step{
		"an answer is marked":            {{ask: 900 * ms}, {take: say(answer(final("hi", 0, 800*ms))), want: []string{"hi!"}}},
		"a final is no answer":           {{ask: 900 * ms}, {take: say(final("hi", 0, 800*ms)), want: []string{"hi"}}},
		"an answer without a request":    {{take: say(answer(final("hi", 0, 800*ms))), want: []string{"hi"}}},
		"nothing was said":               {{ask: 900 * ms}, {take: say(update{empty: true, upTo: 950 * ms}), want: []string{"!"}}},
		"an alive message has no effect": {{ask: 900 * ms}, {take: say(update{alive: true})}, {late: answerTimeout, want: []string{"!"}}},
		"text before its Finalize":       {{take: say(of("x", partial("hi", 0, 0))), want: []string{"hi"}}, {ask: 900 * ms}, {take: say(begun("x"))}, {take: say(of("x", answer(final("hi", 0, 0)))), want: []string{"hi!"}}},
		"no text before the request":     {{ask: 900 * ms}, {take: say(update{empty: true, upTo: 850 * ms})}},
		"late: the interim text":         {{take: say(partial("hi", 0, 500*ms)), want: []string{"hi"}}, {ask: 900 * ms}, {late: answerTimeout, want: []string{"hi!"}}},
		"late, then the answer": {
			{take: say(partial("hi", 0, 500*ms)), want: []string{"hi"}},
			{ask: 900 * ms},
			{late: answerTimeout, want: []string{"hi!"}},
			{take: say(answer(final("hi", 0, 800*ms)))},
		},
		"late, then the answer without times": {
			{take: say(update{empty: true}), want: nil},
			{ask: 900 * ms},
			{late: answerTimeout, want: []string{"!"}},
			{take: say(answer(final("hi", 0, 0))), want: []string{"hi"}},
			{ask: 1500 * ms},
			{take: say(answer(final("ho", 0, 0))), want: []string{"ho!"}},
		},
		"late, with some words, then with all": {
			{take: say(saying("yes")), want: []string{"yes"}},
			{ask: 900 * ms},
			{late: answerTimeout, want: []string{"yes!"}},
			{take: say(answer(spoken("yes please"))), want: []string{"please"}},
		},
		"a request in the middle of a word": {
			{ask: 1000 * ms},
			{take: say(answer(update{Result: pipeline.Result{Text: "yes", Final: true, End: 1000 * ms, Words: []pipeline.Word{{Text: "yes", End: 300 * ms}}}})), want: []string{"yes!"}},
			{ask: 2000 * ms},
			{take: say(answer(update{Result: pipeline.Result{Text: "please", Final: true, Start: 960 * ms, End: 1200 * ms, Words: []pipeline.Word{{Text: "please", Start: 960 * ms, End: 1200 * ms}}}})), want: []string{"please!"}},
		},
		"late, with some words, without times": {
			{ask: 900 * ms},
			{take: say(begun("a"))},
			{take: say(of("a", update{Result: pipeline.Result{Text: "i want to cancel"}})), want: []string{"i want to cancel"}},
			{late: slowTimeout, want: []string{"i want to cancel!"}},
			{take: say(of("a", update{Result: pipeline.Result{Text: "I want to cancel the second"}}))},
			{take: say(of("a", answer(final("I want to cancel the second order.", 0, 0)))), want: []string{"the second order."}},
		},
		"an answer that never comes": {
			{ask: 900 * ms},
			{take: say(begun("a"))},
			{late: slowTimeout, want: []string{"!"}},
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
			{late: slowTimeout, want: []string{"!", "second!"}},
			{take: say(of("a", answer(final("first", 0, 0)))), want: []string{"first"}},
		},
		"late, after the next request": {
			{take: say(update{empty: true})},
			{ask: 900 * ms},
			{late: answerTimeout, want: []string{"!"}},
			{ask: 3000 * ms},
			{take: say(answer(final("", 0, 850*ms)))},
			{take: say(answer(final("", 850*ms, 3000*ms))), want: []string{"!"}},
		},
		"two at once": {{ask: 900 * ms}, {ask: 1000 * ms}, {take: say(update{empty: true, upTo: 2 * time.Second}), want: []string{"!", "!"}}},
		"named":       {{ask: 900 * ms}, {take: say(update{empty: true, named: true})}, {late: answerTimeout}, {late: slowTimeout, want: []string{"!"}}},
	} {
		l := tracker{maxSilent: 1}
		for i, s := range steps {
			var got []pipeline.Result
			var err error
			switch {
			case s.ask > 0:
				l.addRequest(s.ask, 0)
			case s.take != nil:
				got = l.onUpdate(*s.take)
			default:
				got, err = l.onTimeout(s.late)
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
	l := tracker{maxSilent: 2}
	for _, want := range []error{nil, errSilent} {
		l.addRequest(time.Second, 0)
		if _, err := l.onTimeout(answerTimeout); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// TestTrackerAnswersOnce checks that each Finalize gets one answer and no word is
// delivered twice, for any input.
func TestTrackerAnswersOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l tracker
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
				l.addRequest(at, now)
				asked++
			case 1:
				h := final("w", from, at)
				h.Words = []pipeline.Word{{Text: "w", Start: at - 200*ms, End: at - 100*ms}}
				h.answer, from = rapid.Bool().Draw(t, "answer"), at
				note(l.onUpdate(h))
			case 2:
				h := partial("w", from, at)
				h.Words = []pipeline.Word{{Text: "w", Start: at - 200*ms, End: at - 100*ms}}
				note(l.onUpdate(h))
			case 3:
				note(l.onUpdate(update{empty: true, upTo: at}))
			default:
				rs, err := l.onTimeout(now)
				if err != nil {
					t.Fatal(err)
				}
				note(rs)
			}
		}
		rs, _ := l.onTimeout(now + time.Hour)
		note(rs)
		if asked != answered {
			t.Fatalf("got %d requests, %d answers", asked, answered)
		}
		for at, n := range told {
			if n > 1 {
				t.Fatalf("word at %v delivered %d times, want 1", at, n)
			}
		}
	})
}

// TestTrackerLosesNothing simulates providers that answer late, never or out of order.
// Each final word is delivered once and each Finalize answered once.
func TestTrackerLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.Bool().Draw(t, "names")
		interims := rapid.Bool().Draw(t, "interims")
		lag := func() time.Duration { return time.Duration(rapid.IntRange(0, 4000).Draw(t, "lag")) * ms }
		type message struct {
			at time.Duration
			h  update
		}
		var all []message
		var asks []time.Duration
		var spoken []string
		slow, now, from := lag(), time.Duration(0), time.Duration(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "sentences") {
			h := update{answer: true, Result: pipeline.Result{Final: true, Start: now}}
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
				all = append(all, message{now, update{empty: true, named: true, item: h.item}})
				slow = lag()
			}
			if h.Text == "" || !names || rapid.IntRange(0, 4).Draw(t, "comes") > 0 {
				all = append(all, message{now + slow, h})
				spoken = append(spoken, strings.Fields(h.Text)...)
			}
			now += time.Duration(rapid.IntRange(0, 4000).Draw(t, "pause")) * ms
		}
		slices.SortStableFunc(all, func(a, b message) int { return int(a.at - b.at) })
		var l tracker
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
				l.addRequest(asks[0], asks[0])
				asks = asks[1:]
			}
			for ; len(all) > 0 && all[0].at <= at; all = all[1:] {
				note(l.onUpdate(all[0].h))
			}
			if due, ok := l.nextTimeout(); ok && due <= at {
				rs, _ := l.onTimeout(at)
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
