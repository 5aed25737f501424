package agents

import (
	"encoding/json"
	"testing"

	"github.com/parley-voice/parley/pipeline"
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

func TestCheck(t *testing.T) {
	fake := pipeline.Engine{Provider: "fake"}
	good := Default()
	good.Speech = pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Definition){
		"voicemail": func(d *Definition) { d.Voicemail = "" }, "short": func(d *Definition) { d.MaxDurationS = 29 },
		"long": func(d *Definition) { d.MaxDurationS = 7201 }, "no voice": func(d *Definition) { d.Speech.TTS.Provider = "" },
		"no second": func(d *Definition) { d.Speech.TTS.Fallback = &pipeline.Engine{} },
		"a third":   func(d *Definition) { d.Speech.TTS.Fallback = &pipeline.Engine{Provider: "fake", Fallback: &fake} },
	} {
		d := good
		if spoil(&d); d.Check() == nil {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
}
