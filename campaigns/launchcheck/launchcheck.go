// Package launchcheck finds the blockers and the warnings of a campaign's launch. It is pure: the same facts give the
// same list in the same order.
package launchcheck

import "time"

// A Blocker prevents a campaign from dialing.
type Blocker struct {
	Code    string `json:"code"`
	Field   string `json:"field,omitempty"` // field of the request
	Message string `json:"message,omitempty"`
}

// Blocker codes.
const (
	AgentNotPublished       = "agent_not_published"
	AttestationRequired     = "attestation_required"
	AttestationStale        = "attestation_stale"
	NoPendingContacts       = "no_pending_contacts"
	StartsDatePast          = "starts_date_past"
	EndsAtPast              = "ends_at_past"
	ContactsGeoRejected     = "contacts_geo_rejected"
	DNCScreenRequired       = "dnc_screen_required"
	AllContactsSuppressed   = "all_contacts_suppressed"
	DNCMatches              = "dnc_matches"
	CampaignPaused          = "campaign_paused"
	RouteUnavailable        = "dialing_route_unavailable"
	AgentNotAttached        = "agent_not_attached"
	CallerNumberUnavailable = "caller_number_unavailable"
	MarketNotInstalled      = "market_package_not_installed"
	HoursNeverOpen          = "working_hours_never_open"
	ProviderNotConfigured   = "provider_not_configured"
	ProviderMisconfigured   = "provider_misconfigured"
)

// An Occasion is the operation that runs the checks.
type Occasion uint8

// Occasions.
const (
	Launching Occasion = iota // also used at creation
	Reading
	Resuming
	Adding // used in the response to an accepted batch
)

// Facts describe a campaign at one instant.
type Facts struct {
	Now          time.Time
	Zone         *time.Location // time zone of the campaign
	Paused       bool
	EverLaunched bool
	Open         bool // the campaign accepts further calls

	AgentPublished, AgentAttached bool
	RouteAvailable, CallerNumber  bool
	// NoProvider reports that no node has a provider that the agent names.
	NoProvider bool
	// ProviderRefusal is why the providers refuse the agent's settings; empty if none does.
	ProviderRefusal string
	MarketInstalled bool

	StartsAt, EndsAt time.Time // zero StartsAt means now; zero EndsAt means never
	// HoursOpen reports that working hours and the law leave time to call before
	// EndsAt.
	HoursOpen bool

	Attestation Attestation
	Contacts    Contacts
	Screen      Screen
	Frequency   Frequency
	Warnings    Circumstances
}

// HasRoute reports whether the campaign has a route with a caller number for its agent.
func (f Facts) HasRoute() bool { return f.RouteAvailable && f.AgentAttached && f.CallerNumber }

// An Attestation is the consent in the request.
type Attestation struct {
	Given bool // the request has confirmed: true
	Stale bool // the attestation is for another import or screening, or is too old
}

// Contacts are the counts of a campaign.
type Contacts struct {
	Accepted    int // contacts from imports
	Pending     int
	GeoRejected int // contacts suppressed because of the location of the number
	Suppressed  int // contacts suppressed for any reason, including GeoRejected
	Listed      int // pending contacts that are on a do-not-call list
	Ambiguous   int // contacts with several possible time zones
}

// A Screen is the result of the do-not-call screening.
type Screen struct {
	HasImport  bool
	Projected  bool // the original rows of the import are stored
	Unscreened int  // rows that no loaded registry covers
	Stale      bool // a registry copy is too old
	AgeDays    int  // age of the registry copy in days
	// Required reports that the organization calls only screened contacts.
	Required bool
	Matched  int
	Blocks   bool // the decision about matches is to block
	Frozen   bool // the campaign was launched, and the result no longer changes
}

// Blockers returns what prevents the campaign from dialing.
func Blockers(f Facts, on Occasion) []Blocker {
	all := []Blocker{}
	for _, r := range rules() {
		if r.skip[on] || !r.holds(f, on) {
			continue
		}
		b := Blocker{Code: r.code, Field: r.field, Message: r.message}
		if r.code == ProviderMisconfigured {
			b.Message += ": " + f.ProviderRefusal
		}
		if on == Adding {
			b.Message = ""
		}
		all = append(all, b)
	}
	return all
}

// A rule is one row of the table of blockers.
type rule struct {
	code, field, message string
	skip                 [Adding + 1]bool // occasions on which the rule is skipped
	holds                func(Facts, Occasion) bool
}

