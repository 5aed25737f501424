package turns

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
)

// A syntheticCall is a call whose audio a test places at given times.
type syntheticCall struct {
	call
	pcm []int16
}

func newCall(seconds int, words int, moves ...scenario.Utterance) *syntheticCall {
	t := &syntheticCall{pcm: make([]int16, seconds*rate)}
	t.ID, t.Name, t.Words = "call-0", scenario.Plain, words
	t.Turns = moves
	return t
}

func zero() time.Time { return time.Unix(1000, 0) }

// at returns the time of the call after ms milliseconds.
func at(ms int) time.Time { return zero().Add(time.Duration(ms) * time.Millisecond) }

// said returns a line of words and pauses. answer means that an answer is expected.
func said(answer bool, parts ...corpus.Part) scenario.Utterance {
	x, _ := scenario.Say(parts)
	x.Answer = answer
	return x
}

// says adds the next line, starting at from, and returns the end of the line. Both are in ms.
func (t *syntheticCall) says(from int) int {
	i := len(t.callee.Said)
	end := t.Turns[i].Spans[len(t.Turns[i].Spans)-1].To
	s := callee.Spoken{Line: i}
	for n := range (end + 159) / 160 {
		s.Left = append(s.Left, at(from+20*(n+1)))
	}
	t.callee.Said = append(t.callee.Said, s)
	return from + end/8
}

// hears adds received audio that arrives at from, and returns its end. Both are in ms.
func (t *syntheticCall) hears(from int, pcm []int16) int {
	copy(t.pcm[from*8:], pcm)
	return from + len(pcm)/8
}

func speech(words ...string) []int16 {
	pcm, _ := tone.Encode(rate, strings.Join(words, " "))
	return pcm
}

// judge ends the call and analyzes it. lines are the server's transcript; a line that starts with
// ">" is the agent's.
func (t *syntheticCall) judge(tb testing.TB, lines ...string) []Turn {
	tb.Helper()
	t.callee.Heard.Rate = rate
	t.callee.Heard.PCM = t.pcm
	for n := range len(t.pcm) / 160 {
		t.callee.Heard.At = append(t.callee.Heard.At, zero().Add(time.Duration(n)*media.FrameTime))
	}
	t.callee.Ended = at(len(t.pcm) / 8)
	for i, l := range lines {
		if text, agent := strings.CutPrefix(l, ">"); agent {
			t.server.Lines = append(t.server.Lines, pipeline.Line{Role: pipeline.RoleAgent, Text: text, Turn: i})
			continue
		}
		t.server.Lines = append(t.server.Lines, pipeline.Line{Role: pipeline.RoleCaller, Text: l, Turn: i})
		t.server.Turns = append(t.server.Turns, json.RawMessage(fmt.Sprintf(`{"turn":%d,"ending":"answered","reason":"silence","metrics":{"turn_ms":700,"raw":{}}}`, i)))
	}
	a, err := t.call.judge()
	if err != nil || len(a.served.unspoken) > 0 {
		tb.Fatalf("got unspoken lines %q, %v", a.served.unspoken, err)
	}
	return a.turns
}

func about(v *float64, want, within float64) bool { return v != nil && math.Abs(*v-want) <= within }

