package callview

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
)

func TestLatency(t *testing.T) {
	var turns []json.RawMessage
	for _, s := range []string{
		`{"turn":0,"metrics":{"tts_ms":100,"turn_ms":110}}`, `{"turn":1,"metrics":{"tts_ms":300,"turn_ms":900,"llm_ms":250.5}}`,
		`{"turn":2,"metrics":{"tts_ms":200,"turn_ms":500}}`, `broken`,
	} {
		turns = append(turns, json.RawMessage(s))
	}
	want := Latency{Turns: 4, LLMMS: &Percentiles{250.5, 250.5}, TTSMS: &Percentiles{200, 300}, TurnMS: &Percentiles{500, 900}}
	if got := latency(turns); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestDurations(t *testing.T) {
	at := func(s float64) time.Time { return time.UnixMilli(1795222586000 + int64(s*1000)) }
	for _, tt := range []struct {
		c              control.Call
		ring, duration any
	}{
		{control.Call{CreatedAt: at(0)}, nil, nil},
		{control.Call{RingingAt: at(1), EndedAt: at(46)}, 45.0, nil},
		{control.Call{RingingAt: at(1), AnsweredAt: at(3.25), EndedAt: at(10)}, 2.25, 6.75},
		{control.Call{RingingAt: at(1), AnsweredAt: at(3)}, 2.0, nil},
		{control.Call{AnsweredAt: at(3), EndedAt: at(2)}, nil, 0.0},
	} {
		s := View{}.Summary(tt.c)
		for what, v := range map[*float64]any{s.RingS: tt.ring, s.DurationS: tt.duration} {
			if (what == nil) != (v == nil) || what != nil && *what != v {
				t.Errorf("%+v: ring %v, duration %v", tt.c, s.RingS, s.DurationS)
			}
		}
	}
}

func TestE164(t *testing.T) {
	for digits, want := range map[string]string{
		"12025550123": "+12025550123", "2025550123": "2025550123", "87011234567": "87011234567", "0012025550123": "0012025550123", "4420718387501234567": "4420718387501234567",
	} {
		if got := e164(digits); got != want {
			t.Errorf("%s: %s", digits, got)
		}
	}
}

func TestLinkOfReadyRecordings(t *testing.T) {
	v := View{Link: func(id, _ string) string { return "link of " + id }}
	for _, s := range []control.RecordingStatus{control.RecordingNone, control.RecordingInProgress, control.RecordingFinalizing, control.RecordingFailed, control.RecordingDisabled} {
		if u := v.Summary(control.Call{ID: "c", RecordingStatus: s}).RecordingURL; u != nil {
			t.Errorf("%s: %s", s, *u)
		}
	}
	if u := v.Summary(control.Call{ID: "c", RecordingStatus: control.RecordingReady}).RecordingURL; u == nil || *u != "link of c" {
		t.Errorf("ready: %v", u)
	}
}