// rules returns the table of blockers in the order of the response.
func rules() []rule {
	var (
		always    = [Adding + 1]bool{}
		notResume = [Adding + 1]bool{Resuming: true}
		notAdding = [Adding + 1]bool{Adding: true}
		launch    = [Adding + 1]bool{Resuming: true, Adding: true}
		adding    = [Adding + 1]bool{Launching: true, Reading: true, Resuming: true}
	)
	return append(agentRules(), []rule{
		{AttestationRequired, "attestation", "consent was not attested in this request", launch, func(f Facts, on Occasion) bool {
			return on == Reading || !f.Attestation.Given
		}},
		{
			AttestationStale, "attestation", "the attestation is for another list, or the list or its screening changed since", launch,
			func(f Facts, on Occasion) bool {
				return on != Reading && f.Attestation.Given && f.Attestation.Stale
			},
		},
		{NoPendingContacts, "planned_calls", "no contact is waiting to be called", launch, func(f Facts, _ Occasion) bool {
			return f.Contacts.Pending == 0 && !f.Open
		}},
		{
			StartsDatePast, "starts_at", "starts_at is in the past", always,
			func(f Facts, _ Occasion) bool { return !f.EverLaunched && f.startsInPast() },
		},
		{EndsAtPast, "ends_at", "ends_at is in the past", always, func(f Facts, _ Occasion) bool { return f.isEnded() }},
		{ContactsGeoRejected, "planned_calls", "no number is in the area that this market calls", notResume, func(f Facts, _ Occasion) bool {
			return f.Contacts.GeoRejected > 0 && f.Contacts.GeoRejected == f.Contacts.Accepted
		}},
		{
			DNCScreenRequired, "planned_calls", "the list cannot be screened against the do-not-call registry", launch,
			func(f Facts, _ Occasion) bool {
				return f.Screen.isUnscreenable()
			},
		},
		{AllContactsSuppressed, "planned_calls", "every contact is suppressed", notAdding, func(f Facts, _ Occasion) bool {
			return f.Contacts.Accepted > 0 && f.countSuppressed() == f.Contacts.Accepted
		}},
		{DNCMatches, "dnc", "numbers are on a do-not-call list: set dnc to block or skip", notAdding, func(f Facts, _ Occasion) bool {
			return f.Screen.Blocks && f.Screen.Matched > 0 && !f.Screen.Frozen
		}},
		{CampaignPaused, "", "the campaign is paused", adding, func(f Facts, _ Occasion) bool { return f.Paused }},
		{
			RouteUnavailable, "trunk_id", "the trunk or subgroup was deleted, disabled or is no longer granted", always,
			func(f Facts, _ Occasion) bool { return !f.RouteAvailable },
		},
		{AgentNotAttached, "agent_id", "the agent is no longer attached to the subgroup", always, func(f Facts, _ Occasion) bool {
			return f.RouteAvailable && !f.AgentAttached
		}},
		{CallerNumberUnavailable, "from_number", "the caller number is no longer allowed on this route", always, func(f Facts, _ Occasion) bool {
			return f.RouteAvailable && !f.CallerNumber
		}},
		{
			MarketNotInstalled, "", "the organization has no market rules, or not those of the campaign", always,
			func(f Facts, _ Occasion) bool { return !f.MarketInstalled },
		},
		{HoursNeverOpen, "working_hours", "working hours and the law leave no time to call", always, func(f Facts, _ Occasion) bool {
			return f.MarketInstalled && !f.HoursOpen && !f.isEnded()
		}},
	}...)
}

// agentRules returns the rules about the agent and its providers.
func agentRules() []rule {
	always := [Adding + 1]bool{}
	return []rule{
		{
			AgentNotPublished, "agent_id", "the agent has no published version", always,
			func(f Facts, _ Occasion) bool { return !f.AgentPublished },
		},
		{
			ProviderNotConfigured, "agent_id", "the agent names a provider that no server has", always,
			func(f Facts, _ Occasion) bool { return f.AgentPublished && f.NoProvider },
		},
		{
			ProviderMisconfigured, "agent_id", "a provider refuses the agent's settings", always,
			func(f Facts, _ Occasion) bool { return f.AgentPublished && f.ProviderRefusal != "" },
		},
	}
}

// startsInPast reports whether the day of StartsAt, in the campaign's zone, is over.
func (f Facts) startsInPast() bool {
	return !f.StartsAt.IsZero() && f.StartsAt.In(f.Zone).Format(time.DateOnly) < f.Now.In(f.Zone).Format(time.DateOnly)
}

func (f Facts) isEnded() bool { return !f.EndsAt.IsZero() && !f.EndsAt.After(f.Now) }

// countSuppressed counts the contacts that are suppressed after a launch. With the decision skip, this includes the
// contacts on a do-not-call list.
func (f Facts) countSuppressed() int {
	if f.Screen.Blocks || f.Screen.Frozen {
		return f.Contacts.Suppressed
	}
	return f.Contacts.Suppressed + f.Contacts.Listed
}

// isUnscreenable reports whether a required screening cannot be made.
func (s Screen) isUnscreenable() bool {
	return s.HasImport && !s.Frozen && (!s.Projected || s.Required && (s.Unscreened > 0 || s.Stale))
}
