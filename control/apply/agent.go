package apply

import (
	"encoding/json"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/pipeline"
)

// change sets in a definition what the file gives.
func (a Agent) change(d *agents.Definition) {
	set(&d.Greeting, a.Greeting)
	set(&d.Prompt, a.Prompt)
	set(&d.Language, a.Language)
	set(&d.Voicemail, a.Voicemail)
	set(&d.Recording, a.Recording)
	set(&d.MaxDurationS, a.MaxDurationS)
	if an := a.Analysis; an != nil {
		set(&d.Analysis.Summary, an.Summary)
		set(&d.Analysis.Success, an.Success)
		if an.Fields != nil {
			d.Analysis.Fields = []json.RawMessage{}
			for _, f := range *an.Fields {
				d.Analysis.Fields = append(d.Analysis.Fields, f.RawMessage)
			}
		}
	}
	if a.Speech != nil {
		engine(&d.Speech.ASR, a.Speech.ASR)
		engine(&d.Speech.LLM, a.Speech.LLM)
		engine(&d.Speech.TTS, a.Speech.TTS)
	}
}

func engine(to *pipeline.Engine, given *Engine) {
	if given != nil {
		*to = pipeline.Engine{Provider: given.Provider, Model: given.Model, Voice: given.Voice}
		if given.Fallback != nil {
			to.Fallback = &pipeline.Engine{}
			engine(to.Fallback, given.Fallback)
		}
	}
}
