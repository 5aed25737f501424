package turnlog

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline/turn"
)

// TestLog replays a log to the same actions.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	to, err := Dir(dir)("call_1/../x")
	if err != nil {
		t.Fatal(err)
	}
	p := turn.DefaultPolicy()
	p.Held = true
	m := turn.New(p, true)
	m.Start()
	l := New(to, slog.New(slog.DiscardHandler), p, true)
	for i, k := range []turn.Kind{turn.Ready, turn.Voice, turn.Silence, turn.Floor, turn.SpeechStart, turn.Hold} {
		e := turn.Event{Kind: k, At: time.Duration(i) * time.Second}
		if k == turn.Floor {
			e.Text = turn.Greet
		}
		l.Write(e, m.Step(e))
	}
	l.Close()
	b, err := os.ReadFile(filepath.Join(dir, "x.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Replay(bytes.NewReader(b), &out); err != nil || !strings.Contains(out.String(), "yield machine_answered") || !strings.HasSuffix(out.String(), "6 events, the same actions\n") {
		t.Errorf("%v\n%s", err, &out)
	}
	for name, log := range map[string]string{
		"empty line": "\n", "no log": "{}\n", "other actions": strings.ReplaceAll(string(b), "yield", "drop"), "no JSON": string(b) + "{\n",
	} {
		if err := Replay(strings.NewReader(log), &out); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	new(Log).Write(turn.Event{}, nil) // the zero Log writes nothing
	new(Log).Close()
}
