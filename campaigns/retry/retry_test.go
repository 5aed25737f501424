package retry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func config(tb testing.TB, s Strategy, text string) Config {
	tb.Helper()
	c, err := Parse(s, json.RawMessage(text))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestParse(t *testing.T) {
	if c := config(t, Standard, ""); c.Attempts != 1 || c.Interval != 900 {
		t.Errorf("defaults: %+v", c)
	}
	for text, s := range map[string]Strategy{
		`{"attempts":0}`: Standard, `{"attempts":11}`: Standard, `{"interval_s":59}`: Standard, `{"interval_s":604801}`: Standard,
		`{"attempts":true}`: Standard, `{"rules":[{"on":["busy"],"action":"stop"}]}`: Standard, `{}`: Expert, `{"rules":[]}`: Expert,
		`{"rules":[{"action":"stop"}]}`:                                                                             Expert,
		`{"rules":[{"on":["sleepy"],"action":"stop"}]}`:                                                             Expert,
		`{"rules":[{"on":["busy"],"action":"wait"}]}`:                                                               Expert,
		`{"rules":[{"on":["busy"],"action":"redial","interval_s":5}]}`:                                              Expert,
		`{"rules":[{"on":["busy"],"action":"redial","max":2}]}`:                                                     Expert, // attempts is 1
		`{"rules":[{"on":["busy"],"action":"redial","color":"red"}]}`:                                               Expert,
		`{"rules":[{"on":["busy"],"action":"stop","interval_s":60}]}`:                                               Expert,
		`{"attempts":2,"rules":[{"on":["answered"],"action":"redial","at":"callback"}]}`:                            Expert,
		`{"attempts":2,"rules":[{"on":["answered"],"action":"redial","at":"analysis.x","interval_s":60}]}`:          Expert,
		`{"attempts":2,"rules":[{"on":["answered"],"action":"redial","when":{"mood":1}}]}`:                          Expert,
		`{"rules":[` + strings.Repeat(`{"on":["busy"],"action":"stop"},`, 20) + `{"on":["busy"],"action":"stop"}]}`: Expert,
		``: "clever",
	} {
		if c, err := Parse(s, json.RawMessage(text)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s %s: %+v, %v", s, text, c, err)
		}
	}
}

func TestStandardDelays(t *testing.T) {
	c := config(t, Standard, `{"attempts":6}`)
	ended := time.Unix(1795222586, 0)
	for dials, want := range map[int]time.Duration{1: 15 * time.Minute, 2: time.Hour, 3: 4 * time.Hour, 4: 24 * time.Hour, 5: 24 * time.Hour} {
		d := c.Next(History{Dials: dials, Outcome: NoAnswer}, ended)
		if !d.Redial || d.At.Sub(ended) != want {
			t.Errorf("after %d dials: %+v, want %v", dials, d.At.Sub(ended), want)
		}
	}
	if d := c.Next(History{Dials: 1, Outcome: Busy, Spread: -1}, ended); d.At.Sub(ended) != 15*time.Minute*9/10 {
		t.Errorf("spread: %v", d.At.Sub(ended))
	}
	for _, o := range Outcomes() {
		d := c.Next(History{Dials: 1, Outcome: o}, ended)
		if again := o == NoAnswer || o == Busy || o == Voicemail || o == IVR || o == Failed || o == Congestion; d.Redial != again {
			t.Errorf("%s: %+v", o, d)
		}
	}
}

func TestRules(t *testing.T) {
	c := config(t, Expert, `{"attempts":5,"interval_s":600,"rules":[
		{"on":["no_answer","busy"],"action":"redial","interval_s":3600,"max":2},
		{"on":["no_answer"],"action":"redial"},
		{"on":["answered"],"when":{"analysis.callback_requested":true,"analysis.mood":"good"},"action":"redial","at":"analysis.callback_at"},
		{"on":["declined","invalid_number"],"action":"stop"}]}`)
	ended := time.Unix(1795222586, 0).UTC()
	fields := func(text string) map[string]json.RawMessage {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, x := range []struct {
		name  string
		tried History
		want  Decision
	}{
		{"the first rule", History{Dials: 1, Outcome: Busy}, Decision{Redial: true, Rule: 0, At: ended.Add(time.Hour)}},
		{"the first has no redial left", History{Dials: 3, Outcome: NoAnswer, Uses: map[int]int{0: 2}}, Decision{Redial: true, Rule: 1, At: ended.Add(10 * time.Minute)}},
		{"no rule has a redial left", History{Dials: 3, Outcome: Busy, Uses: map[int]int{0: 2}}, Decision{Rule: -1}},
		{"no attempt left", History{Dials: 5, Outcome: NoAnswer}, Decision{Rule: 0}},
		{"stop", History{Dials: 1, Outcome: Declined}, Decision{Rule: 3, Stopped: true}},
		{"no rule matches", History{Dials: 1, Outcome: Voicemail}, Decision{Rule: -1}},
		{
			"a requested time",
			History{Dials: 1, Outcome: Answered, Analysis: fields(`{"callback_requested":true,"mood":"good","callback_at":1795300000}`)},
			Decision{Redial: true, Rule: 2, At: time.Unix(1795300000, 0).UTC()},
		},
		{
			"a time in the past",
			History{Dials: 1, Outcome: Answered, Analysis: fields(`{"callback_requested": true,"mood":"good","callback_at":5}`)},
			Decision{Redial: true, Rule: 2, At: ended.Add(10 * time.Minute)},
		},
		{
			"a time within a minute",
			History{Dials: 1, Outcome: Answered, Analysis: fields(fmt.Sprintf(`{"callback_requested": true,"mood":"good","callback_at":%d}`, ended.Unix()+5))},
			Decision{Redial: true, Rule: 2, At: ended.Add(time.Minute)},
		},
		{"no redial requested", History{Dials: 1, Outcome: Answered, Analysis: fields(`{"callback_requested":false,"mood":"good"}`)}, Decision{Rule: -1}},
		{"no analysis", History{Dials: 1, Outcome: Answered}, Decision{Rule: -1}},
	} {
		if d := c.Next(x.tried, ended); d != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, d, x.want)
		}
	}
	if !c.Analyzes() || config(t, Standard, "").Analyzes() {
		t.Error("Analyzes is wrong")
	}
}

