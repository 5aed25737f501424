package launchcheck

import (
	"strings"
	"time"
)

// A Warning informs the operator. Zero members are omitted.
type Warning struct {
	Code         string   `json:"code"`
	Field        string   `json:"field,omitempty"`
	Message      string   `json:"message,omitempty"`
	Rolling7d    *int     `json:"rolling_7d_cap,omitempty"`
	Daily        *int     `json:"daily_cap,omitempty"`
	Source       string   `json:"source,omitempty"` // law, market_default or organization
	Count        int      `json:"count,omitempty"`
	Unscreened   int      `json:"unscreened_rows,omitempty"`
	AgeDays      int      `json:"age_days,omitempty"`
	RouteLimit   int      `json:"route_limit,omitempty"` // calls per minute
	NextWindowAt *float64 `json:"next_window_at,omitempty"`
}

// Warning codes.
const (
	StartsImmediately   = "starts_immediately"
	FrequencyActive     = "frequency_policy_active"
	FrequencyDisabled   = "frequency_limits_disabled"
	HoursLawOnly        = "working_hours_law_only"
	HoursOrgOnly        = "working_hours_org_window_only"
	GeoPartlyRejected   = "contacts_geo_partially_rejected"
	TimezoneAmbiguous   = "timezone_ambiguous_contacts"
	DNCPartial          = "dnc_partial_screen"
	DNCUnscreened       = "dnc_unscreened"
	DNCStaleSoon        = "dnc_registry_stale_soon"
	PaceExceedsRoute    = "pace_exceeds_route_limit"
	RecordingDisabled   = "recording_disabled"
	ProviderUnavailable = "provider_unavailable" // this node cannot use a provider of the agent now
	OutsideWindow       = "outside_window_now"
	DisclosuresDisabled = "disclosures_disabled"
)

// A Frequency is the frequency caps in force; 0 means no cap of that kind.
type Frequency struct {
	Disabled         bool
	Daily, Rolling7d int
	Source           string
}

// Circumstances are facts that only warnings use.
type Circumstances struct {
	OwnHours   bool // the campaign has its own working hours
	OrgWindow  bool // a campaign without its own hours calls within the organization's window, not only within the law
	Pace       int  // calls per minute
	RouteLimit int  // limit of the route, calls per minute
	Recording  bool
	// ProviderFailures describes providers of the agent that are unavailable now.
	ProviderFailures []string
	Disclosures      bool
	WindowOpen       bool
	NextWindow       time.Time
	RegistryExists   bool // the market has a registry
	Loaded           bool // a copy of the registry is loaded
	StaleAfterDays   int
}

// staleSoon is the number of days before a registry copy becomes stale from which on Warnings reports it.
const staleSoon = 5

// Warnings returns the warnings about a campaign.
func Warnings(f Facts) []Warning {
	all := []Warning{}
	add := func(when bool, w Warning) {
		if when {
			all = append(all, w)
		}
	}
	c, q, s := f.Warnings, f.Frequency, f.Screen
	add(!f.StartsAt.After(f.Now), Warning{Code: StartsImmediately, Field: "starts_at"})
	add(!q.Disabled, Warning{Code: FrequencyActive, Rolling7d: &q.Rolling7d, Daily: &q.Daily, Source: q.Source})
	add(q.Disabled, Warning{Code: FrequencyDisabled})
	add(!c.OwnHours && !c.OrgWindow, Warning{Code: HoursLawOnly, Field: "working_hours"})
	add(!c.OwnHours && c.OrgWindow, Warning{Code: HoursOrgOnly, Field: "working_hours"})
	add(f.Contacts.GeoRejected > 0 && f.Contacts.GeoRejected < f.Contacts.Accepted,
		Warning{Code: GeoPartlyRejected, Field: "planned_calls", Count: f.Contacts.GeoRejected})
	add(f.Contacts.Ambiguous > 0, Warning{Code: TimezoneAmbiguous, Field: "planned_calls", Count: f.Contacts.Ambiguous})
	screened := s.HasImport && c.RegistryExists
	add(screened && !c.Loaded, Warning{Code: DNCUnscreened, Field: "planned_calls"})
	add(screened && c.Loaded && s.Unscreened > 0, Warning{Code: DNCPartial, Field: "planned_calls", Unscreened: s.Unscreened})
	soon := c.Loaded && !s.Stale && c.StaleAfterDays > 0 && s.AgeDays >= c.StaleAfterDays-staleSoon
	add(screened && soon,
		Warning{Code: DNCStaleSoon, AgeDays: s.AgeDays})
	add(c.RouteLimit > 0 && c.Pace > c.RouteLimit, Warning{Code: PaceExceedsRoute, Field: "calls_per_minute", RouteLimit: c.RouteLimit})
	add(len(c.ProviderFailures) > 0,
		Warning{Code: ProviderUnavailable, Field: "agent_id", Message: strings.Join(c.ProviderFailures, "; ")})
	add(!c.Recording, Warning{Code: RecordingDisabled})
	add(!c.Disclosures, Warning{Code: DisclosuresDisabled})
	add(!c.WindowOpen, Warning{Code: OutsideWindow, Field: "working_hours", NextWindowAt: epoch(c.NextWindow)})
	return all
}

func epoch(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	at := float64(t.Unix())
	return &at
}
