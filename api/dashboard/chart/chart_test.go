package chart

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/ui"
)

// english returns the English texts.
func english(t *testing.T) Texts {
	t.Helper()
	texts, err := ui.ReadTexts(nil)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestPhases checks that each phase has a label and a help text.
func TestPhases(t *testing.T) {
	for _, p := range Phases(english(t)) {
		if strings.HasPrefix(p.Label, "chart.") || strings.HasPrefix(p.Help, "chart.") {
			t.Errorf("%+v", p)
		}
	}
}

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
	all := Turns(english(t), []json.RawMessage{
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
	if b := string(all[1].Bar); !strings.Contains(b, `aria-label="Turn 1: 2,000 ms, silence 200 ms, model 1,500 ms, voice 300 ms"`) || !strings.Contains(b, `x="100.0" y="0" width="750.0"`) {
		t.Errorf("%s", b)
	}
	if b := string(all[2].Bar); !strings.Contains(b, "no answer was heard") {
		t.Errorf("%s", b)
	}
}

// TestGreeting checks that the greeting does not set the scale of the answers, and a disclosure does not count as its time.
func TestGreeting(t *testing.T) {
	all := Turns(english(t), []json.RawMessage{
		json.RawMessage(`{"turn":0,"metrics":{"eou_wait_ms":300,"tts_ms":100,"turn_ms":400,"raw":{"disclosure_ms":6000}},"ending":"answered"}`),
		json.RawMessage(`{"turn":0,"metrics":{"eou_wait_ms":6400,"turn_ms":6400},"ending":"answered"}`),
		json.RawMessage(`{"turn":1,"metrics":{"vad_ms":200,"llm_ms":300,"turn_ms":500,"raw":{}},"ending":"answered"}`),
	})
	for _, turn := range all {
		checkSVG(t, string(turn.Bar))
	}
	if all[0].Slowest || !all[1].Slowest || all[2].Slowest {
		t.Errorf("the slowest of %+v", all)
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
		string(Timeline(english(t), []Stretch{{Start: 1, End: 2.5}, {Agent: true, Start: 0, End: 1, Line: 1}}, nil, 0)),
		string(Timeline(english(t), nil, []Turn{{At: .1, Parts: []Part{{Phases(english(t))[0], 1e6}}}}, 0)), string(Meter(evil, 3, 2)), string(Meter("none", 0, 0)),
	} {
		checkSVG(t, svg)
	}
}

// TestTimeCharts checks that each slot of a chart over time is a link with its values in words, and that one link is a
// tab stop.
func TestTimeCharts(t *testing.T) {
	slots := []Slot{{Tick: "<Mon>", Title: `"1" & <2>`, Href: "/calls?a=1&b=2"}, {Title: "none"}, {Title: "three", Href: "/calls"}}
	stacks := Stacks("Outcomes <x>", slots, [][]int{{3, 1}, {0, 0}, {0, 17}}, []string{"o0", "o1"})
	band := Band("Response", slots, []Range{{300, 900, true}, {}, {400, 1700, true}}, Short)
	for _, c := range []struct {
		svg  string
		want []string
	}{
		{string(stacks), []string{
			"<span>20</span><span>10</span><span>0</span>", `aria-label="Outcomes &lt;x&gt;"`, `<rect class="o0" x="3.333%" y="85.000%" width="26.667%" height="15.000%"/>`,
			`<rect class="o1" x="3.333%" y="80.000%"`, `<rect class="o1" x="70.000%" y="15.000%"`, "&lt;Mon&gt;</text>",
		}},
		{string(band), []string{
			"<span>2k</span><span>1k</span>", `<path class="high" d="M0.10 55.00L0.50 55.00L0.90 55.00"/>`, `<path class="low" d="M2.10 80.00`,
		}},
	} {
		checkSVG(t, c.svg)
		want := append(c.want, `<a href="/calls?a=1&amp;b=2" aria-label="&#34;1&#34; &amp; &lt;2&gt;" tabindex="-1">`,
			`<g role="img" aria-label="none">`, `<a href="/calls" aria-label="three" tabindex="0">`)
		for _, text := range want {
			if !strings.Contains(c.svg, text) {
				t.Errorf("no %s in %s", text, c.svg)
			}
		}
	}
}

// TestTicks checks that no tick covers the one before it, and none leaves the plot.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		slots, every, from int
		tick               string
		want               string
	}{
		{24, 6, 5, "12:00 PM", "20.833 start 45.833 start 70.833 start"}, // the fourth would begin at 80
		{25, 4, 0, "Mon", "0.000 start 16.000 start 32.000 start 48.000 start 64.000 start 80.000 start 100.000 end"},
		{30, 5, 3, "Nov 26", "10.000 start 26.667 start 43.333 start 60.000 start 76.667 start"},
		{24, 6, 0, "12:00 AM", "0.000 start 25.000 start 50.000 start 75.000 start"},
	} {
		slots, parts := make([]Slot, c.slots), make([][]int, c.slots)
		for i := c.from; i < c.slots; i += c.every {
			slots[i].Tick = c.tick
		}
		var got []string
		for _, m := range regexp.MustCompile(`x="([0-9.]+)%" y="186" text-anchor="(\w+)"`).FindAllStringSubmatch(string(Stacks("", slots, parts, nil)), -1) {
			got = append(got, m[1]+" "+m[2])
		}
		if all := strings.Join(got, " "); all != c.want {
			t.Errorf("%s: %s, want %s", c.tick, all, c.want)
		}
	}
}

// TestNiceTop checks that the axis holds all values, and that its numbers are round.
func TestNiceTop(t *testing.T) {
	for most, want := range map[float64]float64{0: 2, 1: 2, 2: 2, 3: 4, 5: 6, 7: 10, 10: 10, 11: 20, 41: 60, 99: 100, 1234: 2000, 1e6: 1e6} {
		if top := niceTop(most); top != want {
			t.Errorf("%v: %v, want %v", most, top, want)
		}
	}
}

func TestSpark(t *testing.T) {
	s := string(Spark([]float64{1, math.NaN(), 4, 2}))
	checkSVG(t, s)
	if !strings.Contains(s, `d="M0.2 20.0L0.8 20.0M2.2 2.0L2.8 2.0L3.2 14.0"`) {
		t.Errorf("%s", s)
	}
	for _, flat := range [][]float64{nil, {math.NaN(), 3, math.NaN()}, {0, 0, 0}} {
		if s := Spark(flat); s != "" {
			t.Errorf("no course: %s", s)
		}
	}
}
