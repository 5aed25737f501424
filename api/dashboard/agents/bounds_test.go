package agents

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
)

func readTexts(t *testing.T) *ui.Texts {
	t.Helper()
	texts, err := ui.ReadTexts(nil)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestLimiter(t *testing.T) {
	texts := readTexts(t)
	p := &limiter{perMinute: 3, perPerson: 2, inAll: 3}
	now := time.Unix(1_700_000_000, 0)
	begin := func(who string, after time.Duration, want string) func() {
		t.Helper()
		end, err := p.begin(texts, who, now.Add(after))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Fatalf("%s after %v: %v, want %q", who, after, err, want)
		}
		return end
	}
	first, second := begin("ada", 0, ""), begin("ada", 0, "")
	begin("ada", 0, "still running")
	third := begin("eve", 0, "")
	begin("bob", 0, "Too many tests are running")
	first()
	begin("ada", time.Second, "")()
	begin("ada", 40*time.Second, "Try again in 20 s")
	begin("ada", time.Minute, "")()
	second()
	third()
	if len(p.running) != 0 || p.all != 0 {
		t.Errorf("%v and %d run at the end", p.running, p.all)
	}
}

func TestChatBounds(t *testing.T) {
	texts := readTexts(t)
	now := time.Now()
	for _, c := range []struct {
		state chatState
		want  string
	}{
		{chatState{At: now}, ""},
		{chatState{At: now.Add(-chatExpiry)}, ""},
		{chatState{At: now.Add(-chatExpiry - time.Second)}, "30 minutes"},
		{chatState{At: now, Turns: make([]chatTurn, maxChatTurns)}, "at most 40"},
		{chatState{At: now, Ended: true}, "has ended the call"},
	} {
		if err := c.state.open(texts, now); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.state, err)
		}
	}
	s := chatState{}
	s.add(texts, "hi", agents.ChatTurn{Text: strings.Repeat("x", maxChatState)})
	if !s.Ended {
		t.Error("a chat grows beyond its limit")
	}
}

func TestParameterRows(t *testing.T) {
	for schema, want := range map[string]bool{
		"":                  true,
		`{"type":"object"}`: true,
		`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]},"b":{"type":"number","description":"d"}},"required":["a"]}`: true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`:                                                  false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^a$"}}}`:                                                           false,
		`{"type":"object","properties":{"a":{"type":"string","enum":["x, y"]}}}`:                                                           false,
		`{"type":"object","properties":{},"additionalProperties":true}`:                                                                    false,
		`{"type":"object","required":["a"]}`:                                                                                               false,
	} {
		if rows, ok := parameterRows([]byte(schema)); ok != want {
			t.Errorf("%s: %v %+v", schema, ok, rows)
		}
	}
}

func TestFieldLabel(t *testing.T) {
	texts := readTexts(t)
	for path, want := range map[string]string{
		"greeting": "Greeting", "voicemail_message": "Voicemail message", "speech.tts.voice": "Voice voice", "tools[find].url": "Tool find: url",
		"tools[find]": "Tool find", "analysis.fields[topic].type": "Analysis field topic: type", "analysis.summary": "Analysis summary",
		"variables.city": "Default of variable city", "max_duration_s": "Maximum duration in seconds",
	} {
		if got := fieldLabel(texts, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
