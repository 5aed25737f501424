package turn

import (
	"slices"
	"testing"
	"time"
)

// given is the result that a recognizer's stream sends if the recognizer does not answer in
// time.
func given(at, from, until time.Duration, text string) Event {
	return Event{Kind: Transcript, At: at, From: from, Until: until, Text: text, Final: true, Finalized: true, Unanswered: true}
}

func told(at, from, until time.Duration, text string) Event {
	return Event{Kind: Transcript, At: at, From: from, Until: until, Text: text, Final: true}
}

// TestLate checks that late words count once, in the turn in which they were said.
func TestLate(t *testing.T) {
	for name, c := range map[string]struct {
		events []Event
		want   []string
	}{
		"a word after a dropped turn is answered at once": {
			[]Event{
				voice(1000 * ms), silence(1200 * ms), given(2080*ms, 1380*ms, 1380*ms, ""),
				told(4000*ms, 1000*ms, 1200*ms, "hello there"), end(4100 * ms),
			},
			[]string{"0 finalize silence", "0 drop no_words", "4000 commit hello there"},
		},
		"a late word in pieces is answered once": {
			[]Event{
				voice(1000 * ms), silence(1200 * ms), given(2080*ms, 1380*ms, 1380*ms, ""),
				{Kind: Transcript, At: 3900 * ms, From: 1000 * ms, Until: 1100 * ms, Text: "hello"},
				told(4000*ms, 1000*ms, 1200*ms, "hello there"), end(4100 * ms),
			},
			[]string{"0 finalize silence", "0 drop no_words", "4000 commit hello there"},
		},
		"one apology for speech that takes too long": {
			[]Event{
				voice(1000 * ms), loud(1500*ms, 480*ms), silence(2000 * ms), given(3880*ms, 2180*ms, 2180*ms, ""),
				speech(SpeechStart, 3900*ms, Notice), told(4200*ms, 1000*ms, 2000*ms, "two words"), end(4300 * ms),
			},
			[]string{"0 finalize silence", "0 apologise recognizer_silent"},
		},
		"the next recognizer is asked for words over the agent's speech": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "hi there"), speech(Ready, 2450*ms, ""),
				speech(SpeechStart, 2700*ms, Reply), voice(3500 * ms), silence(3700 * ms),
				{Kind: RecognizerLost, At: 4500 * ms},
				{Kind: RecognizerOpen, At: 4700 * ms},
				{Kind: Transcript, At: 4800 * ms, From: 3500 * ms, Until: 3700 * ms, Text: "One coffee, please."},
				speech(SpeechEnd, 4900*ms, Reply), said(5000*ms, 3500*ms, "One coffee, please."), end(6000 * ms),
			},
			[]string{
				"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 finalize sound_beside", "0 unduck silence",
				"0 finalize recognizer_reopened", "5000 commit One coffee, please.", "0 fill answer_slow",
			},
		},
		"a cough does not hide missing text": {
			[]Event{
				voice(1000 * ms), loud(1500*ms, 480*ms), silence(2000 * ms), voice(2900 * ms), loud(3060*ms, 160*ms), silence(3100 * ms),
				given(3880*ms, 2180*ms, 2180*ms, ""), given(3980*ms, 3280*ms, 3280*ms, ""), end(5200 * ms),
			},
			[]string{"0 finalize silence", "0 finalize silence", "0 reopen recognizer_silent", "0 reopen recognizer_silent", "0 apologise recognizer_silent"},
		},
		"the rest of a sentence joins its beginning": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), given(2880*ms, 1000*ms, 1900*ms, "I want a table."), end(2890 * ms),
				told(2950*ms, 1900*ms, 2000*ms, "for two"), end(3100 * ms),
			},
			[]string{"0 finalize silence", "2880 commit I want a table.", "0 retract words_heard", "2950 commit I want a table. for two"},
		},
		"the rest of a sentence retracts an answer that just began": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), given(2880*ms, 1000*ms, 1900*ms, "I want a table."), end(2890 * ms),
				speech(SpeechStart, 2900*ms, Reply), told(3100*ms, 1900*ms, 2000*ms, "for two"), end(3200 * ms),
			},
			[]string{"0 finalize silence", "2880 commit I want a table.", "0 retract words_heard", "3100 commit I want a table. for two"},
		},
		"the commit waits for growing text": {
			[]Event{
				voice(1000 * ms), loud(1600*ms, 480*ms),
				{Kind: Transcript, At: 1900 * ms, From: 1000 * ms, Until: 1600 * ms, Text: "hello this"},
				silence(2000 * ms), given(2880*ms, 1000*ms, 1600*ms, "hello this"),
				{Kind: Transcript, At: 3200 * ms, From: 1600 * ms, Until: 1800 * ms, Text: "is"},
				told(3500*ms, 1600*ms, 2000*ms, "is me"), end(4500 * ms),
			},
			[]string{"0 finalize silence", "3500 commit hello this is me", "0 fill answer_slow"},
		},
		"long speech stays one turn if the recognizer sends only final text": {
			[]Event{
				{Kind: RecognizerOpen, At: 10 * ms, FinalOnly: true},
				voice(1000 * ms), loud(4500*ms, 3200*ms), silence(8000 * ms),
				final(8400*ms, "all of it"), end(8500 * ms),
			},
			[]string{"0 finalize silence", "8400 commit all of it"},
		},
		"the end of a sound taken for noise sends a finalize": {
			[]Event{
				voice(1000 * ms), given(4600*ms, 4060*ms, 4060*ms, ""), loud(5000*ms, 160*ms), silence(8000 * ms),
				final(8400*ms, "all of it"), end(8500 * ms),
			},
			[]string{"0 finalize no_more_words", "0 drop no_words", "0 finalize silence", "8400 commit all of it"},
		},
		"a late answer does not count for the next finalize": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), partial(2300*ms, "I am here."),
				speech(SpeechStart, 3100*ms, Reply), speech(SpeechEnd, 3500*ms, Reply),
				voice(4000 * ms), silence(4500 * ms), final(4700*ms, ""), said(5000*ms, 4000*ms, "So I am."), end(5400 * ms),
			},
			[]string{"0 finalize silence", "2900 commit I am here.", "0 finalize silence", "5300 commit So I am."},
		},
	} {
		if got := play(New(DefaultPolicy(), false), c.events...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}
