package schema

import "github.com/parley-voice/parley/control/admission"

// A PhoneCall is the body of POST /v1/calls/phone.
type PhoneCall struct {
	_            struct{}       `additionalProperties:"true" json:"-"`
	AgentID      string         `doc:"Name of the agent" example:"demo" json:"agent_id"`
	ToNumber     string         `doc:"Number to call; all but its digits is ignored" example:"+12025550123" json:"to_number" maxLength:"256"`
	TrunkID      *string        `doc:"Trunk to call through; empty means the agent's only one" json:"trunk_id,omitempty" nullable:"true"`
	RouteID      *string        `doc:"Subgroup of the trunk" json:"route_id,omitempty" nullable:"true"`
	SubgroupID   *string        `doc:"Another name of route_id" json:"subgroup_id,omitempty" nullable:"true"`
	FromNumber   *string        `doc:"Caller number to show, one of the route's; empty means its first" json:"from_number,omitempty" nullable:"true"`
	RingDuration *float64       `doc:"Seconds the phone may ring, a whole number from 5 to 120" example:"45" json:"ring_duration,omitempty" nullable:"true"`
	Name         *string        `doc:"Name of the callee" json:"name,omitempty" maxLength:"200" nullable:"true"`
	Variables    map[string]any `doc:"Values of {{places}} in the agent's greeting and prompt; at most 64, named like first_name, of at most 2,000 characters each, lists and objects of 8 KiB together" json:"variables,omitempty" nullable:"true"`
	Metadata     map[string]any `doc:"Echoed in the call and its webhooks; at most 8 KiB" json:"metadata,omitempty" nullable:"true"`
	MaxDurationS *float64       `doc:"Seconds the conversation may last" json:"max_duration_s,omitempty" maximum:"7200" minimum:"30" nullable:"true"`
	Voicemail    *string        `doc:"What to do when a machine answers; empty means what the agent does" enum:"hangup,leave_message,continue" json:"voicemail,omitempty" nullable:"true"`
	Record       *bool          `doc:"Whether to record; empty means what the agent does" json:"record,omitempty" nullable:"true"`
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
