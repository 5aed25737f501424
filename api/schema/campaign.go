package schema

import (
	"encoding/json"
	"math"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/service"
)

// MaxCampaign limits the body of POST /v1/campaigns, in bytes.
const MaxCampaign = 32 << 20

// MaxFile limits a file of rows, in bytes.
const MaxFile = 128 << 20

// A Campaign is the body of POST /v1/campaigns. The schema accepts any value for enumerations,
// because the contract checks them later, in its order.
type Campaign struct {
	_              struct{}         `additionalProperties:"true" json:"-"`
	Name           string           `doc:"1 to 80 characters" example:"Spring renewals" json:"name"`
	AgentID        string           `doc:"Name of the agent" example:"demo" json:"agent_id"`
	Budget         *float64         `doc:"Maximum cost of its calls, in the currency of the price list; null means no limit" example:"250" json:"budget,omitempty" nullable:"true"`
	CallsPerMinute float64          `doc:"One of 1, 2, 5, 10, 20, 30, 60, 100, 200" example:"20" json:"calls_per_minute"`
	PlannedCalls   []map[string]any `doc:"Rows of phone, name, variables, timezone, external_id, language, priority, not_before, not_after, state, zip, consent_at, metadata" json:"planned_calls,omitempty" nullable:"true"`
	StartsAt       *float64         `doc:"Epoch seconds; null means now" json:"starts_at,omitempty" nullable:"true"`
	EndsAt         *float64         `doc:"Epoch seconds, later than starts_at" json:"ends_at,omitempty" nullable:"true"`
	Timezone       *string          `doc:"IANA name; empty means the organization's" example:"America/New_York" json:"timezone,omitempty" nullable:"true"`
	WorkingHours   []Shift          `doc:"Hours in which the campaign calls, within the calling window; empty means the whole window" json:"working_hours,omitempty" nullable:"true"`
	CallStrategy   *string          `doc:"standard or expert" json:"call_strategy,omitempty" nullable:"true"`
	RetryConfig    *RetryConfig     `doc:"Empty means one attempt" json:"retry_config,omitempty"`
	Duplicates     *string          `doc:"reject, keep_first or keep_last" json:"duplicate_action,omitempty" nullable:"true"`
	Classification *string          `doc:"marketing, servicing or debt_collection" json:"classification,omitempty" nullable:"true"`
	ContactZone    *bool            `doc:"Use the time zone of each contact's row" json:"use_contact_timezone,omitempty" nullable:"true"`
	TrunkID        *string          `doc:"Trunk of the calls; empty means the agent's only trunk" json:"trunk_id,omitempty" nullable:"true"`
	RouteID        *string          `doc:"Subgroup of the trunk" json:"route_id,omitempty" nullable:"true"`
	FromNumber     *string          `doc:"Caller number of the subgroup; empty means its first" json:"from_number,omitempty" nullable:"true"`
	Attestation    *Attestation     `doc:"Without it the campaign stays a draft" json:"attestation,omitempty"`
	Open           *bool            `doc:"Whether calls may be added later; requires ends_at" json:"accepts_call_additions,omitempty" nullable:"true"`
	DNC            *string          `doc:"What numbers on a do-not-call list do: block (they block the launch) or skip (they are not called)" json:"dnc,omitempty" nullable:"true"`
}

// A Shift is an entry of working hours.
type Shift struct {
	_     struct{}  `additionalProperties:"true" json:"-"`
	Days  []float64 `doc:"0 is Monday, 6 Sunday" json:"days,omitempty"`
	Start string    `doc:"HH:MM" json:"start,omitempty"`
	End   string    `doc:"HH:MM, later than start" json:"end,omitempty"`
}

// A RetryConfig sets how often and when contacts are called again.
type RetryConfig struct {
	_         struct{}         `additionalProperties:"true" json:"-"`
	Attempts  *float64         `doc:"Attempts per contact, 1 to 10" json:"attempts,omitempty" nullable:"true"`
	IntervalS *float64         `doc:"Seconds, 60 to 604800" json:"interval_s,omitempty" nullable:"true"`
	Rules     []map[string]any `doc:"For call_strategy expert" json:"rules,omitempty" nullable:"true"`
}

