package conversation_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
)

type weather struct {
	takes time.Duration
	ran   *atomic.Int32
	begun *atomic.Int64 // when the function began, in Unix nanoseconds
}

func newWeather(takes time.Duration) weather {
	return weather{takes, new(atomic.Int32), new(atomic.Int64)}
}

func (weather) Spec() pipeline.Tool {
	return pipeline.Tool{Name: "weather", Description: "x", Parameters: json.RawMessage(`{"type":"object","properties":{"day":{"type":"string"}}}`)}
}
func (weather) Filler() string { return "let me look" }

func (w weather) Run(ctx context.Context, _ json.RawMessage) (pipeline.ToolResult, error) {
	w.ran.Add(1)
	w.begun.Store(time.Now().UnixNano())
	select {
	case <-time.After(w.takes):
		return pipeline.ToolResult{Text: "sunny"}, nil
	case <-ctx.Done():
		return pipeline.ToolResult{}, ctx.Err()
	}
}

// calls returns a script in which the model says first, calls a tool and then repeats the result.
func calls(name, arguments, first string) fakeprovider.Script {
	script := fakeprovider.Typical()
	script.Call = func(m []fakeprovider.Message) (string, string) {
		if last := m[len(m)-1]; last.Role == "user" && !strings.Contains(last.Content, "thank") {
			return name, arguments
		}
		return "", ""
	}
	script.Reply = func(m []fakeprovider.Message) string {
		switch last := m[len(m)-1]; {
		case last.Role == "tool":
			return "it is " + last.Content
		case strings.Contains(last.Content, "thank"):
			return "you are welcome"
		}
		return first
	}
	return script
}

func builtins(t *testing.T) []pipeline.Function {
	t.Helper()
	all, err := tools.Build([]tools.Definition{
		{Type: tools.EndCall},
		{Type: tools.SendDTMF},
		{Type: tools.LeaveVoicemail},
		{Type: tools.TransferCall, Destinations: []tools.Destination{{Label: "sales", Number: "+12025550111"}}},
	}, safedial.Rules{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTool checks that the caller hears one answer with the tool's result. During a slow tool the caller hears
// fillers, with at most 4 s of silence between them. The time of the tool does not count as underrun or as time of
// the model.
func TestTool(t *testing.T) {
	for name, tt := range map[string]struct {
		takes       time.Duration
		first, want string
	}{
		"fast":            {500 * time.Millisecond, "", "it is sunny"},
		"fast, announced": {500 * time.Millisecond, "hm", "hm it is sunny"},
		"slow":            {4 * time.Second, "", "let me look it is sunny"},
		"slow, announced": {6 * time.Second, "hm", "hm let me look i am still looking into it. it is sunny"},
		"very slow":       {15 * time.Second, "", "let me look i am still looking into it. this takes a little longer than usual. thank you for waiting. it is sunny"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeather(tt.takes)
				c := start(t, calls("weather", `{"day":"mon"}`, tt.first), pipeline.SessionConfig{Tools: []pipeline.Function{w}})
				c.pass(500 * time.Millisecond)
				c.say("what is the weather")
				c.pass(4*time.Second + tt.takes)
				c.say("thank you")
				c.pass(3 * time.Second)
				heard, timed := c.words(), c.timed()
				o := c.hangup()
				for i, w := range timed[1:] {
					if gap := w.Start - timed[i].End; gap > 4*time.Second && w.Start < tt.takes+2*time.Second {
						t.Errorf("%v of silence before %q at %v", gap, w.Text, w.Start)
					}
				}
				if want := tt.want + " you are welcome"; heard != want {
					t.Errorf("the caller heard %q, want %q", heard, want)
				}
				want := []string{
					"caller: what is the weather", `tool: weather {"day":"mon"}: sunny`, "agent: " + tt.want,
					"caller: thank you", "agent: you are welcome",
				}
				for i, l := range lines(o) {
					if len(lines(o)) != len(want) || !strings.EqualFold(l, want[i]) {
						t.Errorf("lines %q", lines(o))
						break
					}
				}
				if n := w.ran.Load(); n != 1 {
					t.Errorf("the tool ran %d times", n)
				}
				if len(o.Turns) != 2 || o.Turns[0].Tools != tt.takes || o.Turns[0].Ending != pipeline.Answered || o.Turns[1].Tools != 0 {
					t.Errorf("turns %+v", o.Turns)
				}
				if d := o.Turns[0].Raw["underrun_ms"]; d > 40*time.Millisecond {
					t.Errorf("underrun of %v", d)
				}
				var before, tool, llm time.Duration
				for _, s := range o.Turns[0].Spans {
					switch s.Phase {
					case pipeline.PhaseTool:
						tool = s.For
					case pipeline.PhaseLLM:
						llm = s.For
					default:
						before += s.For
					}
				}
				exposed := tt.first == "" // nothing is audible before the tool runs, so the turn includes its time
				if exposed != (tool > 0) || tool > min(tt.takes, 1100*time.Millisecond) || exposed && tool < min(tt.takes, time.Second) || llm > 500*time.Millisecond {
					t.Errorf("tool %v, llm %v", tool, llm)
				}
				if heard := o.Turns[0].Total(); heard != before+tool+llm || exposed && heard < tool+llm {
					t.Errorf("%v in all, of %+v", heard, o.Turns[0].Spans)
				}
			})
		})
	}
}

