package provider

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// TestJudgeReport checks that a report refuses an agent only if one of its engines and all the
// fallbacks of that engine are misconfigured, and warns of every other recent failure.
func TestJudgeReport(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	type check = EngineCheck
	ok := check{Serves: "llm", Provider: "good", At: now}
	wrong := check{Serves: "llm", Provider: "wrong", Model: "m", At: now.Add(-59 * time.Minute), Error: "404 Not Found", Misconfigured: true}
	down := check{Serves: "llm", Provider: "down", At: now.Add(-time.Minute), Error: "no response in time"}
	unknown := check{Serves: "llm", Provider: "unknown"}
	stale := wrong
	stale.At = now.Add(-61 * time.Minute)
	past := down
	past.At = now.Add(-3 * time.Minute)
	for _, tt := range []struct {
		name     string
		report   []check
		refused  string
		warnings string
	}{
		{"nothing known", nil, "", ""},
		{"works", []check{ok}, "", ""},
		{"not probed", []check{unknown}, "", ""},
		{"misconfigured", []check{wrong}, "model wrong (m): 404 Not Found", ""},
		{"misconfigured with a fallback that works", []check{wrong, ok}, "", "model wrong (m): 404 Not Found"},
		{"misconfigured with a fallback that was not probed", []check{wrong, unknown}, "", "model wrong (m): 404 Not Found"},
		{"misconfigured with a fallback that is down", []check{wrong, down}, "", "model wrong (m): 404 Not Found|model down: no response in time"},
		{"all misconfigured", []check{wrong, wrong}, "model wrong (m): 404 Not Found\nmodel wrong (m): 404 Not Found", ""},
		{"down", []check{down}, "", "model down: no response in time"},
		{"misconfigured an hour ago", []check{stale}, "", ""},
		{"down three minutes ago", []check{past}, "", ""},
		{
			"another engine works",
			[]check{{Serves: "asr", Provider: "a", At: now, Error: "401 Unauthorized", Misconfigured: true}, ok},
			"recognizer a: 401 Unauthorized", "",
		},
	} {
		warnings, err := Judge(tt.report, now)
		refused := ""
		if err != nil {
			refused = err.Error()
		}
		if refused != tt.refused || strings.Join(warnings, "|") != tt.warnings {
			t.Errorf("%s: refused %q, warnings %q", tt.name, refused, warnings)
		}
	}
}

// TestReport checks that Report returns the results of the last probes and sends no request.
func TestReport(t *testing.T) {
	good, bad := &providerStub{}, &providerStub{err: &pipeline.RefusedError{Status: 401, Text: "wrong key"}}
	c := &Checker{
		Guards: &Guards{}, Clients: &Clients{
			Recognizers: map[string]pipeline.Recognizer{"good": good},
			Models:      map[string]pipeline.Model{"bad": bad}, Voices: map[string]pipeline.Voice{"bad": bad},
		},
	}
	e := pipeline.Engines{
		ASR: pipeline.Engine{Provider: "good"}, LLM: pipeline.Engine{Provider: "bad", Model: "m"},
		TTS: pipeline.Engine{Provider: "elsewhere", Fallback: &pipeline.Engine{Provider: "bad"}},
	}
	for _, r := range c.Report(e) {
		if !r.At.IsZero() || r.Error != "" {
			t.Errorf("before a probe: %+v", r)
		}
	}
	c.Check(t.Context(), e, true)
	asked := good.asked.Load() + bad.asked.Load()
	before := c.Report(e)
	if n := good.asked.Load() + bad.asked.Load(); n != asked || asked != 3 {
		t.Errorf("%d requests by the probe, then %d by the report", asked, n-asked)
	}
	for i, want := range []EngineCheck{
		{Serves: "asr", Provider: "good"},
		{Serves: "llm", Provider: "bad", Model: "m", Error: "401 Unauthorized: wrong key", Misconfigured: true},
		{Serves: "tts", Provider: "elsewhere"},
		{Serves: "tts", Provider: "bad", Error: "401 Unauthorized: wrong key", Misconfigured: true},
	} {
		got := before[i]
		if got.At.IsZero() != (want.Provider == "elsewhere") {
			t.Errorf("%s %s: at %v", got.Serves, got.Provider, got.At)
		}
		if got.At = (time.Time{}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	bad.err = errors.New("connection refused")
	for range maxFailures - 1 { // the failed probe counts as one failure
		v, err := c.Guards.of("tts", "bad").begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v.finish(bad.err)
	}
	if got := c.Report(e)[3]; !got.Misconfigured {
		t.Errorf("an open breaker hides the misconfiguration: %+v", got)
	}
	other := []EngineCheck{{}, {At: time.Now().Add(time.Minute)}, {}, {}}
	if got := Newest(before, other); got[1] != other[1] || got[0] != before[0] {
		t.Errorf("the later result is not kept: %+v", got)
	}
}
