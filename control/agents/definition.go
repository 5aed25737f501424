// Package agents stores the voice agents of organizations. An agent has one draft and any number of published versions.
// The draft can change; published versions cannot.
package agents

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control/phonenumber"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/pronounce"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
)

// Definition is the configuration of an agent.
type Definition struct {
	Greeting string `json:"greeting"`
	Prompt   string `json:"prompt"`
	Language string `json:"language,omitempty"` // BCP 47 language tag
	// Patience is one of Patiences; empty means DefaultPatience.
	Patience string `json:"patience,omitempty"`
	// Voicemail is what the agent does when a machine answers; see Voicemails.
	Voicemail string `json:"voicemail"`
	// VoicemailMessage is the message that the agent leaves on voicemail. If it is empty, the model writes one.
	VoicemailMessage string `json:"voicemail_message,omitempty"`
	Recording        bool   `json:"recording"`
	// Analysis selects the results that are extracted after a call.
	Analysis Analysis         `json:"analysis"`
	Speech   pipeline.Engines `json:"speech"`
	// MaxDurationS is the maximum length of a conversation, in seconds; 0 means no limit.
	MaxDurationS int             `json:"max_duration_s,omitempty"`
	Limits       pipeline.Limits `json:"limits,omitzero"`
	// Variables are the default values of placeholders in the texts.
	Variables map[string]string `json:"variables,omitempty"`
	// Pronunciation maps written words to the form that the voice speaks.
	Pronunciation map[string]string `json:"pronunciation,omitempty"`
	Tools         []Tool            `json:"tools,omitempty"`
}

// Tool is a tool with the HTTP headers for its server. Headers are secrets, so they are stored apart from the
// definition.
type Tool struct {
	tools.Definition
	Headers map[string]string `json:"-"`
}

// secrets encodes the headers of all tools. It returns "" if there are none.
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

// Decode decodes a stored definition and its secrets.
func Decode(definition []byte, secrets media.Secret) (Definition, error) {
	var d Definition
	if err := json.Unmarshal(definition, &d); err != nil || secrets == "" {
		return d, err
	}
	var all []map[string]string
	if err := json.Unmarshal([]byte(secrets), &all); err != nil || len(all) != len(d.Tools) {
		return d, errors.New("invalid tool headers") // omits the headers, which are secret
	}
	for i, h := range all {
		d.Tools[i].Headers = h
	}
	return d, nil
}

// ToolDefinitions returns the tools including their headers.
func (d Definition) ToolDefinitions() []tools.Definition {
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

// Default returns the definition of a new agent. Its calls are recorded and analyzed, and it hangs up on voicemail.
func Default() Definition {
	return Definition{
		Voicemail: "hangup",
		Recording: true,
		Analysis:  Analysis{Summary: true, Success: true, Sentiment: true, Fields: []Field{}},
	}
}

// Voicemails lists the accepted values of Voicemail.
func Voicemails() []string {
	return []string{string(pipeline.VoicemailHangup), string(pipeline.VoicemailLeave), string(pipeline.VoicemailContinue)}
}

// DefaultPatience is the patience of an agent that has none.
const DefaultPatience = string(pipeline.Balanced)

// Patiences lists the accepted values of Patience.
func Patiences() []string { return pipeline.Patiences() }

func checkOneOf(name, value string, accepted []string) error {
	if !slices.Contains(accepted, value) {
		return fmt.Errorf("%s is %q: use one of %s", name, value, strings.Join(accepted, ", "))
	}
	return nil
}

// Check returns an error if the definition is invalid.
func (d Definition) Check() error {
	if err := errors.Join(
		checkOneOf("voicemail", d.Voicemail, Voicemails()),
		checkOneOf("patience", cmp.Or(d.Patience, DefaultPatience), Patiences()),
	); err != nil {
		return err
	}
	if d.MaxDurationS != 0 && (d.MaxDurationS < 30 || d.MaxDurationS > 7200) {
		return fmt.Errorf("max_duration_s is %d: use 30 to 7200, or 0 for no limit", d.MaxDurationS)
	}
	for _, limit := range []int{d.Limits.Turns, d.Limits.ToolCalls, d.Limits.Tokens} {
		if limit < 0 {
			return fmt.Errorf("limits: %d: use 1 or more, or 0 for the default", limit)
		}
	}
	for name := range d.Variables {
		if !variable.MatchString(name) {
			return fmt.Errorf("variables: %q: use a letter or _, then at most 63 letters, digits and _", name)
		}
	}
	for _, text := range [][2]string{{"greeting", d.Greeting}, {"prompt", d.Prompt}, {"voicemail_message", d.VoicemailMessage}} {
		if err := checkPlaceholders(text[1]); err != nil {
			return fmt.Errorf("%s: %w", text[0], err)
		}
	}
	if err := pronounce.Check(d.Pronunciation); err != nil {
		return fmt.Errorf("pronunciation: %w", err)
	}
	// Any host is accepted here. The operator's rules for hosts apply when the tools are built.
	if err := tools.Check(d.ToolDefinitions(), safedial.Rules{Anywhere: true}); err != nil {
		return err
	}
	if err := d.checkTransfers(); err != nil {
		return err
	}
	if err := d.Analysis.check(); err != nil {
		return err
	}
	return d.checkSpeech()
}

// checkTransfers rejects transfer numbers that cannot be dialed.
func (d Definition) checkTransfers() error {
	for i, t := range d.Tools {
		for n, to := range t.Destinations {
			if _, err := phonenumber.Dialable(to.Number); err != nil {
				return fmt.Errorf("tools[%d].destinations[%d].number: %q: %w", i, n, to.Number, err)
			}
		}
	}
	return nil
}

func (d Definition) checkSpeech() error {
	for part, e := range map[string]pipeline.Engine{"asr": d.Speech.ASR, "llm": d.Speech.LLM, "tts": d.Speech.TTS} {
		at, chain := "speech."+part, e.Chain()
		if len(chain) > 1+pipeline.MaxFallbacks {
			return fmt.Errorf("%s has %d fallbacks; accepted: at most %d", at, len(chain)-1, pipeline.MaxFallbacks)
		}
		for _, one := range chain {
			if one.Provider == "" {
				return fmt.Errorf("%s.provider is missing", at)
			}
			if err := one.Check(); err != nil {
				return fmt.Errorf("%s.%w", at, err)
			}
			at += ".fallback"
		}
	}
	return nil
}
