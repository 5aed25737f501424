package campaigns

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/store"
)

// A count is how many of something there are.
type count struct {
	Code, Says string
	N          int
}

// counts are those of a table of counts by code, the most first.
func counts[K ~string](by map[K]int, says map[string]string) []count {
	var all []count
	for _, code := range slices.Sorted(maps.Keys(by)) {
		all = append(all, count{string(code), say(says, string(code)), by[code]})
	}
	slices.SortStableFunc(all, func(a, b count) int { return cmp.Compare(b.N, a.N) })
	return all
}

// say is what a table says of a code, else the code with its words apart.
func say(says map[string]string, code string) string {
	return cmp.Or(says[code], strings.ReplaceAll(code, "_", " "))
}

// A fix is what one does about something that keeps a campaign from dialling. Path
// is a page of the organization, "" where it is done on the campaign's own page.
type fix struct{ Good, Bad, Do, Label, Path string }

// fixes are all that launch checks look at, in the order of the checks.
func fixes() []struct {
	Code string
	fix
} {
	type one = struct {
		Code string
		fix
	}
	return []one{
		{checks.AgentNotPublished, fix{"The agent is published", "The agent is not published", "Calls are held with the published version of an agent. Publish one.", "Publish the agent", "agents"}},
		{checks.AgentNotAttached, fix{"The agent may use the line", "The agent may not use the line", "Attach the agent to the subgroup that the campaign calls through.", "Open the trunks", "trunks"}},
		{checks.RouteUnavailable, fix{"The line is there", "The line is gone", "Its trunk or its subgroup was removed, switched off, or is lent no more. Put it back, or make the campaign anew on another line.", "Open the trunks", "trunks"}},
		{checks.CallerNumberUnavailable, fix{"The caller number may be shown", "The caller number may not be shown any more", "Give the number back to the trunk or the subgroup, or make the campaign anew with another.", "Open the trunks", "trunks"}},
		{checks.NoPendingContacts, fix{"Somebody waits to be called", "Nobody waits to be called", "Add numbers. Rows that could not be read are in the report of the list.", "Add numbers", "calls"}},
		{checks.ContactsGeoRejected, fix{"Numbers lie where calls go", "No number lies where this market calls", "Add numbers of the market’s country, or choose another market.", "Open the market rules", "market"}},
		{checks.AllContactsSuppressed, fix{"Not everybody is left out", "Everybody is left out", "All numbers are listed, withdrawn or out of reach. Add others.", "Add numbers", "calls"}},
		{checks.MarketNotInstalled, fix{"The market’s rules are there", "The organization does not go by the market’s rules", "Without the rules of the market that the campaign is of, it is not known when one may call. Choose them.", "Choose a market", "market"}},
		{checks.DNCScreenRequired, fix{"The list is screened", "The list cannot be screened", "The organization calls nobody who was not held against the do-not-call registry. Load the registry, and open this page again.", "Load a registry", "do-not-call"}},
		{checks.DNCMatches, fix{"Nobody listed is called", "Numbers are on a do-not-call list", "Decide below that they are left out, or upload a list without them.", "", ""}},
		{checks.StartsDatePast, fix{"The start is to come", "The day of the start is over", "A campaign’s times do not change: make it anew with another start.", "New campaign", "campaigns/new"}},
		{checks.EndsAtPast, fix{"The end is to come", "The end is over", "A campaign’s times do not change: make it anew with another end.", "New campaign", "campaigns/new"}},
		{checks.HoursNeverOpen, fix{"There are hours to call in", "There is no hour to call in", "Working hours, the law and the end leave no time. Make the campaign anew with wider hours, or change the calling window.", "Open the settings", "settings"}},
		{checks.CampaignPaused, fix{"", "The campaign is paused", "Resume it.", "", ""}},
	}
}