// TestToolTimeout checks that a function that does not return is canceled after four fillers, and that the model
// learns of it.
func TestToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeather(10 * time.Minute)
		c := start(t, calls("weather", `{}`, ""), pipeline.SessionConfig{Tools: []pipeline.Function{w}})
		c.pass(500 * time.Millisecond)
		c.say("what is the weather")
		c.pass(32 * time.Second)
		timed := c.timed()
		o := c.hangup()
		for i, x := range timed[1:] {
			if gap := x.Start - timed[i].End; gap > 4*time.Second {
				t.Errorf("%v of silence before %q at %v", gap, x.Text, x.Start)
			}
		}
		const fillers = "let me look I am still looking into it. This takes a little longer than usual. Thank you for waiting. let me look "
		const told = "error: timed out; it may or may not have completed"
		if want := []string{"caller: what is the weather", "tool: weather {}: " + told, "agent: " + fillers + "it is " + told}; !slices.Equal(lines(o), want) {
			t.Errorf("lines %q", lines(o))
		}
		if len(o.Turns) != 1 || o.Turns[0].Ending != pipeline.Answered || o.Turns[0].Tools > 25*time.Second {
			t.Errorf("turns %+v", o.Turns)
		}
	})
}

// TestToolInHistory checks that a tool call and its result precede the spoken text in the
// history.
func TestToolInHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := calls("weather", `{}`, "")
		reply := script.Reply
		var told atomic.Pointer[[]fakeprovider.Message]
		script.Reply = func(m []fakeprovider.Message) string { told.Store(&m); return reply(m) }
		c := start(t, script, pipeline.SessionConfig{Tools: []pipeline.Function{newWeather(0)}})
		c.pass(500 * time.Millisecond)
		c.say("what is the weather")
		c.pass(4 * time.Second)
		c.say("thank you")
		c.pass(3 * time.Second)
		c.hangup()
		var got []string
		for _, m := range *told.Load() {
			got = append(got, m.Role+": "+m.Content)
		}
		want := []string{"system: ", "user: what is the weather", "assistant: ", "tool: sunny", "assistant: it is sunny", "user: thank you"}
		if !slices.Equal(got, want) {
			t.Errorf("got messages %q", got)
		}
	})
}

// TestToolWaitsForTheTurn checks that an answer prepared early runs its tools only after the
// commit.
func TestToolWaitsForTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := calls("weather", `{}`, "")
		script.FirstToken = 0
		w := newWeather(0)
		c := start(t, script, pipeline.SessionConfig{Tools: []pipeline.Function{w}})
		c.pass(500 * time.Millisecond)
		c.say("i want tea")
		c.pass(300 * time.Millisecond)
		if w.ran.Load() != 0 {
			t.Error("the tool ran before the commit")
		}
		c.say("and the weather")
		c.pass(4 * time.Second)
		heard := c.words()
		o := c.hangup()
		if n := w.ran.Load(); n != 1 || heard != "it is sunny" {
			t.Errorf("the tool ran %d times, the caller heard %q", n, heard)
		}
		if len(o.Turns) != 1 || o.Turns[0].Speculations < 2 {
			t.Fatalf("got no prepared answer: %+v", o.Turns)
		}
	})
}

