package turn

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline/eot"
)

const ms = time.Millisecond

// play steps a machine through events and returns its actions as "time do reason text", without
// timers and releases. Timers that become due between events fire.
func play(m *Machine, events ...Event) []string {
	return slices.DeleteFunc(playAll(m, events...), func(s string) bool { return s == "0 release" })
}

func playAll(m *Machine, events ...Event) []string {
	var did []string
	timer := time.Duration(0)
	do := func(acts []Action) {
		for _, a := range acts {
			if a.Do == SetTimer {
				timer = a.At
				continue
			}
			if a.Do == Speculate {
				continue
			}
			if a.Do == Commit {
				a.Reason = "" // not part of the comparison
			}
			did = append(did, strings.Join(strings.Fields(fmt.Sprintf("%d %s %s %s", a.At/ms, a.Do, a.Reason, a.Text)), " "))
		}
	}
	do(m.Start())
	for _, e := range events {
		for timer > 0 && timer <= e.At {
			at := timer
			timer = 0
			do(m.Step(Event{Kind: Timer, At: at}))
		}
		do(m.Step(e))
	}
	return did
}

func voice(at time.Duration) Event   { return Event{Kind: Voice, At: at + 60*ms, From: at} }
func loud(at, d time.Duration) Event { return Event{Kind: VoiceLength, At: at, Length: d} }
func silence(at time.Duration) Event { return Event{Kind: Silence, At: at + 180*ms, From: at} }

func final(at time.Duration, text string) Event {
	return Event{Kind: Transcript, At: at, Text: text, Final: true, Finalized: true}
}

func said(at, from time.Duration, text string) Event {
	return Event{Kind: Transcript, At: at, From: from, Text: text, Final: true, Finalized: true}
}

func partial(at time.Duration, text string) Event { return Event{Kind: Transcript, At: at, Text: text} }

func speech(kind Kind, at time.Duration, what string) Event {
	return Event{Kind: kind, At: at, Text: what}
}

func end(at time.Duration) Event { return Event{Kind: RecognizerLost, At: at} } // has no effect except that due timers fire

