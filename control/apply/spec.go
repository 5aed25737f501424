// Package apply writes the operator's YAML file to the database: organizations, agents, trunks and webhooks.
package apply

import (
	"encoding/json"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/retention"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

// Spec is the operator's file. A key that is missing leaves the stored value unchanged.
type Spec struct {
	// Providers are the operator's endpoints, which all organizations may use. The list replaces the stored list.
	Providers     *[]Provider    `yaml:"providers"`
	Organizations []Organization `yaml:"organizations"`
}

// Organization is a tenant with all its objects.
type Organization struct {
	Name            string           `yaml:"name"`
	Timezone        *string          `yaml:"timezone"`
	Market          *string          `yaml:"market"`
	CallingWindow   *Window          `yaml:"calling_window"`
	FrequencyCaps   *Caps            `yaml:"frequency_caps"`
	RequireRegistry *bool            `yaml:"require_registry"`
	IndividualDNC   *string          `yaml:"individual_dnc"`
	Disclosures     *Disclosures     `yaml:"disclosures"`
	Limits          *OrgLimits       `yaml:"limits"`
	Suppression     *[]string        `yaml:"suppression"`
	Retention       *retention.Rules `yaml:"retention"`
	Webhooks        *[]Webhook       `yaml:"webhooks"`
	Agents          []Agent          `yaml:"agents"`
	Trunks          []Trunk          `yaml:"trunks"`
	Grants          *[]Grant         `yaml:"grants"`
	GrantedTrunks   *[]GrantedTrunk  `yaml:"granted_trunks"`
	// Providers are the organization's own endpoints. The list replaces the stored list.
	Providers *[]Provider `yaml:"providers"`
}

// Window is the time of day in which calls are allowed, on some weekdays. Day 0 is Monday.
type Window struct {
	Days  []int  `json:"days"  yaml:"days"`
	Start string `json:"start" yaml:"start"`
	End   string `json:"end"   yaml:"end"`
}

// Caps limit how often one number is called.
type Caps struct {
	Enabled   *bool `json:"enabled,omitempty"    yaml:"enabled"`
	Daily     *int  `json:"daily,omitempty"      yaml:"daily"`
	Rolling7D *int  `json:"rolling_7d,omitempty" yaml:"rolling_7d"`
}

// Disclosures configures the legally required statements at the start of campaign calls.
type Disclosures struct {
	Enabled *bool `json:"enabled,omitempty" yaml:"enabled"` // false: no disclosure is spoken
	// Agent and Organization are the spoken names. An empty name means the stored name.
	Agent        string `json:"agent,omitempty"        yaml:"agent"`
	Organization string `json:"organization,omitempty" yaml:"organization"`
}

// OrgLimits are an organization's limits per day and per month in its time zone; 0 means no limit. Costs include
// providers and trunks, in the currency of the price list.
type OrgLimits struct {
	DailyCalls   int     `json:"daily_calls,omitempty"   yaml:"daily_calls"`
	DailyMinutes int     `json:"daily_minutes,omitempty" yaml:"daily_minutes"`
	DailyCost    float64 `json:"daily_cost,omitempty"    yaml:"daily_cost"`
	MonthlyCost  float64 `json:"monthly_cost,omitempty"  yaml:"monthly_cost"`
}

// Webhook is a URL that receives events.
type Webhook struct {
	URL    string       `yaml:"url"`
	Secret media.Secret `yaml:"secret"`
	// Previous is the previous secret. While it is set, deliveries carry a signature of each secret.
	Previous media.Secret `yaml:"previous_secret"`
	Events   []string     `yaml:"events"`
	Payload  string       `yaml:"payload"` // "full" or "thin"; empty means "full"
	Agents   []string     `yaml:"agents"`
}

// Agent is a voice agent.
type Agent struct {
	Name      string    `yaml:"name"`
	Published *bool     `yaml:"published"`
	Greeting  *string   `yaml:"greeting"`
	Prompt    *string   `yaml:"prompt"`
	Language  *string   `yaml:"language"`
	Voicemail *string   `yaml:"voicemail"`
	Message   *string   `yaml:"voicemail_message"`
	Recording *bool     `yaml:"recording"`
	Analysis  *Analysis `yaml:"analysis"`
	Speech    *Speech   `yaml:"speech"`
	Patience  *string   `yaml:"patience"` // "quick", "balanced" or "careful"
	// MaxDurationS limits the length of a conversation, in seconds.
	MaxDurationS  *int               `yaml:"max_duration_s"`
	Limits        *pipeline.Limits   `yaml:"limits"`
	Variables     *map[string]string `yaml:"variables"`
	Pronunciation *map[string]string `yaml:"pronunciation"`
	Tools         *[]Tool            `yaml:"tools"`
}

// Tool is an action that an agent can take besides speaking.
type Tool struct {
	Type         string                  `yaml:"type"`
	Description  string                  `yaml:"description"`
	Destinations []tools.Destination     `yaml:"destinations"`
	Name         string                  `yaml:"name"`
	Parameters   RawValue                `yaml:"parameters"`
	URL          string                  `yaml:"url"`
	Method       string                  `yaml:"method"`
	Headers      map[string]media.Secret `yaml:"headers"`
	TimeoutS     float64                 `yaml:"timeout_s"`
	Filler       string                  `yaml:"filler"`
}

// Analysis selects the data that is extracted from a call after it ended.
type Analysis struct {
	Summary   *bool           `yaml:"summary"`
	Success   *bool           `yaml:"success"`
	Sentiment *bool           `yaml:"sentiment"`
	Fields    *[]agents.Field `yaml:"fields"`
}

// RawValue is any JSON value.
type RawValue struct{ json.RawMessage }

// UnmarshalYAML implements the yaml.Unmarshaler interface that takes a decode function.
func (o *RawValue) UnmarshalYAML(decode func(any) error) error {
	var v any
	if err := decode(&v); err != nil {
		return err
	}
	text, err := json.Marshal(v)
	o.RawMessage = text
	return err
}

// Speech names the recognizer, the model and the voice of an agent.
type Speech struct {
	ASR *Engine `yaml:"asr"`
	LLM *Engine `yaml:"llm"`
	TTS *Engine `yaml:"tts"`
}

// Engine is one provider with its settings.
type Engine = pipeline.Engine

// Destination is a target of transfers.
type Destination = tools.Destination

// Trunk is a SIP connection to a carrier.
type Trunk struct {
	Name string `yaml:"name"`
	// Carrier is the name of a profile. Parse sets the keys that the profile has and the file lacks; Apply stores only
	// these keys, and Read returns no name.
	Carrier       *string       `yaml:"carrier"`
	Proxy         *string       `yaml:"proxy"`
	Username      *string       `yaml:"username"`
	Password      *media.Secret `yaml:"password"`
	CallerNumbers *[]string     `yaml:"caller_numbers"`
	Limits        *Limits       `yaml:"limits"`
	Subgroups     []Subgroup    `yaml:"subgroups"`

	// The fields below configure how calls use the trunk.
	Backups          *[]string          `yaml:"backups"`
	Realm            *string            `yaml:"realm"`
	SignalingSources *[]string          `yaml:"signaling_sources"`
	Register         *bool              `yaml:"register"`
	Codecs           *[]string          `yaml:"codecs"`
	Encryption       *string            `yaml:"encryption"`
	DTMF             *string            `yaml:"dtmf"`
	NumberFormat     *string            `yaml:"number_format"`
	AssertedIdentity *bool              `yaml:"asserted_identity"`
	Privacy          *bool              `yaml:"privacy"`
	Diversion        *string            `yaml:"diversion"`
	Headers          *map[string]string `yaml:"headers"`
	Attest           *map[string]string `yaml:"attest"`

	MediaSources      *[]string `yaml:"media_sources"`
	FirstMediaTimeout *int      `yaml:"first_media_timeout_s"`
	MediaTimeout      *int      `yaml:"media_timeout_s"`

	Provider *string             `yaml:"provider"`
	Rates    *map[string]float64 `yaml:"rates"`
}

// Limits are the limits of a trunk; 0 means no limit. A limit that is nil is that of the carrier's profile, or 0.
type Limits struct {
	CallsPerSecond  *float64 `yaml:"calls_per_second"`
	ConcurrentCalls *int     `yaml:"concurrent_calls"`
}

// Subgroup is a routing group on a trunk for some agents.
type Subgroup struct {
	Name                string    `yaml:"name"`
	DialPrefix          *string   `yaml:"dial_prefix"`
	AllowedDestinations *[]string `yaml:"allowed_destinations"`
	CallerNumbers       *[]string `yaml:"caller_numbers"`
	Agents              *[]string `yaml:"agents"`
	ConcurrentCalls     *int      `yaml:"concurrent_calls"`
	CallsPerMinute      *int      `yaml:"calls_per_minute"`
}

// Grant lends a trunk to another organization; a limit of 0 means no limit.
type Grant struct {
	Trunk           string   `yaml:"trunk"`
	To              string   `yaml:"to"`
	CallerNumbers   []string `yaml:"caller_numbers"`
	ConcurrentCalls int      `yaml:"concurrent_calls"`
	CallsPerMinute  int      `yaml:"calls_per_minute"`
}

// GrantedTrunk is a trunk that another organization lends.
type GrantedTrunk struct {
	Trunk     string     `yaml:"trunk"`
	Of        string     `yaml:"of"`
	Subgroups []Subgroup `yaml:"subgroups"`
}