// TestToolRunsOnce checks that a tool does not run twice if the caller continues while it runs.
func TestToolRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := calls("weather", `{}`, "")
		script.Call = func(m []fakeprovider.Message) (string, string) {
			if slices.ContainsFunc(m, func(x fakeprovider.Message) bool { return x.Role == "tool" }) {
				return "", ""
			}
			return "weather", "{}"
		}
		var told atomic.Pointer[[]fakeprovider.Message]
		script.Reply = func(m []fakeprovider.Message) string {
			told.Store(&m)
			if m[len(m)-1].Role == "user" && len(m) == 2 {
				return ""
			}
			return "fine"
		}
		script.FirstToken = 700 * time.Millisecond
		c := start(t, script, pipeline.SessionConfig{Tools: []pipeline.Function{newWeather(100 * time.Millisecond)}})
		c.pass(5 * time.Second) // until the phrases are in the cache
		c.say("what is the weather")
		c.pass(1200 * time.Millisecond)
		c.say("on monday")
		c.pass(6 * time.Second)
		o := c.hangup()
		var got []string
		for _, m := range *told.Load() {
			got = append(got, m.Role+": "+m.Content)
		}
		if want := []string{"system: ", "assistant: ", "tool: sunny", "user: what is the weather on monday"}; !slices.Equal(got, want) {
			t.Errorf("got messages %q; lines %q", got, lines(o))
		}
	})
}

func TestHangupTool(t *testing.T) {
	for name, tt := range map[string]struct {
		call, arguments, first, heard string
		reason                        pipeline.Reason
	}{
		"said before":      {tools.EndCall, `{}`, "bye then", "bye then", pipeline.AgentHungUp},
		"said with it":     {tools.EndCall, `{"say":"so long"}`, "", "so long", pipeline.AgentHungUp},
		"said both":        {tools.EndCall, `{"say":"so long"}`, "well", "well so long", pipeline.AgentHungUp},
		"said afterwards":  {tools.EndCall, `{}`, "", "it is the call ends once the caller has heard you; if the caller speaks first, it goes on", pipeline.AgentHungUp},
		"message":          {tools.LeaveVoicemail, `{"say":"call me"}`, "", "call me", pipeline.VoicemailLeft},
		"no such argument": {tools.EndCall, `{"now":1}`, "", "it is error: arguments: now: unknown property accepted: say", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t, calls(tt.call, tt.arguments, tt.first), pipeline.SessionConfig{Tools: builtins(t)})
				c.pass(500 * time.Millisecond)
				c.say("please go away")
				c.pass(12 * time.Second)
				heard := strings.ReplaceAll(c.words(), "~", " ") // the fake voice leaves no space between two streams
				want := tt.reason
				if want == "" {
					want = pipeline.CallerHungUp
					_ = c.Hangup(media.RemoteHangup)
				}
				o := c.wait()
				if tones := strings.ReplaceAll(tt.heard, ";", ""); heard != tones {
					t.Errorf("the caller heard %q, want %q", heard, tones)
				}
				if o.Reason != want || len(o.Turns) != 1 || o.Turns[0].Ending != pipeline.Answered {
					t.Errorf("reason %q, turns %+v, lines %q", o.Reason, o.Turns, lines(o))
				}
			})
		})
	}
}

// TestGoodbyeInterrupted checks that the call continues if the caller speaks during the goodbye.
func TestGoodbyeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, calls(tools.EndCall, `{}`, "one two three four five six seven eight nine ten"), pipeline.SessionConfig{Tools: builtins(t)})
		c.pass(500 * time.Millisecond)
		c.say("please go away")
		c.pass(2 * time.Second)
		c.say("thank you but wait please")
		c.pass(4 * time.Second)
		heard := c.words()
		if o := c.hangup(); o.Reason != pipeline.CallerHungUp || !strings.HasSuffix(heard, "you are welcome") {
			t.Errorf("reason %q, heard %q, lines %q", o.Reason, heard, lines(o))
		}
	})
}

// able is a leg that can send keys and transfer calls.
type able struct {
	*mediatest.Leg
	pressed string
	refuses error
	number  string
}

func (a *able) Press(keys string) error { a.pressed += keys; return nil }

