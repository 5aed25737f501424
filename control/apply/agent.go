package apply

import (
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/pipeline/tools"
)

// applyTo copies the given fields into a definition.
func (a Agent) applyTo(d *agents.Definition) {
	setIf(&d.Greeting, a.Greeting)
	setIf(&d.Prompt, a.Prompt)
	setIf(&d.Language, a.Language)
	setIf(&d.Voicemail, a.Voicemail)
	setIf(&d.VoicemailMessage, a.Message)
	setIf(&d.Recording, a.Recording)
	setIf(&d.MaxDurationS, a.MaxDurationS)
	setIf(&d.Limits, a.Limits)
	setIf(&d.Variables, a.Variables)
	setIf(&d.Pronunciation, a.Pronunciation)
	if a.Tools != nil {
		d.Tools = nil
		for _, t := range *a.Tools {
			d.Tools = append(d.Tools, t.toAgentTool())
		}
	}
	if an := a.Analysis; an != nil {
		setIf(&d.Analysis.Summary, an.Summary)
		setIf(&d.Analysis.Success, an.Success)
		setIf(&d.Analysis.Sentiment, an.Sentiment)
		setIf(&d.Analysis.Fields, an.Fields)
	}
	if a.Speech != nil {
		setIf(&d.Speech.ASR, a.Speech.ASR)
		setIf(&d.Speech.LLM, a.Speech.LLM)
		setIf(&d.Speech.TTS, a.Speech.TTS)
	}
}

// toAgentTool returns the tool of an agent. Headers are copied unchanged, like the password of a trunk.
func (t Tool) toAgentTool() agents.Tool {
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