// warnings are what an operator should know before a launch.
var warnings = map[string]string{ //nolint:gochecknoglobals // read-only table
	checks.StartsImmediately: "Dialling begins at once, as soon as calling hours allow it.",
	checks.FrequencyActive:   "Numbers are called only so often.", checks.FrequencyDisabled: "Caps on how often a number is called are switched off.",
	checks.HoursLawOnly: "There are no working hours: calls are made whenever the law allows it.", checks.HoursOrgOnly: "There are no working hours: calls are made in the organization’s calling window.",
	checks.GeoPartlyRejected: "Some numbers lie where this market does not call, and are left out.", checks.TimezoneAmbiguous: "Some numbers may be in several time zones: they are called when it is time in all of them.",
	checks.DNCPartial: "Some rows are covered by no loaded registry.", checks.DNCUnscreened: "No do-not-call registry is loaded: the list was not held against one.",
	checks.DNCStaleSoon: "The registry’s copy will soon be too old. Load a new one.", checks.PaceExceedsRoute: "The line takes fewer calls a minute than were asked for.",
	checks.RecordingDisabled: "Calls are not recorded.", checks.OutsideWindow: "It is no time to call now.", checks.DisclosuresDisabled: "Nothing is said about the recording or the machine at the beginning.",
}

// held are why waiting contacts are not called now.
var held = map[string]string{ //nolint:gochecknoglobals // read-only table
	"campaign_not_running": "The campaign does not run", "frequency_cap": "The number was called as often as it may be", "outside_legal_window": "The law allows no call at this hour where they are",
	"outside_working_hours": "It is outside of the working hours", "legal_holiday": "It is a holiday where they are", "retry_wait": "They wait for the next attempt",
	"not_before": "Their row says not before a later time", "not_after": "The time that their row allows is over", "dnc_screen_stale": "The do-not-call registry is too old to be relied on",
	"route_unavailable": "Calls do not get through the line", "timezone_unresolved": "It is not known in which time zone they are",
	"market_package_not_installed": "The organization does not go by the rules of the market that the campaign is of",
}

// suppressed are why contacts are not called at all.
var suppressed = map[string]string{ //nolint:gochecknoglobals // read-only table
	"dnc_suppressed": "On a do-not-call list", "withdrawn_by_client": "Withdrawn", "geo_rejected": "Where this market does not call", "frequency_capped": "Called as often as it may be",
	"opted_out": "Asked not to be called again", "number_invalid": "There is no such number", "reassigned_number": "The number has another owner by now", "operator_removed": "Removed",
}

// issueWords are what is wrong with rows.
var issueWords = map[string]string{ //nolint:gochecknoglobals // read-only table
	"phone_missing": "No phone", "phone_invalid": "The phone is no telephone number", "duplicate_phone": "The phone comes twice", "timezone_required": "No time zone, and one is needed", "timezone_unknown": "There is no such time zone",
	"variables_invalid": "A variable cannot be used", "name_too_long": "The name is too long", "column_invalid": "A value of another form", "row_unreadable": "The row cannot be read",
	"no_phone_column": "No column is the phone", "no_usable_rows": "No row can be called", "phone_country_unsupported": "Of a country that is not called", "phone_type_unsupported": "Of a kind that is not called",
	"phone_possible_not_valid": "Maybe no number in service", "timezone_ambiguous": "In one of several time zones", "timezone_defaulted": "No time zone: the campaign’s is used",
	"column_ignored": "A column that is not used", "variable_missing": "A variable of the agent is missing", "formula_value": "Made by a formula", "already_in_campaign": "In the campaign already",
}

// actions are what is done to campaigns.
var actions = map[string]string{ //nolint:gochecknoglobals // read-only table
	store.Created: "made", store.WasLaunched: "launched", store.WasPaused: "paused", store.WasResumed: "resumed", store.WasCanceled: "cancelled", store.Opened: "begun, as its start came",
	store.WasEnded: "over", store.CallsAdded: "numbers added", store.CallsBarred: "numbers refused", store.Withdrawn: "numbers withdrawn", store.OptedOut: "somebody asked not to be called again",
}