func (a *able) Refer(_ context.Context, number string) error {
	<-time.After(2 * time.Second) // the second leg rings
	if a.number = number; a.refuses == nil {
		_ = a.Hangup(media.Transferred)
	}
	return a.refuses
}

func TestPress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := &able{Leg: mediatest.NewLeg(8000)}
		c := talkTo(t, leg.Leg, leg, pipetest.New(calls(tools.SendDTMF, `{"keys":"1,2#"}`, "")), pipeline.SessionConfig{Tools: builtins(t), Engines: pipetest.FakeEngines()})
		c.pass(500 * time.Millisecond)
		c.say("press one for sales")
		c.pass(3 * time.Second)
		c.say("thank you")
		c.pass(4 * time.Second)
		heard := c.words()
		o := c.hangup()
		if leg.pressed != "1,2#" {
			t.Errorf("pressed %q", leg.pressed)
		}
		if heard != "you are welcome" || len(o.Turns) != 2 || o.Turns[0].Ending != pipeline.Silent || o.Turns[1].Ending != pipeline.Answered {
			t.Errorf("heard %q, turns %+v", heard, o.Turns)
		}
	})
}

// TestPressWithoutKeypad checks that the model learns that the leg cannot send keys.
func TestPressWithoutKeypad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, calls(tools.SendDTMF, `{"keys":"1"}`, ""), pipeline.SessionConfig{Tools: builtins(t)})
		c.pass(500 * time.Millisecond)
		c.say("press one for sales")
		c.pass(4 * time.Second)
		o := c.hangup()
		if all := strings.Join(lines(o), "\n"); !strings.Contains(all, "no keys were pressed") {
			t.Errorf("lines %q", all)
		}
	})
}

// rung checks that the caller heard the ringback tone. It returns the other words that the caller heard, and the
// longest silence before or after a ring.
func rung(t *testing.T, c *call) (words string, silence time.Duration) {
	t.Helper()
	var all []string
	rings, last, ring, heard := 0, time.Duration(0), false, c.Output()
	for _, w := range c.timed() {
		is := strings.Trim(w.Text, "~") == ""
		if (is || ring) && last > 0 {
			silence = max(silence, w.Start-last)
		}
		if last, ring = w.End, is; !is {
			all = append(all, w.Text)
			continue
		}
		rings++
		from := int(w.Start+300*time.Millisecond) * 8 / int(time.Millisecond)
		pcm := heard[from:min(len(heard), from+1600)]
		if other := 100 * tone.Power(pcm, 8000, 700); tone.Power(pcm, 8000, 440) < other || tone.Power(pcm, 8000, 480) < other {
			t.Errorf("got another sound than the ringback at %v", w.Start)
		}
	}
	if rings == 0 {
		t.Error("got no ringback")
	}
	return strings.Join(all, " "), silence
}

func TestTransfer(t *testing.T) {
	const sorry = "i am sorry, nobody there can take the call. is there anything else i can do?"
	refused := errors.New("603 decline")
	for name, tt := range map[string]struct {
		refuses error
		bridge  bool
		heard   string
		want    pipeline.TransferResult
		reason  pipeline.Reason
	}{
		"by the carrier":  {nil, true, "putting you through", pipeline.TransferResult{Answered: true}, pipeline.Transferred},
		"by a second leg": {refused, true, "putting you through", pipeline.TransferResult{Answered: true, Bridged: true}, pipeline.Transferred},
		"not at all":      {refused, false, "putting you through " + sorry + " you are welcome", pipeline.TransferResult{}, pipeline.CallerHungUp},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leg, second := &able{Leg: mediatest.NewLeg(8000), refuses: tt.refuses}, mediatest.NewLeg(16000)
				brief := pipeline.SessionConfig{Tools: builtins(t), Engines: pipetest.FakeEngines(), MaxDuration: time.Minute}
				if tt.bridge {
					brief.Bridge = func(_ context.Context, number string) (media.Leg, error) {
						<-time.After(time.Second)
						leg.number += " and " + number
						return second, nil
					}
				}
				c := talkTo(t, leg.Leg, leg, pipetest.New(calls(tools.TransferCall, `{"to":"sales"}`, "putting you through")), brief)
				c.pass(500 * time.Millisecond)
				c.say("sales please")
				c.pass(10 * time.Second)
				if tt.reason == pipeline.CallerHungUp {
					c.pass(3 * time.Second)
					c.say("thank you")
					c.pass(4 * time.Second)
				}
				heard, silence := rung(t, c)
				if silence > 4*time.Second {
					t.Errorf("%v of silence", silence)
				}
				if tt.want.Bridged { // the caller now talks with the second leg
					c.say("hello sales")
					c.pass(200 * time.Millisecond)
					if got := (&call{Leg: second}).words(); got != "hello sales" {
						t.Errorf("sales heard %q", got)
					}
				}
				o := c.hangup()
				<-time.After(time.Second)
				_ = second.Hangup(media.LocalHangup)
				if heard != tt.heard || o.Reason != tt.reason {
					t.Errorf("heard %q, reason %q, lines %q", heard, o.Reason, lines(o))
				}
				tt.want.To = "+12025550111"
				if o.Transfer == nil || o.Transfer.At.IsZero() {
					t.Fatalf("transfer %+v", o.Transfer)
				}
				if o.Transfer.At = (time.Time{}); *o.Transfer != tt.want {
					t.Errorf("transfer %+v", *o.Transfer)
				}
				if !strings.HasPrefix(leg.number, "+12025550111") {
					t.Errorf("referred to %q", leg.number)
				}
			})
		})
	}
}