// An Attestation confirms the consent of the contacts.
type Attestation struct {
	_         struct{} `additionalProperties:"true" json:"-"`
	Confirmed any      `doc:"true" json:"confirmed,omitempty"`
	ImportID  *string  `doc:"For a launch: the attested import" json:"import_id,omitempty" nullable:"true"`
}

// isConfirmed reports whether an attestation is exactly true.
func (a *Attestation) isConfirmed() bool { return a != nil && a.Confirmed == true }

// A Launch is the body of POST /v1/campaigns/{id}/launch.
type Launch struct {
	_           struct{}     `additionalProperties:"true" json:"-"`
	Attestation *Attestation `doc:"The consent of the contacts; a launch requires it" json:"attestation,omitempty"`
	DNC         *string      `doc:"What numbers on a do-not-call list do: block (they block the launch) or skip (they are not called)" json:"dnc,omitempty" nullable:"true"`
}

// A Budget is the body of POST /v1/campaigns/{id}/budget.
type Budget struct {
	_      struct{} `additionalProperties:"true" json:"-"`
	Budget *float64 `doc:"Maximum cost of the calls of the campaign, in the currency of the price list; null means no limit" json:"budget" nullable:"true"`
}

// Budget reads the body of POST /v1/campaigns/{id}/budget.
func (s *Set) Budget(b *Body) (*float64, error) {
	var x Budget
	err := s.Check(b, "Budget", &x)
	return x.Budget, err
}

// CampaignOrder reads the body of POST /v1/campaigns.
func (s *Set) CampaignOrder(b *Body) (service.CreateRequest, error) {
	var c Campaign
	if err := s.Check(b, "Campaign", &c); err != nil {
		return service.CreateRequest{}, err
	}
	o := service.CreateRequest{Attested: c.Attestation.isConfirmed(), Spec: campaigns.Spec{
		Name: c.Name, Agent: c.AgentID, CallsPerMinute: c.CallsPerMinute, StartsAt: epoch(c.StartsAt), EndsAt: epoch(c.EndsAt),
		Timezone: or(c.Timezone), Strategy: or(c.CallStrategy), Duplicates: or(c.Duplicates), Classification: or(c.Classification),
		ContactTimezone: or(c.ContactZone), TrunkID: or(c.TrunkID), RouteID: or(c.RouteID), From: or(c.FromNumber),
		Open: or(c.Open), DNC: or(c.DNC), Budget: c.Budget,
	}}
	for _, row := range c.WorkingHours {
		shift := campaigns.Shift{Start: row.Start, End: row.End}
		for _, d := range row.Days {
			shift.Days = append(shift.Days, int(d))
		}
		o.Spec.WorkingHours = append(o.Spec.WorkingHours, shift)
	}
	if c.RetryConfig != nil {
		text, err := json.Marshal(c.RetryConfig)
		if err != nil {
			return service.CreateRequest{}, err
		}
		o.Spec.Retry = text
	}
	o.Rows = s.rows(b, "planned_calls")
	return o, nil
}

// LaunchOrder reads the body of POST /v1/campaigns/{id}/launch.
func (s *Set) LaunchOrder(b *Body) (service.LaunchRequest, error) {
	var l Launch
	if err := s.Check(b, "Launch", &l); err != nil {
		return service.LaunchRequest{}, err
	}
	o := service.LaunchRequest{Confirmed: l.Attestation.isConfirmed(), DNC: or(l.DNC)}
	if l.Attestation != nil {
		o.ImportID = or(l.Attestation.ImportID)
	}
	return o, nil
}

// epoch converts epoch seconds, rounded to microseconds, because few decimal fractions have an exact floating-point number;
// nil gives the zero time.
func epoch(s *float64) time.Time {
	if s == nil {
		return time.Time{}
	}
	whole, part := math.Modf(*s)
	return time.Unix(int64(whole), int64(math.Round(part*1e6))*1e3).UTC()
}
