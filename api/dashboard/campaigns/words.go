package campaigns

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/store"
)

type count struct {
	Code, Says string
	N          int
}

// counts returns a table of counts, largest first.
func counts[K ~string](by map[K]int, says map[string]string) []count {
	var all []count
	for _, code := range slices.Sorted(maps.Keys(by)) {
		all = append(all, count{string(code), label(says, string(code)), by[code]})
	}
	slices.SortStableFunc(all, func(a, b count) int { return cmp.Compare(b.N, a.N) })
	return all
}

// label returns the label of a code, or else the code with spaces for underscores.
func label(says map[string]string, code string) string {
	return cmp.Or(says[code], strings.ReplaceAll(code, "_", " "))
}

// A fix explains how to resolve a failed launch check. Path is relative to the organization; "" means the page of the
// campaign.
type fix struct{ Good, Bad, Do, Label, Path string }

// fixes lists all launch checks in their order.
var fixes = []launchFix{ //nolint:gochecknoglobals // read-only table
	{launchcheck.AgentNotPublished, fix{
		"The agent is published", "The agent is not published",
		"Calls use the published version of the agent. Publish one.", "Publish the agent", "agents",
	}},
	{launchcheck.ProviderNotConfigured, fix{
		"The agent’s providers are configured", "A provider of the agent is not configured on any server",
		"Publish the agent with a configured provider, or set the provider’s key.", "Open agents", "agents",
	}},
	{launchcheck.ProviderMisconfigured, fix{
		"The providers accept the agent’s settings", "A provider refuses the agent’s settings",
		"Correct the provider’s key or the agent’s model and voice, and publish the agent.", "Open agents", "agents",
	}},
	{launchcheck.AgentNotAttached, fix{
		"The agent may use the subgroup", "The agent may not use the subgroup",
		"Attach the agent to the subgroup of this campaign.", "Open trunks", "trunks",
	}},
	{launchcheck.RouteUnavailable, fix{
		"The trunk is available", "The trunk is not available",
		"The trunk, subgroup or grant was removed or disabled. Restore it, or create a new campaign on another trunk.", "Open trunks", "trunks",
	}},
	{launchcheck.CallerNumberUnavailable, fix{
		"The caller number is available", "The caller number is no longer available",
		"Add the number to the trunk or subgroup again, or create a new campaign with another number.", "Open trunks", "trunks",
	}},
	{launchcheck.NoPendingContacts, fix{
		"At least one contact is waiting", "No contact is waiting",
		"Add numbers. The import report lists unreadable rows.", "Add numbers", "calls",
	}},
	{launchcheck.ContactsGeoRejected, fix{
		"At least one number is in the market", "No number is in the market",
		"Add numbers in the market’s country, or choose another market.", "Open market rules", "market",
	}},
	{launchcheck.AllContactsSuppressed, fix{
		"At least one contact can be called", "All contacts are skipped",
		"All numbers are on a do-not-call list, withdrawn or outside the market. Add other numbers.", "Add numbers", "calls",
	}},
	{launchcheck.MarketNotInstalled, fix{
		"The market’s rules are installed", "The organization does not use the market’s rules",
		"The legal calling hours are unknown without them. Choose the market again.", "Choose a market", "market",
	}},
	{launchcheck.DNCScreenRequired, fix{
		"The list is screened", "The list cannot be screened",
		"The organization requires do-not-call coverage. Load the registry, then reload this page.", "Load a registry", "do-not-call",
	}},
	{launchcheck.DNCMatches, fix{
		"No number is on a do-not-call list", "Numbers are on a do-not-call list",
		"Choose below to skip them, or upload a list without them.", "", "",
	}},
	{launchcheck.StartsDatePast, fix{
		"Start is in the future", "Start is in the past",
		"The times of a campaign cannot change. Create a new campaign with another start.", "New campaign", "campaigns/new",
	}},
	{launchcheck.EndsAtPast, fix{
		"End is in the future", "End is in the past",
		"The times of a campaign cannot change. Create a new campaign with another end.", "New campaign", "campaigns/new",
	}},
	{launchcheck.HoursNeverOpen, fix{
		"Calling hours are available", "No calling hours are available",
		"Working hours, legal hours and the end leave no time. Create a new campaign with wider hours, or change the calling window.",
		"Open settings", "settings",
	}},
	{launchcheck.CampaignPaused, fix{"", "The campaign is paused", "Resume it.", "", ""}},
}

type launchFix struct {
	Code string
	fix
}

