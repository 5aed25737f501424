// Package agents keeps the voice agents of organizations: a draft that may
// change, and published versions that never do.
package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/egress"
	"github.com/parley-voice/parley/pipeline/pronounce"
	"github.com/parley-voice/parley/pipeline/tools"
)

// A Definition is what an agent is.
type Definition struct {
	Greeting string `json:"greeting"`
	Prompt   string `json:"prompt"`
	Language string `json:"language,omitempty"` // BCP 47
	// Voicemail is what to do when a machine answers.
	Voicemail string `json:"voicemail"`
	// VoicemailMessage is what to leave on one; empty has the model say.
	VoicemailMessage string `json:"voicemail_message,omitempty"`
	Recording        bool   `json:"recording"`
	// Analysis is what is to be told about a call after its end.
	Analysis Analysis         `json:"analysis"`
	Speech   pipeline.Engines `json:"speech"`
	// MaxDurationS bounds a conversation, in seconds; 0 for no limit.
	MaxDurationS int             `json:"max_duration_s,omitempty"`
	Limits       pipeline.Limits `json:"limits,omitzero"`
	// Variables are the values of places that a call gives none for.
	Variables map[string]string `json:"variables,omitempty"`
	// Pronunciation is how words are spoken.
	Pronunciation map[string]string `json:"pronunciation,omitempty"`
	Tools         []Tool            `json:"tools,omitempty"`
}

// A Tool is a tool, and what its server must be told. The headers stand apart
// from what is stored of a definition: they are secrets.
type Tool struct {
	tools.Definition
	Headers map[string]string `json:"-"`
}

// secrets are the headers of all tools as one text, "" where there are none.
func (d Definition) secrets() (media.Secret, error) {
	all, some := make([]map[string]string, len(d.Tools)), false
	for i, t := range d.Tools {
		all[i] = t.Headers
		some = some || len(t.Headers) > 0
	}
	if !some {
		return "", nil
	}
	text, err := json.Marshal(all)
	return media.Secret(text), err
}

// Read reads a definition and its secrets as they are stored.
func Read(definition []byte, secrets media.Secret) (Definition, error) {
	var d Definition
	if err := json.Unmarshal(definition, &d); err != nil || secrets == "" {
		return d, err
	}
	var all []map[string]string
	if err := json.Unmarshal([]byte(secrets), &all); err != nil || len(all) != len(d.Tools) {
		return d, errors.New("the headers of its tools cannot be read") // they are not repeated
	}
	for i, h := range all {
		d.Tools[i].Headers = h
	}
	return d, nil
}

// Definitions are the tools of the agent.
func (d Definition) Definitions() []tools.Definition {
	var all []tools.Definition
	for _, t := range d.Tools {
		t.Definition.Headers = map[string]media.Secret{}
		for name, value := range t.Headers {
			t.Definition.Headers[name] = media.Secret(value)
		}
		all = append(all, t.Definition)
	}
	return all
}

// Default is what an agent is before anything is said about it: recorded,
// analysed, and gone when a machine answers.
func Default() Definition {
	return Definition{
		Voicemail: "hangup",
		Recording: true,
		Analysis:  Analysis{Summary: true, Success: true, Sentiment: true, Fields: []Field{}},
	}
}

// Voicemails lists what an agent may do when a machine answers.
func Voicemails() []string {
	return []string{string(pipeline.VoicemailHangup), string(pipeline.VoicemailLeave), string(pipeline.VoicemailContinue)}
}

// Check returns what is wrong with a definition.
func (d Definition) Check() error {
	if !slices.Contains(Voicemails(), d.Voicemail) {
		return fmt.Errorf("voicemail is %q: use one of %s", d.Voicemail, strings.Join(Voicemails(), ", "))
	}
	if d.MaxDurationS != 0 && (d.MaxDurationS < 30 || d.MaxDurationS > 7200) {
		return fmt.Errorf("max_duration_s is %d: use 30 to 7200, or 0 for no limit", d.MaxDurationS)
	}
	for _, limit := range []int{d.Limits.Turns, d.Limits.ToolCalls, d.Limits.Tokens} {
		if limit < 0 {
			return fmt.Errorf("limits: %d: use 1 or more, or 0 for the usual limit", limit)
		}
	}
	for name := range d.Variables {
		if !variable.MatchString(name) {
			return fmt.Errorf("variables: %q: a name is a letter or _, and then at most 63 letters, digits and _", name)
		}
	}
	for _, text := range [][2]string{{"greeting", d.Greeting}, {"prompt", d.Prompt}, {"voicemail_message", d.VoicemailMessage}} {
		if err := checkPlaces(text[1]); err != nil {
			return fmt.Errorf("%s: %w", text[0], err)
		}
	}
	if err := pronounce.Check(d.Pronunciation); err != nil {
		return fmt.Errorf("pronunciation: %w", err)
	}
	// Which hosts the operator allows is known where the tools are built.
	if err := tools.Check(d.Definitions(), egress.Rules{Anywhere: true}); err != nil {
		return err
	}
	if err := d.Analysis.check(); err != nil {
		return err
	}
	return d.checkSpeech()
}

func (d Definition) checkSpeech() error {
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
