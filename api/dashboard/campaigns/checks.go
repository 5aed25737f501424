package campaigns

import (
	"cmp"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/launchcheck"
)

// A count is a number of contacts, rows or calls with the same code.
type count struct {
	Code, Label string
	N           int
}

// counts returns a table of counts, largest first. prefix is that of the labels.
func counts[K ~string](texts *ui.Texts, prefix string, by map[K]int) []count {
	var all []count
	for _, code := range slices.Sorted(maps.Keys(by)) {
		all = append(all, count{string(code), texts.Label(prefix, string(code)), by[code]})
	}
	slices.SortStableFunc(all, func(a, b count) int { return cmp.Compare(b.N, a.N) })
	return all
}

// A check is a launch check. Passed and Failed say what it found, Action how to resolve it. Link is the label of the page
// Path, which does that; it is relative to the organization, or "calls", the page of the campaign
// that adds numbers, or ownSettings.
type check struct {
	Code, Path                   string
	Passed, Failed, Action, Link string

	Fits bool
	Asks bool // does not fit, but the launch form asks for the decision
	Href string
}

// ownSettings is the Path of the page that edits a draft, or that duplicates a launched campaign.
const ownSettings = "edit"

// path returns the path of the page that resolves the check for a campaign.
func (x check) path(k campaigns.Campaign) string {
	switch {
	case x.Path == ownSettings && k.Status != campaigns.Draft:
		return "campaigns/" + k.ID + "/duplicate"
	case x.Path == ownSettings, x.Path == "calls":
		return "campaigns/" + k.ID + "/" + x.Path
	}
	return x.Path
}

// rank returns the place of a check in the list: those that block the launch come first.
func (x check) rank() int {
	switch {
	case x.Fits:
		return 2
	case x.Asks:
		return 1
	}
	return 0
}

// launchChecks returns all launch checks in their order.
func launchChecks(texts *ui.Texts) []check {
	all := []check{
		{Code: launchcheck.AgentNotPublished, Path: "agents"},
		{Code: launchcheck.ProviderNotConfigured, Path: "agents"},
		{Code: launchcheck.ProviderMisconfigured, Path: "agents"},
		{Code: launchcheck.AgentNotAttached, Path: "trunks"},
		{Code: launchcheck.RouteUnavailable, Path: "trunks"},
		{Code: launchcheck.CallerNumberUnavailable, Path: "trunks"},
		{Code: launchcheck.NoPendingContacts, Path: "calls"},
		{Code: launchcheck.ContactsGeoRejected, Path: "market"},
		{Code: launchcheck.AllContactsSuppressed, Path: "calls"},
		{Code: launchcheck.MarketNotInstalled, Path: "market"},
		{Code: launchcheck.DNCScreenRequired, Path: "do-not-call"},
		{Code: launchcheck.DNCMatches},
		{Code: launchcheck.StartsDatePast, Path: ownSettings},
		{Code: launchcheck.EndsAtPast, Path: ownSettings},
		{Code: launchcheck.HoursNeverOpen, Path: ownSettings},
		{Code: launchcheck.CampaignPaused},
	}
	for i := range all {
		c := &all[i]
		at := "campaigns.check." + c.Code
		c.Failed, c.Action = texts.Label(at, "failed"), texts.Label(at, "action")
		if c.Code != launchcheck.CampaignPaused { // it has no text for passed
			c.Passed = texts.Label(at, "passed")
		}
		if c.Path != "" {
			c.Link = texts.Label(at, "link")
		}
	}
	return all
}

// lower makes a label part of a sentence.
func lower(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(first)) + s[size:]
}
