package pipetest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

const ms = time.Millisecond

// answerText returns the words of an answer from one index to another.
func answerText(k, from, to int) string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, answerWord(k, i))
	}
	return strings.Join(all, " ")
}

func (r *recording) hears(at time.Duration, text string) {
	pcm, _ := tone.Encode(rate, text)
	from := int(at * rate / time.Second)
	if n := from + len(pcm); n > len(r.heard) {
		r.heard = append(r.heard, make([]int16, n-len(r.heard))...)
	}
	copy(r.heard[from:], pcm)
}

func (r *recording) says(at time.Duration, text string) {
	pcm, words := tone.Encode(rate, text)
	u := utterance{kind: sentence, span: span{at, at + time.Duration(len(pcm))*time.Second/rate}, open: endsOpen(text)}
	for _, w := range words {
		u.words = append(u.words, tone.Word{Text: w.Text, Start: at + w.Start, End: at + w.End})
	}
	r.said = append(r.said, u)
}

func user(text string) fakeprovider.Message { return fakeprovider.Message{Role: "user", Content: text} }

func assistant(text string) fakeprovider.Message {
	return fakeprovider.Message{Role: "assistant", Content: text}
}

func agentLine(text string, from, to time.Duration, cut bool) pipeline.Line {
	return pipeline.Line{Role: pipeline.RoleAgent, Text: text, Start: from, End: to, Interrupted: cut}
}

// sound returns the recording of a call without faults: two questions and their answers.
func sound() recording {
	r := recording{over: 12 * time.Second}
	r.says(time.Second, "xaaq xabq")
	r.hears(2*time.Second, answerText(0, 0, 6))
	r.says(5*time.Second, "xacq")
	r.hears(5900*ms, answerText(1, 0, 3))
	r.asked = []question{
		{1600 * ms, []fakeprovider.Message{user("xaaq xabq")}, 6},
		{5500 * ms, []fakeprovider.Message{user("xaaq xabq"), assistant(answerText(0, 0, 6)), user("xacq")}, 3},
	}
	spans := []pipeline.Span{{Phase: pipeline.PhaseVAD, For: 180 * ms}, {Phase: pipeline.PhaseOut, For: 300 * ms}}
	r.outcome = pipeline.Outcome{
		Reason: pipeline.CallerHungUp,
		Turns: []pipeline.Turn{
			{Number: 0, Ending: pipeline.Answered, Spans: spans}, {Number: 1, Ending: pipeline.Answered, Spans: spans},
		},
		Lines: []pipeline.Line{
			agentLine(answerText(0, 0, 6), 2*time.Second, 3400*ms, false),
			agentLine(answerText(1, 0, 3), 5900*ms, 6600*ms, false),
		},
	}
	return r
}

// silence mutes the caller's received audio between two times.
func (r *recording) silence(from, to time.Duration) {
	clear(r.heard[from*rate/time.Second : min(int(to*rate/time.Second), len(r.heard))])
}

// TestJudgeFindsNothing checks that a call without faults has no findings.
func TestJudgeFindsNothing(t *testing.T) {
	if found := judged(sound()); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestJudgeFinds adds one fault at a time to a call without faults, and checks that the judge finds it.
func TestJudgeFinds(t *testing.T) {
	for name, c := range map[string]struct {
		doctor func(*recording)
		want   string
	}{
		"the second answer is not heard": {func(r *recording) { r.silence(5*time.Second, 9*time.Second) }, deadAir},
		"an answer comes after 3.5 s": {func(r *recording) {
			r.silence(5*time.Second, 9*time.Second)
			r.hears(8700*ms, answerText(1, 0, 3))
		}, deadAir},
		"a word is in no question": {func(r *recording) { r.asked[0].messages = []fakeprovider.Message{user("xaaq")} }, dead},
		"words are answered again": {func(r *recording) {
			r.hears(8*time.Second, answerText(2, 0, 3))
			r.asked = append(r.asked, question{7 * time.Second, []fakeprovider.Message{user("xaaq xabq")}, 3})
			r.outcome.Lines = append(r.outcome.Lines, agentLine(answerText(2, 0, 3), 8*time.Second, 9*time.Second, false))
		}, doubled},
		"an answer that was overtaken goes on": {func(r *recording) { r.hears(8*time.Second, answerText(0, 5, 6)) }, stale},
		"an answer knows nothing of what was said meanwhile": {func(r *recording) {
			r.silence(5500*ms, 9*time.Second)
			r.says(5600*ms, "xadq")
			r.hears(7500*ms, answerText(1, 0, 3))
		}, stale},
		"a line has words that were not heard": {func(r *recording) { r.silence(2600*ms, 4*time.Second) }, unheard},
		"the model is told of words that were not heard": {func(r *recording) {
			r.silence(2600*ms, 4*time.Second)
			r.outcome.Lines[0] = agentLine(answerText(0, 0, 3), 2*time.Second, 2600*ms, true)
		}, unheard},
		"a line lacks words that were heard": {func(r *recording) {
			r.outcome.Lines[0] = agentLine(answerText(0, 0, 2), 2*time.Second, 3*time.Second, true)
		}, lost},
		"an answer has no line":              {func(r *recording) { r.outcome.Lines = r.outcome.Lines[1:] }, lost},
		"the model is not told of an answer": {func(r *recording) { r.asked[1].messages = []fakeprovider.Message{user("xacq")} }, lost},
		"a word in the middle is not heard":  {func(r *recording) { r.silence(2460*ms, 2680*ms) }, lost},
		"an answer begins again":             {func(r *recording) { r.hears(3600*ms, answerText(0, 0, 2)) }, replayed},
		"the model is told words twice": {func(r *recording) {
			r.asked[1].messages = append([]fakeprovider.Message{user("xaaq")}, r.asked[1].messages...)
		}, repeated},
		"a turn has no ending":        {func(r *recording) { r.outcome.Turns[1].Ending = "" }, ending},
		"a turn ends in two ways":     {func(r *recording) { r.outcome.Turns[1].Interrupted = true }, ending},
		"a number is left out":        {func(r *recording) { r.outcome.Turns[1].Number = 2 }, numbers},
		"a number comes twice":        {func(r *recording) { r.outcome.Turns[1].Number = 0 }, numbers},
		"a phase is negative":         {func(r *recording) { r.outcome.Turns[0].Spans = spansOf(-ms, 480*ms) }, phases},
		"an answered turn took none":  {func(r *recording) { r.outcome.Turns[0].Spans = nil }, phases},
		"a line ends before it began": {func(r *recording) { r.outcome.Lines[0].End = time.Second }, numbers},
	} {
		r := sound()
		c.doctor(&r)
		found := judged(r)
		if !slices.ContainsFunc(found, func(f finding) bool { return f.what == c.want }) {
			t.Errorf("%s: found %+v, want %s", name, found, c.want)
		}
	}
}

func spansOf(vad, out time.Duration) []pipeline.Span {
	return []pipeline.Span{{Phase: pipeline.PhaseVAD, For: vad}, {Phase: pipeline.PhaseOut, For: out}}
}

// TestJudgeExcuses checks that an apology counts as the answer to words that were not
// recognized.
func TestJudgeExcuses(t *testing.T) {
	r := sound()
	r.silence(5*time.Second, 9*time.Second)
	r.hears(7*time.Second, "sorry, i did not get that")
	r.asked = r.asked[:1]
	r.outcome.Lines = r.outcome.Lines[:1]
	if found := judged(r); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}
