package launchcheck

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// validFacts returns the facts of a campaign without blockers.
func validFacts() Facts {
	now := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	return Facts{
		Now: now, Zone: time.UTC, AgentPublished: true, AgentAttached: true, RouteAvailable: true, CallerNumber: true,
		MarketInstalled: true, HoursOpen: true, EndsAt: now.Add(time.Hour), Attestation: Attestation{Given: true},
		Contacts:  Contacts{Accepted: 3, Pending: 3},
		Screen:    Screen{HasImport: true, Projected: true, Blocks: true},
		Frequency: Frequency{Daily: 3, Rolling7d: 7, Source: "market_default"},
		Warnings: Circumstances{
			OwnHours: true, Pace: 20, RouteLimit: 30, Recording: true, Disclosures: true, WindowOpen: true,
			RegistryExists: true, Loaded: true, StaleAfterDays: 31,
		},
	}
}

func codes[T any](all []T, code func(T) string) string {
	var s []string
	for _, x := range all {
		s = append(s, code(x))
	}
	return strings.Join(s, " ")
}

func blockers(f Facts, on Occasion) string {
	return codes(Blockers(f, on), func(b Blocker) string { return b.Code })
}

func TestBlockers(t *testing.T) {
	for _, c := range []struct {
		name                             string
		change                           func(*Facts)
		launching, reading, resuming, in string
	}{
		{"nothing", func(*Facts) {}, "", AttestationRequired, "", ""},
		{
			"no provider", func(f *Facts) { f.NoProvider = true }, ProviderNotConfigured, ProviderNotConfigured + " " + AttestationRequired,
			ProviderNotConfigured, ProviderNotConfigured,
		},
		{
			"refused by its provider", func(f *Facts) { f.ProviderRefusal = "401" }, ProviderMisconfigured,
			ProviderMisconfigured + " " + AttestationRequired, ProviderMisconfigured, ProviderMisconfigured,
		},
		{"no attestation", func(f *Facts) { f.Attestation.Given = false }, AttestationRequired, AttestationRequired, "", ""},
		{"stale", func(f *Facts) { f.Attestation.Stale = true }, AttestationStale, AttestationRequired, "", ""},
		{"unpublished", func(f *Facts) { f.AgentPublished = false }, AgentNotPublished, AgentNotPublished + " " + AttestationRequired, AgentNotPublished, AgentNotPublished},
		{"drained", func(f *Facts) { f.Contacts.Pending = 0 }, NoPendingContacts, AttestationRequired + " " + NoPendingContacts, "", ""},
		{"drained and open", func(f *Facts) { f.Contacts.Pending, f.Open = 0, true }, "", AttestationRequired, "", ""},
		{"earlier today", func(f *Facts) { f.StartsAt = f.Now.Add(-3 * time.Hour) }, "", AttestationRequired, "", ""},
		{"yesterday", func(f *Facts) { f.StartsAt = f.Now.AddDate(0, 0, -1) }, StartsDatePast, AttestationRequired + " " + StartsDatePast, StartsDatePast, StartsDatePast},
		{"yesterday, launched", func(f *Facts) { f.StartsAt, f.EverLaunched = f.Now.AddDate(0, 0, -1), true }, "", AttestationRequired, "", ""},
		{"ended", func(f *Facts) { f.EndsAt, f.HoursOpen = f.Now, false }, EndsAtPast, AttestationRequired + " " + EndsAtPast, EndsAtPast, EndsAtPast},
		{
			"abroad", func(f *Facts) { f.Contacts = Contacts{Accepted: 2, GeoRejected: 2, Suppressed: 2} },
			NoPendingContacts + " " + ContactsGeoRejected + " " + AllContactsSuppressed,
			AttestationRequired + " " + NoPendingContacts + " " + ContactsGeoRejected + " " + AllContactsSuppressed,
			AllContactsSuppressed, ContactsGeoRejected,
		},
		{"no stored rows", func(f *Facts) { f.Screen.Projected = false }, DNCScreenRequired, AttestationRequired + " " + DNCScreenRequired, "", ""},
		{"no stored rows, launched", func(f *Facts) { f.Screen.Projected, f.Screen.Frozen = false, true }, "", AttestationRequired, "", ""},
		{"stale registry", func(f *Facts) { f.Screen.Stale = true }, "", AttestationRequired, "", ""},
		{
			"stale registry that is required", func(f *Facts) { f.Screen.Stale, f.Screen.Required = true, true },
			DNCScreenRequired, AttestationRequired + " " + DNCScreenRequired, "", "",
		},
		{"matches", func(f *Facts) { f.Screen.Matched = 1 }, DNCMatches, AttestationRequired + " " + DNCMatches, DNCMatches, ""},
		{"matches that are skipped", func(f *Facts) { f.Screen.Matched, f.Screen.Blocks = 1, false }, "", AttestationRequired, "", ""},
		{
			"all are matches that are skipped", func(f *Facts) { f.Screen.Matched, f.Screen.Blocks, f.Contacts.Listed = 3, false, 3 },
			AllContactsSuppressed, AttestationRequired + " " + AllContactsSuppressed, AllContactsSuppressed, "",
		},
		{
			"all are matches", func(f *Facts) { f.Screen.Matched, f.Contacts.Listed = 3, 3 },
			DNCMatches, AttestationRequired + " " + DNCMatches, DNCMatches, "",
		},
		{"matches that were decided", func(f *Facts) { f.Screen.Matched, f.Screen.Frozen = 1, true }, "", AttestationRequired, "", ""},
		{"paused", func(f *Facts) { f.Paused = true }, "", AttestationRequired, "", CampaignPaused},
		{
			"no route", func(f *Facts) { f.RouteAvailable, f.AgentAttached, f.CallerNumber = false, false, false },
			RouteUnavailable, AttestationRequired + " " + RouteUnavailable, RouteUnavailable, RouteUnavailable,
		},
		{"detached", func(f *Facts) { f.AgentAttached = false }, AgentNotAttached, AttestationRequired + " " + AgentNotAttached, AgentNotAttached, AgentNotAttached},
		{
			"no caller", func(f *Facts) { f.CallerNumber = false }, CallerNumberUnavailable, AttestationRequired + " " + CallerNumberUnavailable,
			CallerNumberUnavailable, CallerNumberUnavailable,
		},
		{
			"no market", func(f *Facts) { f.MarketInstalled, f.HoursOpen = false, false }, MarketNotInstalled, AttestationRequired + " " + MarketNotInstalled,
			MarketNotInstalled, MarketNotInstalled,
		},
		{"never open", func(f *Facts) { f.HoursOpen = false }, HoursNeverOpen, AttestationRequired + " " + HoursNeverOpen, HoursNeverOpen, HoursNeverOpen},
	} {
		f := validFacts()
		c.change(&f)
		for on, want := range map[Occasion]string{Launching: c.launching, Reading: c.reading, Resuming: c.resuming, Adding: c.in} {
			if got := blockers(f, on); got != want {
				t.Errorf("%s, occasion %d: %q, want %q", c.name, on, got, want)
			}
		}
	}
}