func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		events []Event
		want   []string
	}{
		"a plain turn ends after the endpointing wait": {
			[]Event{voice(1000 * ms), silence(2000 * ms), final(2300*ms, "i am here"), end(2500 * ms)},
			[]string{"0 finalize silence", "2400 commit i am here"},
		},
		"a finished sentence is answered sooner": {
			[]Event{voice(1000 * ms), silence(2000 * ms), final(2190*ms, "I am here."), end(2500 * ms)},
			[]string{"0 finalize silence", "2220 commit I am here."},
		},
		"an open sentence gets a longer wait": {
			[]Event{voice(1000 * ms), silence(2000 * ms), final(2190*ms, "i came because"), end(4500 * ms)},
			[]string{"0 finalize silence", "4400 commit i came because"},
		},
		"a late final commits at once": {
			[]Event{voice(1000 * ms), silence(2000 * ms), final(2900*ms, "i am here")},
			[]string{"0 finalize silence", "2900 commit i am here"},
		},
		"no final, but words: the partial text is answered": {
			[]Event{voice(1000 * ms), partial(1900*ms, "i am here"), silence(2000 * ms), end(4100 * ms)},
			[]string{"0 finalize silence", "2900 commit i am here"},
		},
		"no final and no words": {
			[]Event{voice(1000 * ms), silence(2000 * ms), end(4100 * ms)},
			[]string{"0 finalize silence", "0 apologise recognizer_silent"},
		},
		"a cough is no turn": {
			[]Event{voice(1000 * ms), silence(1200 * ms), final(1500*ms, "")},
			[]string{"0 finalize silence", "0 drop no_words"},
		},
		"a pause inside a sentence": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "i came back"), voice(2250 * ms), silence(3000 * ms),
				final(3190*ms, "by train"), end(3500 * ms),
			},
			[]string{"0 finalize silence", "0 finalize silence", "3400 commit i came back by train"},
		},
		"the caller continues while the answer is prepared": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "i came back"), voice(2500 * ms), silence(3000 * ms),
				final(3190*ms, "by train"), end(3500 * ms),
			},
			[]string{
				"0 finalize silence", "2400 commit i came back", "0 finalize sound_beside", "0 retract words_heard", "3400 commit i came back by train",
			},
		},
		"the caller speaks into the answer": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(4000 * ms), loud(4160*ms, 160*ms), partial(4400*ms, "stop that"),
			},
			[]string{"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 pause caller_speaks", "0 yield words_heard"},
		},
		"a listener's word does not stop the agent": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(4000 * ms), loud(4160*ms, 160*ms), silence(4200 * ms), final(4530*ms, "Okay."),
				end(9000 * ms),
			},
			[]string{
				"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 pause caller_speaks", "0 finalize sound_beside",
				"4530 note backchannel Okay.", "0 resume backchannel",
			},
		},
		"a cough pauses the agent for a moment": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(4000 * ms), loud(4160*ms, 160*ms), silence(4200 * ms), end(4950 * ms),
			},
			[]string{
				"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 pause caller_speaks", "0 finalize sound_beside", "0 resume no_words",
			},
		},
		"the agent's own words come back": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(4000 * ms), loud(4160*ms, 160*ms),
				{Kind: Transcript, At: 4300 * ms, Text: "open until", AgentText: "we are open until nine"},
				silence(4500 * ms), final(4800*ms, "open until"),
			},
			[]string{
				"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 pause caller_speaks", "0 finalize sound_beside", "0 resume echo",
			},
		},
		"the caller continues just after the answer began": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "i came home"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(2900 * ms), partial(3300*ms, "by train"), silence(3600 * ms), final(3900*ms, "by train"), end(4300 * ms),
			},
			[]string{
				"0 finalize silence", "2400 commit i came home", "0 duck sound", "0 pause answer_just_began", "0 retract caller_resumed",
				"0 finalize silence", "4260 commit i came home by train",
			},
		},
		"keys are answered once no more come": {
			[]Event{{Kind: Key, At: 1000 * ms, Text: "4"}, {Kind: Key, At: 1500 * ms, Text: "2"}, end(3100 * ms)},
			[]string{"3000 commit"},
		},
		"a hash ends the keys": {
			[]Event{{Kind: Key, At: 1000 * ms, Text: "4"}, {Kind: Key, At: 1500 * ms, Text: "#"}},
			[]string{"1500 commit"},
		},
		"typed words are answered at once": {
			[]Event{{Kind: Typed, At: 1000 * ms, Text: "when do you"}},
			[]string{"1000 commit when do you"},
		},
		"words typed during an answer end it": {
			[]Event{
				{Kind: Typed, At: 1000 * ms, Text: "hello"}, speech(SpeechStart, 1500*ms, Reply), {Kind: Typed, At: 4000 * ms, Text: "stop"},
			},
			[]string{"1000 commit hello", "0 yield words_typed", "4000 commit stop"},
		},
		"words typed before the answer join the words before": {
			[]Event{{Kind: Typed, At: 1000 * ms, Text: "hello"}, {Kind: Typed, At: 1200 * ms, Text: "are you open"}},
			[]string{"1000 commit hello", "0 retract words_typed", "1200 commit hello are you open"},
		},
		"typed words beyond the limit of a turn are dropped": {
			[]Event{
				{Kind: Typed, At: 1000 * ms, Text: "hello"}, {Kind: Typed, At: 1100 * ms, Text: strings.Repeat("x", maxTyped)}, end(1200 * ms),
			},
			[]string{"1000 commit hello"},
		},
		"words typed during speech are answered with it": {
			[]Event{
				voice(1000 * ms), {Kind: Typed, At: 1500 * ms, Text: "42"}, silence(2000 * ms), final(2190*ms, "order number"), end(2400 * ms),
			},
			[]string{"0 finalize silence", "2190 commit order number 42"},
		},
		"a short sound does not stop the agent": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(4000 * ms),
				{Kind: Silence, At: 4100 * ms, From: 4090 * ms},
				end(4400 * ms), speech(SpeechEnd, 4500*ms, Reply),
			},
			[]string{"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 finalize sound_beside", "0 unduck silence"},
		},
		"a filler and then an apology cover a slow answer": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "hi there"), end(4300 * ms),
				speech(SpeechStart, 4320*ms, Filler), speech(SpeechEnd, 5000*ms, Filler), end(8000 * ms),
			},
			[]string{"0 finalize silence", "2400 commit hi there", "0 fill answer_slow", "0 apologise answer_too_slow"},
		},
		"an apology covers a failed answer": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "hi there"), end(2400 * ms),
				{Kind: ReplyFailed, At: 2450 * ms},
				speech(SpeechStart, 2500*ms, Notice), speech(SpeechEnd, 4000*ms, Notice),
			},
			[]string{"0 finalize silence", "2400 commit hi there", "0 apologise reply_failed"},
		},
		"a final that comes after its answer changes nothing": {
			[]Event{
				voice(1000 * ms),
				{Kind: Transcript, At: 1500 * ms, From: 1000 * ms, Text: "i came home"},
				silence(2000 * ms), end(2950 * ms),
				speech(SpeechStart, 3200*ms, Reply), said(3300*ms, 1000*ms, "I came home please."), end(3400 * ms), speech(SpeechEnd, 4000*ms, Reply),
			},
			[]string{"0 finalize silence", "2900 commit i came home"},
		},
		"the turn waits for the answers to both Finalizes": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), voice(2220 * ms), silence(2460 * ms),
				said(2780*ms, 1000*ms, "a pizza"), end(2850 * ms), said(3240*ms, 2220*ms, "no cheese"),
			},
			[]string{"0 finalize silence", "0 finalize silence", "3240 commit a pizza no cheese"},
		},
		"words that come while the answer is prepared join the turn": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "a pizza"), end(2400 * ms),
				said(2500*ms, 2100*ms, "no cheese"), end(2800 * ms),
			},
			[]string{"0 finalize silence", "2400 commit a pizza", "0 retract words_heard", "2680 commit a pizza no cheese"},
		},
		"a cough into the answer does not stop it": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(20000 * ms), end(20200 * ms), silence(20060 * ms), speech(SpeechEnd, 21000*ms, Reply), end(22000 * ms),
			},
			[]string{"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 finalize sound_beside", "0 unduck silence"},
		},
		"noise without words does not keep the agent silent": {
			[]Event{
				voice(1000 * ms), end(4100 * ms), final(4300*ms, ""), end(10100 * ms),
				speech(SpeechStart, 10200*ms, Notice), loud(10300*ms, 9*time.Second), speech(SpeechEnd, 11000*ms, Notice),
			},
			[]string{"0 finalize no_more_words", "0 drop no_words", "0 nudge idle"},
		},
		"words that the energy gate misses are answered": {
			[]Event{
				{Kind: Transcript, At: 2000 * ms, From: 1500 * ms, Text: "hello"},
				{Kind: Transcript, At: 2300 * ms, From: 1500 * ms, Text: "hello there"},
				end(3400 * ms), said(3500*ms, 1500*ms, "hello there"),
			},
			[]string{"0 finalize no_more_words", "3500 commit hello there"},
		},
		"the next recognizer gets the Finalize that the failed one did not answer": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms),
				{Kind: RecognizerLost, At: 2250 * ms},
				{Kind: RecognizerOpen, At: 2600 * ms},
				said(2900*ms, 1000*ms, "hi there"),
			},
			[]string{"0 finalize silence", "0 finalize recognizer_reopened", "2900 commit hi there"},
		},
		"a reopened recognizer can finish its text": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms),
				{Kind: RecognizerLost, At: 2500 * ms},
				{Kind: RecognizerOpen, At: 2900 * ms},
				{Kind: Transcript, At: 3100 * ms, From: 1000 * ms, Until: 1200 * ms, Text: "i came home"},
				{Kind: Transcript, At: 3120 * ms, From: 1000 * ms, Until: 1980 * ms, Text: "i came home by train"},
				said(3300*ms, 1000*ms, "i came home by train"),
			},
			[]string{"0 finalize silence", "0 finalize recognizer_reopened", "3300 commit i came home by train"},
		},
		"late words are answered when they come": {
			[]Event{
				voice(1000 * ms),
				{Kind: Transcript, At: 1500 * ms, From: 1000 * ms, Until: 1300 * ms, Text: "i came home"},
				silence(2000 * ms), end(3000 * ms),
				{Kind: Transcript, At: 3100 * ms, From: 1400 * ms, Until: 2000 * ms, Text: "by train", Final: true, Finalized: true},
				end(3400 * ms),
			},
			[]string{"0 finalize silence", "2900 commit i came home", "0 retract words_heard", "3100 commit i came home by train"},
		},
		"the turn waits for the text of a second stretch of speech": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), voice(2500 * ms),
				{Kind: Transcript, At: 2600 * ms, From: 1000 * ms, Until: 2000 * ms, Text: "i came home", Final: true, Finalized: true},
				silence(3500 * ms), end(4600 * ms),
				{Kind: Transcript, At: 5000 * ms, From: 2500 * ms, Until: 3500 * ms, Text: "by train", Final: true, Finalized: true},
			},
			[]string{"0 finalize silence", "0 finalize silence", "5000 commit i came home by train"},
		},
		"a fully heard answer is not retracted": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "i came home"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(2900 * ms),
				{Kind: Transcript, At: 3300 * ms, From: 2900 * ms, Text: "i am tired", AgentText: "sure", Words: 1, AllHeard: true},
				silence(3600 * ms), said(3900*ms, 2900*ms, "i am tired"), end(4300 * ms),
			},
			[]string{
				"0 finalize silence", "2400 commit i came home", "0 duck sound", "0 pause answer_just_began", "0 yield words_heard",
				"0 finalize silence", "4260 commit i am tired",
			},
		},
		"the agent apologizes for a second stretch without a transcript": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), voice(2500 * ms),
				{Kind: Transcript, At: 2600 * ms, From: 1000 * ms, Until: 2000 * ms, Text: "i came home", Final: true, Finalized: true},
				silence(3500 * ms), end(5600 * ms),
			},
			[]string{"0 finalize silence", "0 finalize silence", "0 apologise recognizer_silent"},
		},
		"speech without a transcript goes to another recognizer": {
			[]Event{
				voice(1000 * ms), loud(1600*ms, 480*ms), silence(2000 * ms),
				{Kind: Transcript, At: 2900 * ms, Final: true, Finalized: true, Unanswered: true},
				{Kind: RecognizerLost, At: 2900 * ms},
				{Kind: RecognizerOpen, At: 3200 * ms},
				said(3400*ms, 1000*ms, "i came home by train"), end(3500 * ms),
			},
			[]string{"0 finalize silence", "0 reopen recognizer_silent", "0 finalize recognizer_reopened", "3400 commit i came home by train"},
		},
		"the text of a silent recognizer is kept, and another receives the rest": {
			[]Event{
				voice(1000 * ms), loud(1600*ms, 480*ms), silence(2000 * ms),
				{Kind: Transcript, At: 2300 * ms, From: 1000 * ms, Until: 1300 * ms, Text: "i came home"},
				{Kind: Transcript, At: 2880 * ms, From: 1000 * ms, Text: "i came home", Final: true, Finalized: true, Unanswered: true},
				{Kind: RecognizerLost, At: 2900 * ms},
				{Kind: RecognizerOpen, At: 3200 * ms},
				said(3400*ms, 1400*ms, "by train"), end(3500 * ms),
			},
			[]string{"0 finalize silence", "0 reopen recognizer_silent", "0 finalize recognizer_reopened", "3400 commit i came home by train"},
		},
		"a cough without any result is dropped": {
			[]Event{voice(1000 * ms), loud(1160*ms, 160*ms), silence(1200 * ms), {Kind: Transcript, At: 1900 * ms, Final: true, Finalized: true, Unanswered: true}},
			[]string{"0 finalize silence", "0 drop no_words"},
		},
		"both sides are silent": {
			[]Event{
				end(10100 * ms), speech(SpeechStart, 10200*ms, Notice), speech(SpeechEnd, 11000*ms, Notice),
				end(21100 * ms), speech(SpeechStart, 21200*ms, Notice), speech(SpeechEnd, 22000*ms, Notice), end(32100 * ms),
			},
			[]string{"0 nudge idle", "0 nudge idle", "0 leave inactivity"},
		},
		"words over a noise that does not end are answered": {
			[]Event{voice(1000 * ms), partial(2000*ms, "i want a table"), end(4000 * ms), final(5200*ms, "i want a table"), end(20000 * ms)},
			[]string{"0 finalize no_more_words", "5200 commit i want a table", "0 fill answer_slow", "0 apologise answer_too_slow", "0 apologise answer_too_slow"},
		},
		"a key during a noise that does not end is answered": {
			[]Event{voice(1000 * ms), end(4100 * ms), final(4300*ms, ""), {Kind: Key, At: 5000 * ms, Text: "1"}, end(9000 * ms)},
			[]string{"0 finalize no_more_words", "0 drop no_words", "6500 commit", "0 fill answer_slow"},
		},
		"the volume is restored at the end of the speech": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply),
				{Kind: SoundStart, At: 4000 * ms},
				speech(SpeechEnd, 4040*ms, Reply),
			},
			[]string{"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 unduck said"},
		},
		"a choice is answered with its own word": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply),
				{Kind: SpeechEnd, At: 4000 * ms, Text: Reply, AgentText: "do you want tea or coffee?"},
				voice(4250 * ms), silence(4600 * ms), said(4900*ms, 4250*ms, "coffee"), end(9000 * ms),
			},
			[]string{"0 finalize silence", "2400 commit hi there", "0 finalize silence", "4900 commit coffee", "0 fill answer_slow"},
		},
		"a backchannel that begins a sentence stops the agent": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(4000 * ms),
				{Kind: Transcript, At: 4150 * ms, From: 4000 * ms, Text: "okay"},
				loud(4220*ms, 160*ms), silence(4900 * ms), said(5200*ms, 4000*ms, "okay stop please"),
			},
			[]string{
				"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 pause caller_speaks", "0 finalize sound_beside", "0 yield words_heard",
				"5200 commit okay stop please",
			},
		},
		"a long stretch without partial results gets a Finalize at its end": {
			[]Event{
				voice(1000 * ms), loud(2500*ms, 1440*ms), loud(4000*ms, 2880*ms), final(4700*ms, "i would like a table"),
				loud(4900*ms, 3680*ms), silence(6000 * ms), final(6500*ms, "for two"), end(9000 * ms),
			},
			[]string{"0 finalize no_more_words", "0 finalize silence", "6500 commit i would like a table for two", "0 fill answer_slow"},
		},
		"the turn waits for text that still grows after a Finalize": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms),
				{Kind: Transcript, At: 2600 * ms, From: 100 * ms, Text: "i want to"},
				{Kind: Transcript, At: 2850 * ms, From: 100 * ms, Text: "i want to book a table"},
				said(3000*ms, 100*ms, "i want to book a table for two tomorrow"), end(3500 * ms),
			},
			[]string{"0 finalize silence", "3000 commit i want to book a table for two tomorrow"},
		},
		"an apology is not said over the caller": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "a pizza"), end(2400 * ms),
				voice(2600 * ms),
				{Kind: ReplyFailed, At: 2700 * ms},
				partial(2900*ms, "no cheese"),
			},
			[]string{"0 finalize silence", "2400 commit a pizza", "0 retract reply_failed"},
		},
		"a voice that began before the first sound merges": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), final(2190*ms, "i came home"), end(2400 * ms),
				{Kind: Ready, At: 2500 * ms},
				{Kind: Voice, At: 2510 * ms, From: 2450 * ms},
				speech(SpeechStart, 2520*ms, Reply), loud(2670*ms, 160*ms),
				partial(2900*ms, "by train"), silence(3000 * ms), final(3300*ms, "by train"), end(5000 * ms),
			},
			[]string{
				"0 finalize silence", "2400 commit i came home", "0 duck sound", "0 pause answer_just_began", "0 retract caller_resumed", "0 finalize silence",
				"3562 commit i came home by train",
			},
		},
		"a filler comes sooner if the answer was begun before a late commit": {
			[]Event{voice(1000 * ms), silence(2000 * ms), final(2190*ms, "i came because"), end(5000 * ms)},
			[]string{"0 finalize silence", "4400 commit i came because", "0 fill answer_slow"},
		},
		"a recognizer that failed over the agent's speech does not slow the next turn": {
			[]Event{
				voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "hi there"), end(2400 * ms),
				speech(SpeechStart, 2700*ms, Reply), voice(4000 * ms),
				{Kind: Silence, At: 4300 * ms, From: 4100 * ms},
				{Kind: RecognizerLost, At: 4350 * ms},
				{Kind: RecognizerOpen, At: 4700 * ms},
				final(4900*ms, ""), speech(SpeechEnd, 5000*ms, Reply),
				voice(8000 * ms), silence(9000 * ms), said(9190*ms, 8000*ms, "i am here"), end(11000 * ms),
			},
			[]string{
				"0 finalize silence", "2400 commit hi there", "0 duck sound", "0 finalize sound_beside", "0 unduck silence",
				"0 finalize recognizer_reopened", "0 finalize silence", "9400 commit i am here",
			},
		},
	} {
		if got := play(New(DefaultPolicy(), false), c.events...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

// TestPatience checks that a caller who was cut off gets pauses as long as their own, at most
// 660 ms, unless their words are clearly complete.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		p       float64
		cutOffs int
		pauses  time.Duration
		want    time.Duration
	}{
		{0.8, 0, 900 * ms, 400 * ms},
		{0.8, 1, 200 * ms, 400 * ms},
		{0.8, 1, 480 * ms, 600 * ms},
		{0.8, 2, 480 * ms, 600 * ms},
		{0.8, 1, 2000 * ms, 660 * ms},
		{0.95, 2, 2000 * ms, 220 * ms},
		{0.4, 2, 2000 * ms, 800 * ms},
		{0.1, 2, 2000 * ms, 2400 * ms},
	} {
		m := New(DefaultPolicy(), false)
		m.endpointer.cutOffs, m.endpointer.pauses = c.cutOffs, c.pauses
		if got := m.endpointer.wait(eot.Guess{P: c.p}); got != c.want {
			t.Errorf("p %v, cut off %d times, pauses of %v: %v, want %v", c.p, c.cutOffs, c.pauses, got, c.want)
		}
	}
	for name, tt := range map[string]struct {
		waits Waits
		want  []time.Duration
	}{
		"default":  {Waits{}, []time.Duration{220 * ms, 400 * ms, 800 * ms, 1600 * ms, 2400 * ms}},
		"balanced": {BalancedWaits(), []time.Duration{220 * ms, 400 * ms, 800 * ms, 1600 * ms, 2400 * ms}},
		"quick":    {QuickWaits(), []time.Duration{180 * ms, 250 * ms, 600 * ms, 1600 * ms, 2400 * ms}},
		"careful":  {CarefulWaits(), []time.Duration{350 * ms, 900 * ms, 1400 * ms, 2000 * ms, 2500 * ms}},
	} {
		policy := DefaultPolicy()
		policy.Waits = tt.waits
		e := &endpointer{policy: &policy}
		for i, p := range []float64{0.9, 0.6, 0.3, 0.2, 0.19} {
			if got := e.wait(eot.Guess{P: p}); got != tt.want[i] {
				t.Errorf("%s, p %v: %v, want %v", name, p, got, tt.want[i])
			}
		}
	}
}

