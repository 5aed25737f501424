package apply

import (
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

// change sets in a definition what the file gives.
func (a Agent) change(d *agents.Definition) {
	set(&d.Greeting, a.Greeting)
	set(&d.Prompt, a.Prompt)
	set(&d.Language, a.Language)
	set(&d.Voicemail, a.Voicemail)
	set(&d.VoicemailMessage, a.Message)
	set(&d.Recording, a.Recording)
	set(&d.MaxDurationS, a.MaxDurationS)
	set(&d.Limits, a.Limits)
	set(&d.Variables, a.Variables)
	set(&d.Pronunciation, a.Pronunciation)
	if a.Tools != nil {
		d.Tools = nil
		for _, t := range *a.Tools {
			d.Tools = append(d.Tools, t.stored())
		}
	}
	if an := a.Analysis; an != nil {
		set(&d.Analysis.Summary, an.Summary)
		set(&d.Analysis.Success, an.Success)
		set(&d.Analysis.Sentiment, an.Sentiment)
		set(&d.Analysis.Fields, an.Fields)
	}
	if a.Speech != nil {
		engine(&d.Speech.ASR, a.Speech.ASR)
		engine(&d.Speech.LLM, a.Speech.LLM)
		engine(&d.Speech.TTS, a.Speech.TTS)
	}
}

// stored is the tool as an agent has it. What its server is told is kept as it
// is, like the password of a trunk.
func (t Tool) stored() agents.Tool {
	s := agents.Tool{Definition: tools.Definition{
		Type: t.Type, Description: t.Description, Destinations: t.Destinations, Name: t.Name, Parameters: t.Parameters.RawMessage,
		URL: t.URL, Method: t.Method, TimeoutS: t.TimeoutS, Filler: t.Filler,
	}}
	for name, value := range t.Headers {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[name] = string(value)
	}
	return s
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