// TestBlockersKeepOrder checks that on every occasion the blockers are in the order of the table. The blockers of a
// batch have only code and field.
func TestBlockersKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := validFacts()
		for _, b := range []*bool{
			&f.AgentPublished, &f.AgentAttached, &f.RouteAvailable, &f.CallerNumber, &f.MarketInstalled, &f.HoursOpen,
			&f.Attestation.Given, &f.Attestation.Stale, &f.Paused, &f.Open, &f.EverLaunched, &f.Screen.Projected, &f.Screen.Blocks, &f.Screen.Required,
		} {
			*b = rapid.Bool().Draw(t, "fact")
		}
		f.Contacts.Pending = rapid.IntRange(0, 1).Draw(t, "pending")
		f.Screen.Matched = rapid.IntRange(0, 1).Draw(t, "matched")
		on := rapid.SampledFrom([]Occasion{Launching, Reading, Resuming, Adding}).Draw(t, "occasion")
		at := -1
		table := rules()
		for _, b := range Blockers(f, on) {
			next := slices.IndexFunc(table[at+1:], func(r rule) bool { return r.code == b.Code })
			if at += next + 1; next < 0 {
				t.Fatalf("%s is out of order in %q", b.Code, blockers(f, on))
			}
			if on == Adding && b.Message != "" {
				t.Fatalf("a batch's %s has a message", b.Code)
			}
		}
		text, err := json.Marshal(Blockers(f, on))
		if err != nil || text[0] != '[' {
			t.Fatalf("%s %v", text, err)
		}
	})
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Facts)
		want   string
	}{
		{"nothing", func(*Facts) {}, StartsImmediately + " " + FrequencyActive},
		{"later", func(f *Facts) { f.StartsAt = f.Now.Add(time.Hour) }, FrequencyActive},
		{"no caps", func(f *Facts) { f.Frequency.Disabled = true }, StartsImmediately + " " + FrequencyDisabled},
		{"no hours", func(f *Facts) { f.Warnings.OwnHours = false }, StartsImmediately + " " + FrequencyActive + " " + HoursLawOnly},
		{"no hours, window", func(f *Facts) { f.Warnings.OwnHours, f.Warnings.OrgWindow = false, true }, StartsImmediately + " " + FrequencyActive + " " + HoursOrgOnly},
		{"some abroad", func(f *Facts) { f.Contacts.GeoRejected = 1 }, StartsImmediately + " " + FrequencyActive + " " + GeoPartlyRejected},
		{"unscreened", func(f *Facts) { f.Warnings.Loaded, f.Screen.Unscreened = false, 3 }, StartsImmediately + " " + FrequencyActive + " " + DNCUnscreened},
		{"partly", func(f *Facts) { f.Screen.Unscreened, f.Screen.AgeDays = 1, 26 }, StartsImmediately + " " + FrequencyActive + " " + DNCPartial + " " + DNCStaleSoon},
		{"no registry", func(f *Facts) { f.Warnings.RegistryExists, f.Warnings.Loaded = false, false }, StartsImmediately + " " + FrequencyActive},
		{"fast", func(f *Facts) { f.Warnings.Pace = 60 }, StartsImmediately + " " + FrequencyActive + " " + PaceExceedsRoute},
		{"silent", func(f *Facts) { f.Warnings.Recording, f.Warnings.Disclosures = false, false }, StartsImmediately + " " + FrequencyActive + " " + RecordingDisabled + " " + DisclosuresDisabled},
		{"closed", func(f *Facts) { f.Warnings.WindowOpen, f.Warnings.NextWindow = false, f.Now }, StartsImmediately + " " + FrequencyActive + " " + OutsideWindow},
	} {
		f := validFacts()
		c.change(&f)
		if got := codes(Warnings(f), func(w Warning) string { return w.Code }); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	f := validFacts()
	f.Frequency.Daily = 0
	text, err := json.Marshal(Warnings(f)[1])
	if err != nil || string(text) != `{"code":"frequency_policy_active","rolling_7d_cap":7,"daily_cap":0,"source":"market_default"}` {
		t.Errorf("%s %v", text, err)
	}
}
