package agents

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

func TestFill(t *testing.T) {
	values := map[string]any{"name": "Ada", "n": json.Number("12"), "list": []any{"a"}, "inner": "{{name}}"}
	for text, want := range map[string]string{
		"": "", "Hello {{name}}!": "Hello Ada!", "{{ name }}{{n}}": "Ada12", "{{missing}}.": ".", "{{list}}": `["a"]`,
		"{{inner}}": "{{name}}", "{name} {{}} {{1x}}": "{name} {{}} {{1x}}",
	} {
		if got := Fill(text, values); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func transferTo(number string) Tool {
	return Tool{Definition: tools.Definition{Type: tools.TransferCall, Destinations: []tools.Destination{{Number: number}}}}
}

func TestCheck(t *testing.T) {
	fake := pipeline.Engine{Provider: "fake"}
	good := Default()
	good.Speech = pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Definition){
		"voicemail": func(d *Definition) { d.Voicemail = "" }, "patience": func(d *Definition) { d.Patience = "slow" }, "short": func(d *Definition) { d.MaxDurationS = 29 },
		"long": func(d *Definition) { d.MaxDurationS = 7201 }, "no voice": func(d *Definition) { d.Speech.TTS.Provider = "" },
		"no second":    func(d *Definition) { d.Speech.TTS.Fallback = &pipeline.Engine{} },
		"limits":       func(d *Definition) { d.Limits.Turns = -1 },
		"variables":    func(d *Definition) { d.Variables = map[string]string{"a b": ""} },
		"spoken":       func(d *Definition) { d.Pronunciation = map[string]string{"a b": "c"} },
		"extension":    func(d *Definition) { d.Tools = []Tool{transferTo("+1 202 555 0150 ext 5")} },
		"too short":    func(d *Definition) { d.Tools = []Tool{transferTo("+1202555015")} },
		"tools":        func(d *Definition) { d.Tools = []Tool{{}} },
		"field":        func(d *Definition) { d.Analysis.Fields = []Field{{Name: "a"}} },
		"field values": func(d *Definition) { d.Analysis.Fields = []Field{{Name: "a", Type: "enum"}} },
		"six voices": func(d *Definition) {
			for range pipeline.MaxFallbacks + 1 {
				before := d.Speech.TTS
				d.Speech.TTS = pipeline.Engine{Provider: "fake", Fallback: &before}
			}
		},
		"option of a fallback": func(d *Definition) {
			d.Speech.TTS.Fallback = &pipeline.Engine{Provider: "fake", Options: pipeline.Options{Speed: 3}}
		},
	} {
		d := good
		if spoil(&d); d.Check() == nil {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
}

// TestCheckPlaces checks that malformed placeholders are rejected.
func TestCheckPlaces(t *testing.T) {
	fake := pipeline.Engine{Provider: "fake"}
	for text, want := range map[string]string{
		"Hello {{name}}, {{ first_name }}. {a} }} {": "",
		"Hello {{customer.name}}.":                   `"{{customer.name}}"`,
		"Hello {{ first-name }}.":                    `"{{ first-name }}"`,
		"Hello {{имя}}.":                             `"{{имя}}"`,
		"Hello {{}}.":                                `"{{}}"`,
		"Hello {{name}} {{1x}}.":                     `"{{1x}}"`,
		"Hello {{{name}}}.":                          `"{{{name}}"`,
		"Hello {{name":                               `"{{name"`,
		"{{" + strings.Repeat("ä", 100) + "}}":       `"{{` + strings.Repeat("ä", 62) + `…"`,
		"{{if a}}\nHello {{name}}.{{end}}":           `"{{if a}}"`,
	} {
		for part, d := range map[string]Definition{"greeting": {Greeting: text}, "prompt": {Prompt: text}, "voicemail_message": {VoicemailMessage: text}} {
			d.Voicemail, d.Speech = "hangup", pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
			err := d.Check()
			if want == "" && err != nil {
				t.Errorf("%s %q: %v", part, text, err)
			}
			if want != "" && (err == nil || !strings.HasPrefix(err.Error(), part+": "+want+" is not a valid placeholder; use ")) {
				t.Errorf("%s %q: %v, want %s", part, text, err, want)
			}
		}
	}
}

func TestMissing(t *testing.T) {
	d := Definition{
		Greeting: "Hello {{name}} of {{ firm }}.", Prompt: "Sell {{what}} to {{name}} at {{price}}.",
		Variables: map[string]string{"what": "tea", "price": "1"},
	}
	values := d.Values("Ada", map[string]any{"price": json.Number("2")})
	if got := d.Missing(values); len(got) != 1 || got[0] != "firm" {
		t.Errorf("missing %q", got)
	}
	if got := Fill(d.Prompt, values); got != "Sell tea to Ada at 2." {
		t.Errorf("filled %q", got)
	}
	if got := d.Missing(d.Values("", nil)); len(got) != 2 || got[0] != "name" || got[1] != "firm" {
		t.Errorf("without values %q are missing", got)
	}
}

// TestHeaders checks that the headers of tools are stored and read back unchanged, and that they are never printed.
func TestHeaders(t *testing.T) {
	d := Definition{Tools: []Tool{{Definition: tools.Definition{Type: tools.HTTP, Name: "f"}, Headers: map[string]string{"X-Key": "canary"}}}}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := d.secrets()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(b, secrets)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "canary") {
		t.Errorf("stored: %s", b)
	}
	for _, bad := range []media.Secret{"canary", "[]", `[{},{"X":"canary"}]`} {
		if _, err = Decode(b, bad); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("headers that do not fit: %v", err)
		}
	}
	built := back.ToolDefinitions()
	if got := string(built[0].Headers["X-Key"]); got != "canary" {
		t.Errorf("the header is %q", got)
	}
	if text := fmt.Sprintf("%+v", built); strings.Contains(text, "canary") {
		t.Errorf("printed: %s", text)
	}
}