func show(t Turn) string {
	b, err := json.Marshal(t)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestAnswerInTime(t *testing.T) {
	x := newCall(8, 4, said(true, corpus.Part{Text: "are you open"}), said(true, corpus.Part{Text: "and tomorrow"}))
	end := x.says(500)
	x.hears(end+700, speech(providers.ReplyWords("are you open", 1, 4)...))
	end = x.says(4000)
	x.hears(end+300, speech(providers.ReplyWords("and tomorrow", 2, 4)...))
	turns := x.judge(t, "Are you open?", "and tomorrow")
	for i, want := range []float64{700, 300} {
		v := turns[i]
		if !about(v.Wire, want, 21) || !about(v.Ear, want+40, 11) || !v.Whole || !v.Correct || v.Dead || v.Answers != 1 || v.Answer.Heard != 4 || !about(v.Server, 700, 0) {
			t.Errorf("turn %d, answer after %v: got %s", i, want, show(v))
		}
	}
}

// TestTurnsWithoutTurnMS checks that the metric untold counts an answered turn without turn_ms.
func TestTurnsWithoutTurnMS(t *testing.T) {
	for name, c := range map[string]struct {
		line           string
		metrics        string
		untold, unheld int
	}{
		"reported":               {"are you open", `{"turn_ms":700}`, 0, 0},
		"reported in part":       {"you open", `{"turn_ms":700}`, 0, 1},
		"a turn without turn_ms": {"are you open", `{"vad_ms":200}`, 1, 0},
		"no turn at all":         {"", `{}`, 1, 0},
	} {
		x := newCall(8, 4, said(true, corpus.Part{Text: "are you open"}))
		x.hears(x.says(500)+700, speech(providers.ReplyWords("are you open", 1, 4)...))
		if c.line != "" {
			x.server.Lines = []pipeline.Line{{Role: pipeline.RoleCaller, Text: c.line, Turn: 1}}
			x.server.Turns = []json.RawMessage{json.RawMessage(`{"turn":1,"ending":"answered","metrics":` + c.metrics + `}`)}
		}
		r := &Report{Turns: x.judge(t)}
		r.answers()
		for metric, want := range map[string]int{"untold": c.untold, "unheld": c.unheld} {
			i := slices.IndexFunc(r.Metrics, func(m result.Metric) bool { return m.Name == metric })
			if m := r.Metrics[i]; m.Count.Times != want || m.Count.N != 1 {
				t.Errorf("%s: got %s %d of %d, want %d", name, metric, m.Count.Times, m.Count.N, want)
			}
		}
	}
}

func TestNoAnswer(t *testing.T) {
	x := newCall(9, 4, said(true, corpus.Part{Text: "are you open"}), said(true, corpus.Part{Text: "hello"}))
	x.says(500)
	end := x.says(6000)
	x.hears(end+300, speech(providers.ReplyWords("hello", 2, 4)...))
	turns := x.judge(t, "are you open", "hello")
	if !turns[0].Dead || turns[0].Wire != nil || turns[1].Dead {
		t.Errorf("got %s %s", show(turns[0]), show(turns[1]))
	}
}

func TestCutOff(t *testing.T) {
	const first, second = "i would like a", "table for two"
	paused := func() *syntheticCall {
		return newCall(10, 4, said(true, corpus.Part{Text: first, Pause: time.Second, Kind: corpus.MidClause}, corpus.Part{Text: second}))
	}
	whole := first + " " + second
	part := providers.ReplyWords(first, 1, 4)
	for name, c := range map[string]struct {
		part    int // the agent answers the first part with n words, this many ms after the pause started
		n       int
		cut     []int
		lines   []string
		callers int
		correct bool
		answers int
		wrong   int
	}{
		"silent in the pause":        {0, 0, nil, []string{whole}, 1, true, 1, 0},
		"talks in the pause":         {500, 2, []int{0}, []string{first, second}, 2, false, 1, 1},
		"talks into the rest":        {1100, 4, []int{0}, []string{first, second}, 2, false, 2, 1},
		"two messages, both audible": {400, 4, []int{0}, []string{first, second}, 2, false, 2, 1},
		"two messages, one answer":   {0, 0, nil, []string{first, second}, 2, false, 1, 1},
		"one line, two messages":     {0, 0, nil, []string{whole}, 2, false, 1, 0},
	} {
		x := paused()
		end := x.says(500)
		pause := 500 + x.Turns[0].Spans[0].To/8
		x.hears(pause+c.part, speech(part[:c.n]...))
		text := whole
		if c.callers == 2 {
			text = second
		}
		x.hears(end+1200, speech(providers.ReplyWords(text, c.callers, 4)...))
		v := x.judge(t, c.lines...)[0]
		if !slices.Equal(v.CutOff, c.cut) || v.Correct != c.correct || v.Answers != c.answers || v.False != c.wrong || v.Pauses != 1 || v.Kind != corpus.MidClause {
			t.Errorf("%s: got %s", name, show(v))
		}
	}
}

// into returns a call in which the line text interrupts an answer of ten words. The test adds the
// audible parts of the answer.
func into(name scenario.Name, text string) (x *syntheticCall, words []string, began, onset int) {
	x = newCall(16, 10, said(true, corpus.Part{Text: "tell me all"}), said(false, corpus.Part{Text: "stop"}))
	x.Name = name
	x.Turns[1].Into, x.Turns[1].Text = time.Second, text
	began = x.says(500) + 700
	onset = began + 1000
	x.says(onset)
	return x, providers.ReplyWords("tell me all", 1, 10), began, onset
}

func TestBargeIn(t *testing.T) {
	x, words, began, onset := into(scenario.BargeIn, "stop")
	all := speech(words...)
	x.hears(began, all[:(onset+150-began)*8])
	turns := x.judge(t, "tell me all", ">"+strings.Join(words[:4], " "), "stop")
	v := turns[1].Into
	if !v.Hit || !about(v.Stop, 130, 15) || v.Leak != 0 || v.Resume != nil { // the packet with the start of the line left 20 ms later
		t.Errorf("stop 150 ms after the onset: got %s", show(turns[1]))
	}
	if turns[0].Off == nil || *turns[0].Off != 0 || turns[0].Whole {
		t.Errorf("four words heard: got %s", show(turns[0]))
	}

	x, words, began, onset = into(scenario.BargeIn, "stop")
	x.hears(began, all[:(onset+150-began)*8])
	x.hears(onset+800, speech(words[7:9]...))
	if v := x.judge(t, "tell me all", "stop")[1].Into; v.Leak != 2 {
		t.Errorf("two leaked words: got %+v", v)
	}

	x, _, began, _ = into(scenario.BargeIn, "stop")
	x.hears(began, all)
	if v := x.judge(t, "tell me all", "stop")[1].Into; !v.Hit || v.Stop != nil {
		t.Errorf("answer continued: got %+v", v)
	}

	x, _, began, _ = into(scenario.BargeIn, "stop")
	x.hears(began, all[:4000])
	if v := x.judge(t, "tell me all", "stop")[1].Into; v.Hit {
		t.Errorf("agent silent: got %+v", v)
	}
}

func TestResume(t *testing.T) {
	x, words, began, onset := into(scenario.Resume, "")
	x.Turns[1].Text = ""
	quiet := x.Turns[1].Spans[0].To/8 + onset
	all := speech(words...)
	x.hears(began, all[:(onset+150-began)*8]) // within the fourth or fifth word
	_, timed := tone.Encode(rate, strings.Join(words, " "))
	from := 0
	for i, w := range timed {
		if w.Start < time.Duration(onset+150-began)*time.Millisecond {
			from = i
		}
	}
	x.hears(quiet+400, speech(words[from:]...))
	turns := x.judge(t, "tell me all")
	v, of := turns[1].Into, turns[0]
	if !v.Hit || !about(v.Stop, 130, 15) || !about(v.Resume, 400, 25) {
		t.Errorf("resume after 400 ms: got %s", show(turns[1]))
	}
	if !of.Whole || of.Answer.Lost+of.Answer.Cut+of.Answer.Doubled != 0 {
		t.Errorf("no lost words: got %s", show(of))
	}
}

func TestStale(t *testing.T) {
	x := newCall(12, 4, said(true, corpus.Part{Text: "are you open"}), said(true, corpus.Part{Text: "and tomorrow"}))
	end := x.says(500)
	x.hears(end+700, speech(providers.ReplyWords("are you open", 1, 2)...))
	end = x.says(4000)
	end = x.hears(end+300, speech(providers.ReplyWords("and tomorrow", 2, 4)...))
	x.hears(end+300, speech(providers.ReplyWords("are you open", 1, 4)[2:]...))
	if turns := x.judge(t, "are you open", "and tomorrow"); turns[0].Stale != 2 || turns[1].Stale != 0 {
		t.Errorf("two late words: got %s %s", show(turns[0]), show(turns[1]))
	}
}

func TestDamagedLinesAreFound(t *testing.T) {
	c := call{Call: scenario.Call{Turns: []scenario.Utterance{
		said(true, corpus.Part{Text: "i have been waiting since wednesday"}), said(true, corpus.Part{Text: "we need two more of them before tuesday comes"}),
	}}}
	for _, x := range []struct {
		text string
		from int
		want int
		all  bool
	}{
		{"i haveee been waiting since weeednesday", 0, 0, true},
		{"we needd", 0, 1, false},
		{"mhm we neeed two more of them before ~~~~ comes", 0, 1, true},
		{"i haveee been waiting", 1, -1, false},
		{"ocmnca wmwaba xyxuda", 0, -1, false},
		{"", 0, -1, false},
	} {
		if i, all := c.resembles(x.text, x.from); i != x.want || all != x.all {
			t.Errorf("%q: got line %d, all %v; want %d, %v", x.text, i, all, x.want, x.all)
		}
	}
}

func TestUnspokenLines(t *testing.T) {
	x := newCall(4, 4, said(true, corpus.Part{Text: "are you open"}))
	x.says(500)
	x.server.Lines = []pipeline.Line{{Role: pipeline.RoleCaller, Text: "abcd efgh"}, {Role: pipeline.RoleCaller, Text: "you open"}}
	if s, err := x.align(); err != nil || !slices.Equal(s.unspoken, []string{"abcd efgh"}) || len(s.lines[0]) != 1 || len(s.whole) != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
}