// warnings are conditions that an operator should know before a launch.
var warnings = map[string]string{ //nolint:gochecknoglobals // read-only table
	launchcheck.StartsImmediately: "Dialing starts as soon as calling hours allow.",
	launchcheck.FrequencyActive:   "Call frequency caps apply.", launchcheck.FrequencyDisabled: "Call frequency caps are off.",
	launchcheck.HoursLawOnly:        "No working hours are set: calls are placed during all legal hours.",
	launchcheck.HoursOrgOnly:        "No working hours are set: calls are placed in the organization’s calling window.",
	launchcheck.GeoPartlyRejected:   "Some numbers are outside this market and will be skipped.",
	launchcheck.TimezoneAmbiguous:   "Some numbers match several time zones. They are called when all zones allow it.",
	launchcheck.DNCPartial:          "Some numbers have an area code that no loaded do-not-call registry covers.",
	launchcheck.DNCUnscreened:       "No do-not-call registry is loaded: the list is not screened against one.",
	launchcheck.DNCStaleSoon:        "The do-not-call registry will expire soon. Load a new copy.",
	launchcheck.PaceExceedsRoute:    "The trunk allows fewer calls per minute than requested.",
	launchcheck.ProviderUnavailable: "A provider of the agent is not responding. Calls start when it responds.",
	launchcheck.RecordingDisabled:   "Calls are not recorded.", launchcheck.OutsideWindow: "Outside calling hours right now.",
	launchcheck.DisclosuresDisabled: "Calls start without disclosures about recording or AI.",
}

// held are the reasons why contacts wait.
var held = map[string]string{ //nolint:gochecknoglobals // read-only table
	"campaign_not_running": "Campaign is not running", "frequency_cap": "Frequency cap reached",
	"outside_legal_window": "Outside legal hours at the contact’s location", "outside_working_hours": "Outside working hours",
	"legal_holiday": "Holiday at the contact’s location", "retry_wait": "Waiting for the next attempt",
	"not_before": "Not before the time in the row", "not_after": "The time allowed in the row has passed",
	"dnc_screen_stale": "Do-not-call registry has expired", "provider_unavailable": "A provider of the agent is not responding",
	"too_many_failures": "A fault of Parley or a provider ended too many recent calls",
	"carrier_paused":    "The carrier requested a pause",
	"route_unavailable": "Calls do not get through on the trunk", "timezone_unresolved": "Time zone unknown",
	"database_failover":            "A server has not reported which calls it made before the database failover",
	"recording_unavailable":        "Too little disk space for recordings",
	"market_package_not_installed": "The organization does not use the campaign’s market rules",
}

// suppressed are the reasons why contacts are skipped.
var suppressed = map[string]string{ //nolint:gochecknoglobals // read-only table
	"dnc_suppressed": "On a do-not-call list", "withdrawn_by_client": "Withdrawn", "geo_rejected": "Outside this market",
	"frequency_capped": "Frequency cap reached", "opted_out": "Opted out during a call", "number_invalid": "Number does not exist",
	"reassigned_number": "Number was reassigned", "operator_removed": "Removed",
}

// issueWords are the labels of row issues.
var issueWords = map[string]string{ //nolint:gochecknoglobals // read-only table
	"phone_missing": "Phone number missing", "phone_invalid": "Invalid phone number", "duplicate_phone": "Duplicate phone number",
	"timezone_required": "Time zone required", "timezone_unknown": "Unknown time zone", "variables_invalid": "Invalid variable",
	"name_too_long": "Name too long", "column_invalid": "Invalid value", "row_unreadable": "Unreadable row",
	"no_phone_column": "No phone column", "no_usable_rows": "No callable rows", "phone_country_unsupported": "Country not supported",
	"phone_type_unsupported": "Number type not supported", "phone_possible_not_valid": "Number may not be in service",
	"timezone_ambiguous": "Several possible time zones", "timezone_defaulted": "No time zone: campaign default used",
	"column_ignored": "Unused column", "variable_missing": "Agent variable missing", "formula_value": "Value from a formula",
	"encoding_assumed": "Not UTF-8: read as Windows-1252 or Windows-1251", "phone_column_chosen": "Several phone columns: only one is called",
	"already_in_campaign": "Already in the campaign",
}

// actions are the log entries of campaigns.
var actions = map[string]string{ //nolint:gochecknoglobals // read-only table
	store.Created: "created", store.WasLaunched: "launched", store.WasPaused: "paused", store.WasResumed: "resumed",
	store.WasCanceled: "canceled", store.WasStarted: "started as scheduled", store.WasEnded: "completed", store.CallsAdded: "numbers added",
	store.CallsRefused: "numbers rejected", store.Withdrawn: "numbers withdrawn", store.Rescreened: "skipped numbers screened again",
	store.Reopened: "contacts reopened", store.OptedOut: "contact opted out",
	store.BudgetSet: "budget changed", store.Edited: "settings changed",
}
