package schema

import "github.com/parley-voice/parley/control/admission"

// A WebCall is the body of POST /v1/calls/web.
type WebCall struct {
	_            struct{}       `additionalProperties:"true" json:"-"`
	AgentID      string         `doc:"Name of the agent" example:"demo" json:"agent_id"`
	Name         *string        `doc:"Name of the participant" json:"name,omitempty" maxLength:"200" nullable:"true"`
	Variables    map[string]any `doc:"Values of {{placeholders}} in the agent's greeting and prompt: at most 64 names like first_name, 2,000 characters per value, 8 KiB for all lists and objects" json:"variables,omitempty" nullable:"true"`
	Metadata     map[string]any `doc:"Echoed in the call and its webhooks; at most 8 KiB" json:"metadata,omitempty" nullable:"true"`
	MaxDurationS *float64       `doc:"Maximum duration of the conversation in seconds" json:"max_duration_s,omitempty" maximum:"7200" minimum:"30" nullable:"true"`
	Client       *string        `doc:"Type of client that will join" enum:"browser,sdk" json:"client,omitempty" nullable:"true"`
}

// WebOrder reads the body of POST /v1/calls/web.
func (s *Set) WebOrder(b *Body) (admission.WebOrder, error) {
	var c WebCall
	if err := s.Check(b, "WebCall", &c); err != nil {
		return admission.WebOrder{}, err
	}
	if err := checkVariables(c.Variables); err != nil {
		return admission.WebOrder{}, err
	}
	if err := checkMetadata(c.Metadata); err != nil {
		return admission.WebOrder{}, err
	}
	return admission.WebOrder{
		Agent: c.AgentID, Name: or(c.Name), Variables: c.Variables, Metadata: c.Metadata,
		MaxDurationS: int(or(c.MaxDurationS)), Client: or(c.Client),
	}, nil
}
