// Package checks says what keeps a campaign from dialling, and what its
// operator should know. It is pure: the same facts make the same list, in the
// same order, wherever they are asked for.
package checks

import "time"

// A Blocker keeps a campaign from dialling.
type Blocker struct {
	Code    string `json:"code"`
	Field   string `json:"field,omitempty"` // of the request
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
)

// An Occasion is where a list is asked for.
type Occasion uint8

// Occasions.
const (
	Launching Occasion = iota // at creation too
	Reading
	Resuming
	Adding // the answer to an accepted batch
)

// Facts are what is known of a campaign at one instant.
type Facts struct {
	Now          time.Time
	Zone         *time.Location // of the campaign
	Paused       bool
	EverLaunched bool
	Open         bool // to additions

	AgentPublished, AgentAttached bool
	RouteAvailable, CallerNumber  bool
	MarketInstalled               bool

	StartsAt, EndsAt time.Time // zero: now, never
	// HoursOpen tells that working hours and the law leave a minute before EndsAt.
	HoursOpen bool

	Attestation Attestation
	Contacts    Contacts
	Screen      Screen
	Frequency   Frequency
	Warnings    Circumstances
}

// Line tells that the campaign has one to call on, as far as its owner says.
func (f Facts) Line() bool { return f.RouteAvailable && f.AgentAttached && f.CallerNumber }

// An Attestation is the consent that came with the request.
type Attestation struct {
	Given bool // confirmed: true
	Stale bool // it is of another import, of another screen, or too old
}

// Contacts are counts.
type Contacts struct {
	Accepted    int // that imports brought
	Pending     int
	GeoRejected int // suppressed for where their number is
	Suppressed  int // for whatever reason, those among them
	Listed      int // that wait, and are on a do-not-call list
	Ambiguous   int // in several time zones
}

// A Screen is what the do-not-call registries say.
type Screen struct {
	HasImport  bool
	Projected  bool // the rows of the import are kept as they came
	Unscreened int  // rows that no loaded registry covers
	Stale      bool // the registry's copy is too old
	AgeDays    int  // of the copy
	// Required is the organization's wish that nobody unscreened be called.
	Required bool
	Matched  int
	Blocks   bool // the decision is to block
	Frozen   bool // at the launch: it does not change any more
}

// Blockers lists what keeps the campaign from dialling.
func Blockers(f Facts, on Occasion) []Blocker {
	all := []Blocker{}
	for _, r := range rules() {
		if r.not[on] || !r.holds(f, on) {
			continue
		}
		b := Blocker{Code: r.code, Field: r.field, Message: r.message}
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
	not                  [Adding + 1]bool // occasions on which nobody asks
	holds                func(Facts, Occasion) bool
}

// rules is the table, in its order.
func rules() []rule {
	var (
		always    = [Adding + 1]bool{}
		notResume = [Adding + 1]bool{Resuming: true}
		notAdding = [Adding + 1]bool{Adding: true}
		launch    = [Adding + 1]bool{Resuming: true, Adding: true}
		adding    = [Adding + 1]bool{Launching: true, Reading: true, Resuming: true}
	)
	return []rule{
		{AgentNotPublished, "agent_id", "the agent has no published version", always, func(f Facts, _ Occasion) bool { return !f.AgentPublished }},
		{AttestationRequired, "attestation", "consent was not attested in this request", launch, func(f Facts, on Occasion) bool {
			return on == Reading || !f.Attestation.Given
		}},
		{AttestationStale, "attestation", "the attestation is of another list, or the list or its screen changed since", launch, func(f Facts, on Occasion) bool {
			return on != Reading && f.Attestation.Given && f.Attestation.Stale
		}},
		{NoPendingContacts, "planned_calls", "no contact waits to be called", launch, func(f Facts, _ Occasion) bool {
			return f.Contacts.Pending == 0 && !f.Open
		}},
		{StartsDatePast, "starts_at", "the day of starts_at is over", always, func(f Facts, _ Occasion) bool { return !f.EverLaunched && f.startsPast() }},
		{EndsAtPast, "ends_at", "ends_at is over", always, func(f Facts, _ Occasion) bool { return f.ended() }},
		{ContactsGeoRejected, "planned_calls", "no number lies where this market calls", notResume, func(f Facts, _ Occasion) bool {
			return f.Contacts.GeoRejected > 0 && f.Contacts.GeoRejected == f.Contacts.Accepted
		}},
		{DNCScreenRequired, "planned_calls", "the list cannot be screened against the do-not-call registry", launch, func(f Facts, _ Occasion) bool {
			return f.Screen.missing()
		}},
		{AllContactsSuppressed, "planned_calls", "every contact is suppressed", notAdding, func(f Facts, _ Occasion) bool {
			return f.Contacts.Accepted > 0 && f.suppressed() == f.Contacts.Accepted
		}},
		{DNCMatches, "dnc", "numbers are on a do-not-call list: decide with dnc", notAdding, func(f Facts, _ Occasion) bool {
			return f.Screen.Blocks && f.Screen.Matched > 0 && !f.Screen.Frozen
		}},
		{CampaignPaused, "", "the campaign is paused", adding, func(f Facts, _ Occasion) bool { return f.Paused }},
		{RouteUnavailable, "trunk_id", "the trunk or the subgroup is gone, disabled, or no longer lent", always, func(f Facts, _ Occasion) bool { return !f.RouteAvailable }},
		{AgentNotAttached, "agent_id", "the agent is no longer attached to the subgroup", always, func(f Facts, _ Occasion) bool {
			return f.RouteAvailable && !f.AgentAttached
		}},
		{CallerNumberUnavailable, "from_number", "the route may no longer show the caller number", always, func(f Facts, _ Occasion) bool {
			return f.RouteAvailable && !f.CallerNumber
		}},
		{MarketNotInstalled, "", "the organization has no market package, or not that of the campaign", always, func(f Facts, _ Occasion) bool { return !f.MarketInstalled }},
		{HoursNeverOpen, "working_hours", "working hours and the law leave no time to call", always, func(f Facts, _ Occasion) bool {
			return f.MarketInstalled && !f.HoursOpen && !f.ended()
		}},
	}
}

// startsPast tells whether the day of StartsAt, in the campaign's zone, is over.
func (f Facts) startsPast() bool {
	return !f.StartsAt.IsZero() && f.StartsAt.In(f.Zone).Format(time.DateOnly) < f.Now.In(f.Zone).Format(time.DateOnly)
}

func (f Facts) ended() bool { return !f.EndsAt.IsZero() && !f.EndsAt.After(f.Now) }

// suppressed is how many contacts a launch would leave suppressed: those that are,
// and where the decision is to skip them those that are listed.
func (f Facts) suppressed() int {
	if f.Screen.Blocks || f.Screen.Frozen {
		return f.Contacts.Suppressed
	}
	return f.Contacts.Suppressed + f.Contacts.Listed
}

// missing tells whether a screen that must be cannot be.
func (s Screen) missing() bool {
	return s.HasImport && !s.Frozen && (!s.Projected || s.Required && (s.Unscreened > 0 || s.Stale))
}
