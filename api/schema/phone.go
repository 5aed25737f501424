package schema

import "github.com/parley-voice/parley/control/admission"

// A PhoneCall is the body of POST /v1/calls/phone.
type PhoneCall struct {
	_            struct{}       `additionalProperties:"true" json:"-"`
	AgentID      string         `doc:"Name of the agent" example:"demo" json:"agent_id"`
	ToNumber     string         `doc:"Number to call; only its digits count" example:"+12025550123" json:"to_number" maxLength:"256"`
	TrunkID      *string        `doc:"Trunk of the call; empty means the agent's only trunk" json:"trunk_id,omitempty" nullable:"true"`
	RouteID      *string        `doc:"Subgroup of the trunk" json:"route_id,omitempty" nullable:"true"`
	SubgroupID   *string        `doc:"Alias of route_id" json:"subgroup_id,omitempty" nullable:"true"`
	FromNumber   *string        `doc:"Caller number of the subgroup; empty means its first" json:"from_number,omitempty" nullable:"true"`
	RingDuration *float64       `doc:"Maximum ringing time in whole seconds, 5 to 120" example:"45" json:"ring_duration,omitempty" nullable:"true"`
	Name         *string        `doc:"Name of the callee" json:"name,omitempty" maxLength:"200" nullable:"true"`
	Variables    map[string]any `doc:"Values of {{placeholders}} in the agent's greeting and prompt: at most 64 names like first_name, 2,000 characters per value, 8 KiB for all lists and objects" json:"variables,omitempty" nullable:"true"`
	Metadata     map[string]any `doc:"Echoed in the call and its webhooks; at most 8 KiB" json:"metadata,omitempty" nullable:"true"`
	MaxDurationS *float64       `doc:"Maximum duration of the conversation in seconds" json:"max_duration_s,omitempty" maximum:"7200" minimum:"30" nullable:"true"`
	Voicemail    *string        `doc:"Action when a machine answers; empty means the agent's setting" enum:"hangup,leave_message,continue" json:"voicemail,omitempty" nullable:"true"`
	Record       *bool          `doc:"Whether to record; empty means the agent's setting" json:"record,omitempty" nullable:"true"`
}

// PhoneOrder reads the body of POST /v1/calls/phone.
func (s *Set) PhoneOrder(b *Body) (admission.Order, error) {
	var p PhoneCall
	if err := s.Check(b, "PhoneCall", &p); err != nil {
		return admission.Order{}, err
	}
	if err := checkVariables(p.Variables); err != nil {
		return admission.Order{}, err
	}
	if err := checkMetadata(p.Metadata); err != nil {
		return admission.Order{}, err
	}
	o := admission.Order{
		Agent: p.AgentID, To: p.ToNumber, TrunkID: or(p.TrunkID), RouteID: or(p.RouteID), From: or(p.FromNumber),
		RingDuration: p.RingDuration, Name: or(p.Name), Variables: p.Variables, Metadata: p.Metadata,
		MaxDurationS: int(or(p.MaxDurationS)), Voicemail: or(p.Voicemail), Record: p.Record,
	}
	if o.RouteID == "" {
		o.RouteID = or(p.SubgroupID)
	}
	return o, nil
}

func or[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
