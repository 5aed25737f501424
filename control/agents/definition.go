// Package agents keeps the voice agents of organizations: a draft that may
// change, and published versions that never do.
package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// A Definition is what an agent is.
type Definition struct {
	Greeting string `json:"greeting"`
	Prompt   string `json:"prompt"`
	Language string `json:"language,omitempty"` // BCP 47
	// Voicemail is what to do when a machine answers.
	Voicemail string `json:"voicemail"`
	Recording bool   `json:"recording"`
	// Analysis is what is to be told about a call after its end.
	Analysis Analysis         `json:"analysis"`
	Speech   pipeline.Engines `json:"speech"`
	// MaxDurationS bounds a conversation, in seconds; 0 for no limit.
	MaxDurationS int `json:"max_duration_s,omitempty"`
}

// Analysis is what a finished call is asked for.
type Analysis struct {
	Summary bool              `json:"summary"`
	Success bool              `json:"success"`
	Fields  []json.RawMessage `json:"fields"`
}

// Default is what an agent is before anything is said about it: recorded,
// analysed, and gone when a machine answers.
func Default() Definition {
	return Definition{
		Voicemail: "hangup",
		Recording: true,
		Analysis:  Analysis{Summary: true, Success: true, Fields: []json.RawMessage{}},
	}
}

// Voicemails lists what an agent may do when a machine answers.
func Voicemails() []string { return []string{"hangup", "leave_message", "continue"} }

// Check returns what is wrong with a definition.
func (d Definition) Check() error {
	if !slices.Contains(Voicemails(), d.Voicemail) {
		return fmt.Errorf("voicemail is %q: use one of %s", d.Voicemail, strings.Join(Voicemails(), ", "))
	}
	if d.MaxDurationS != 0 && (d.MaxDurationS < 30 || d.MaxDurationS > 7200) {
		return fmt.Errorf("max_duration_s is %d: use 30 to 7200, or 0 for no limit", d.MaxDurationS)
	}
	for part, e := range map[string]pipeline.Engine{"asr": d.Speech.ASR, "llm": d.Speech.LLM, "tts": d.Speech.TTS} {
		if e.Provider == "" {
			return fmt.Errorf("speech.%s.provider is missing", part)
		}
		if f := e.Fallback; f != nil && f.Provider == "" {
			return fmt.Errorf("speech.%s.fallback.provider is missing", part)
		} else if f != nil && f.Fallback != nil {
			return fmt.Errorf("speech.%s.fallback.fallback: a fallback has none of its own", part)
		}
	}
	return nil
}

// place is a variable's place in a text: {{name}}.
var place = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}`)

// Fill puts the values of variables at their places in a text. A place without
// a value becomes empty: nobody wants to hear a placeholder read out.
func Fill(text string, values map[string]any) string {
	return place.ReplaceAllStringFunc(text, func(m string) string {
		switch v := values[place.FindStringSubmatch(m)[1]].(type) {
		case nil:
			return ""
		case string:
			return v
		default:
			b, err := json.Marshal(v)
			if err != nil {
				return ""
			}
			return string(b)
		}
	})
}