// TestAttemptsAreBounded checks that a contact is dialed at most attempts times, whatever the outcomes, and that
// every redial is in the future.
func TestAttemptsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Strategy: Standard, Attempts: rapid.IntRange(1, 10).Draw(t, "attempts"), Interval: 900}
		if rapid.Bool().Draw(t, "expert") {
			c.Strategy = Expert
			for range rapid.IntRange(1, 4).Draw(t, "rules") {
				c.Rules = append(c.Rules, Rule{
					On:     rapid.SliceOfN(rapid.SampledFrom(Outcomes()), 1, 4).Draw(t, "on"),
					Action: rapid.SampledFrom([]string{redial, stop}).Draw(t, "action"),
				})
			}
		}
		uses := map[int]int{}
		now := time.Unix(1795222586, 0)
		dials := 1
		for ; ; dials++ {
			d := c.Next(History{
				Dials: dials, Outcome: rapid.SampledFrom(Outcomes()).Draw(t, "outcome"), Uses: uses,
				Spread: rapid.Float64Range(-2, 2).Draw(t, "spread"),
			}, now)
			if !d.Redial {
				break
			}
			if !d.At.After(now) {
				t.Fatalf("redial at %v, now is %v", d.At, now)
			}
			uses[d.Rule]++
			now = d.At
		}
		if dials > c.Attempts {
			t.Fatalf("%d dials, %d attempts", dials, c.Attempts)
		}
	})
}