// TestCallLimits checks that the agent says goodbye and leaves when a limit is exceeded.
func TestCallLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		limits pipeline.Limits
		heard  string
	}{
		"turns":      {pipeline.Limits{Turns: 1}, "it is sunny"},
		"tokens":     {pipeline.Limits{Tokens: 3}, "it is sunny"},
		"tool calls": {pipeline.Limits{ToolCalls: 1}, "it is sunny"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t, calls("weather", `{}`, ""), pipeline.SessionConfig{Tools: []pipeline.Function{newWeather(0)}, Limits: tt.limits})
				c.pass(500 * time.Millisecond)
				c.say("what is the weather")
				c.pass(4 * time.Second)
				c.say("thank you")
				c.pass(10 * time.Second)
				heard := c.words()
				if o := c.wait(); heard != tt.heard+" i have to go now. goodbye." || o.Reason != pipeline.AgentHungUp {
					t.Errorf("heard %q, reason %q", heard, o.Reason)
				}
			})
		})
	}
}

// TestCanceledReplyTokens checks that dropped and canceled answers count for the limits.
func TestCanceledReplyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fakeprovider.Typical()
		script.FirstToken = time.Second
		c := start(t, script, pipeline.SessionConfig{Prompt: strings.Repeat("be kind ", 50), Limits: pipeline.Limits{Tokens: 150}})
		c.pass(500 * time.Millisecond)
		for _, text := range []string{"i want tea.", "and a cup of milk.", "and honey."} {
			c.say(text)
			c.pass(600 * time.Millisecond) // the answer was requested but has not come
		}
		c.pass(8 * time.Second)
		heard := c.words()
		if o := c.wait(); heard != "i have to go now. goodbye." || o.Reason != pipeline.AgentHungUp || o.Turns[0].TokensIn > 20 {
			t.Errorf("heard %q, reason %q, turns %+v", heard, o.Reason, o.Turns)
		}
	})
}

// TestPronunciation checks that the voice gets the configured pronunciation, and the transcript the written form.
func TestPronunciation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fakeprovider.Typical()
		script.Reply = func([]fakeprovider.Message) string { return "I am Parley, hello" }
		c := start(t, script, pipeline.SessionConfig{Pronunciation: map[string]string{"parley": "par lay"}})
		c.pass(500 * time.Millisecond)
		c.say("who are you")
		c.pass(4 * time.Second)
		heard := c.words()
		o := c.hangup()
		if heard != "i am par lay, hello" || !slices.Equal(lines(o), []string{"caller: who are you", "agent: I am Parley, hello"}) {
			t.Errorf("heard %q, lines %q", heard, lines(o))
		}
		var words []string
		for _, w := range o.Lines[1].Words {
			words = append(words, w.Text)
		}
		if strings.Join(words, " ") != "I am Parley, hello" {
			t.Errorf("words %q", words)
		}
	})
}