func TestGreetingThatStalls(t *testing.T) {
	got := play(New(DefaultPolicy(), true), end(2300*ms), speech(SpeechStart, 2320*ms, Filler), speech(SpeechEnd, 3000*ms, Filler), end(5600*ms))
	if want := []string{"0 fill answer_slow", "0 apologise answer_too_slow"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGreetingIsNotLostToAHello(t *testing.T) {
	got := play(New(DefaultPolicy(), true),
		voice(50*ms), speech(SpeechStart, 120*ms, Reply), loud(210*ms, 160*ms), silence(400*ms), final(700*ms, "hello"), speech(SpeechEnd, 2000*ms, Reply))
	if want := []string{"0 duck sound", "0 finalize sound_beside", "0 unduck silence"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestEventsAreJSON(t *testing.T) {
	b, err := json.Marshal(Event{Kind: Transcript, At: 5, Text: "x", Final: true})
	if err != nil || string(b) != `{"kind":"heard","at":5,"text":"x","final":true}` {
		t.Errorf("%s, %v", b, err)
	}
}

// TestNoiseDoesNotPutOffTheFiller checks that short sounds while an answer is prepared do not
// delay the filler and the apology forever.
func TestNoiseDoesNotPutOffTheFiller(t *testing.T) {
	events := []Event{voice(1000 * ms), silence(2000 * ms), said(2190*ms, 1000*ms, "i came home"), end(2400 * ms)}
	for at := 3000 * ms; at < 20000*ms; at += 1500 * ms {
		events = append(events, voice(at), Event{Kind: Silence, At: at + 300*ms, From: at + 100*ms}, final(at+500*ms, ""))
	}
	if got := play(New(DefaultPolicy(), false), events...); !slices.Contains(got, "0 fill answer_slow") {
		t.Errorf("18 s of silence: %q", got)
	}
}

// TestReadyUnderAFiller checks that an answer that becomes ready during an interrupted filler
// is released after the filler.
func TestReadyUnderAFiller(t *testing.T) {
	m := New(DefaultPolicy(), false)
	var did []Action
	for _, e := range []Event{
		voice(1000 * ms), silence(2000 * ms), final(2190*ms, "hi there"),
		{Kind: Timer, At: 2400 * ms},
		{Kind: Timer, At: 4200 * ms},
		speech(SpeechStart, 4320*ms, Filler), voice(4400 * ms), loud(4560*ms, 160*ms),
		{Kind: Ready, At: 4600 * ms},
		silence(4650 * ms),
		final(4900*ms, ""),
		{Kind: Timer, At: 5350 * ms},
		speech(SpeechEnd, 5800*ms, Filler),
	} {
		did = append(did, m.Step(e)...)
	}
	if !slices.ContainsFunc(did, func(a Action) bool { return a.Do == Release }) {
		t.Errorf("%s, the answer is never released: %+v", m.State(), did)
	}
}
