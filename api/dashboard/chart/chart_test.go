package chart

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// checkSVG fails if a drawing is not well-formed XML, or contains a style or a script.
func checkSVG(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "script" || start.Name.Local == "style" {
			t.Errorf("a %s in %s", start.Name.Local, svg)
		}
		for _, a := range start.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("%s=%q in %s", a.Name.Local, a.Value, svg)
			}
		}
	}
}

func TestTurns(t *testing.T) {
	all := Turns([]json.RawMessage{
		json.RawMessage(`{"turn":0,"metrics":{"tts_ms":100,"out_ms":10,"turn_ms":110},"ending":"answered","reason":"answered"}`),
		json.RawMessage(`broken`),
		json.RawMessage(`{"turn":1,"metrics":{"vad_ms":200,"llm_ms":1500,"tts_ms":300,"turn_ms":2000,"estimated":true},"ending":"interrupted","interrupted":true,"merged_from":2}`),
		json.RawMessage(`{"turn":2,"metrics":{"vad_ms":"x"},"ending":"silent_by_policy"}`),
	})
	if len(all) != 3 || all[1].Total != 2000 || !all[1].Interrupted || !all[1].Estimated || all[1].MergedFrom != 2 || len(all[1].Parts) != 3 {
		t.Fatalf("%+v", all)
	}
	for _, turn := range all {
		checkSVG(t, string(turn.Bar))
	}
	if b := string(all[1].Bar); !strings.Contains(b, `aria-label="Turn 1: 2000 ms, silence 200 ms, model 1500 ms, voice 300 ms"`) || !strings.Contains(b, `x="100.0" y="0" width="750.0"`) {
		t.Errorf("%s", b)
	}
	if b := string(all[2].Bar); !strings.Contains(b, "no answer was heard") {
		t.Errorf("%s", b)
	}
}

// TestGreeting checks that the greeting does not set the scale of the answers, and a disclosure does not count as its time.
func TestGreeting(t *testing.T) {
	all := Turns([]json.RawMessage{
		json.RawMessage(`{"turn":0,"metrics":{"eou_wait_ms":300,"tts_ms":100,"turn_ms":400,"raw":{"disclosure_ms":6000}},"ending":"answered"}`),
		json.RawMessage(`{"turn":0,"metrics":{"eou_wait_ms":6400,"turn_ms":6400},"ending":"answered"}`),
		json.RawMessage(`{"turn":1,"metrics":{"vad_ms":200,"llm_ms":300,"turn_ms":500,"raw":{}},"ending":"answered"}`),
	})
	for _, turn := range all {
		checkSVG(t, string(turn.Bar))
	}
	if b := string(all[0].Bar); all[0].Disclosure != 6000 || all[0].Total != 400 || !strings.Contains(b, "voice 100 ms; then the disclosure, 6.0 s") || !strings.Contains(b, `class="p-dis" d="M400.0 0h4.0`) || strings.Contains(b, "M1000") {
		t.Errorf("%+v", all[0])
	}
	if b := string(all[1].Bar); !strings.Contains(b, `width="1000.0" height="12"`) {
		t.Errorf("%s", b)
	}
	if b := string(all[2].Bar); !strings.Contains(b, `x="200.0" y="0" width="300.0"`) {
		t.Errorf("%s", b)
	}
}

func TestDrawings(t *testing.T) {
	evil := `"><script>x</script>`
	for _, svg := range []string{
		string(Columns(evil, "hours", []Column{{Label: evil, Title: evil, N: 10, Part: 4}, {}, {N: 1}}, 12)),
		string(Columns("none", "hours", nil, 0)),
		string(Lanes([]Stretch{{Start: 1, End: 2.5}, {Agent: true, Start: 0, End: 1, Line: 1}}, 0)),
		string(Lanes(nil, 0)), string(Meter(evil, 3, 2)), string(Meter("none", 0, 0)),
	} {
		checkSVG(t, svg)
	}
}
