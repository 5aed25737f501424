package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
)

// A checker collects the facts of the launch checks.
type checker struct {
	store *store.Store
	agent AgentChecker // nil means that calls can always be made
}

func (k checker) facts(
	ctx context.Context, q db.Querier, org store.Organization, pkg *market.Package, st Status, now time.Time,
) (launchcheck.Facts, error) {
	c := st.Campaign
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return launchcheck.Facts{}, fmt.Errorf("campaign %s: %w", c.ID, err)
	}
	counts := st.Counts
	f := launchcheck.Facts{
		Now: now, Zone: zone, Paused: c.Status == campaigns.Paused, EverLaunched: !c.LaunchedAt.IsZero(), Open: c.Open,
		MarketInstalled: org.UsesMarketOf(c) && (pkg != nil || c.LaunchImportID == ""), StartsAt: c.StartsAt, EndsAt: c.EndsAt,
		Contacts: launchcheck.Contacts{
			Accepted: counts.Total(), Pending: counts.ByState[campaigns.Pending], Suppressed: counts.ByState[campaigns.Suppressed],
			GeoRejected: counts.ByReason[campaigns.GeoRejected], Ambiguous: counts.Ambiguous,
			Listed: max(0, st.Screen.Matched-counts.ByReason[campaigns.DNCSuppressed]),
		},
		Screen: launchcheck.Screen{
			HasImport: st.Import != nil, Projected: st.Import != nil && st.Import.SourceKey != "",
			Unscreened: st.Screen.Unscreened, Required: org.RequireRegistry, Matched: st.Screen.Matched, Blocks: c.DNC == campaigns.Block,
		},
	}
	if err = k.addRoute(ctx, q, c, &f); err != nil {
		return launchcheck.Facts{}, err
	}
	speech, err := k.store.DisclosureSettings(ctx, q, c.ID)
	if err != nil {
		return launchcheck.Facts{}, err
	}
	f.Warnings.Disclosures = speech.Disclosed
	floor := org.Window
	if pkg != nil {
		floor = pkg.Floor(now, nil, c.Classification, org.Window)
		f.Warnings.OrgWindow, f.Warnings.RegistryExists = pkg.OrganizationWindow, pkg.Registry
		f.Warnings.StaleAfterDays = int(pkg.StaleAfter.Hours() / 24)
	} else {
		f.Warnings.OrgWindow = true
	}
	var opens time.Time
	opens, f.HoursOpen = c.NextOpen(now, floor)
	f.Warnings.WindowOpen = f.HoursOpen && !opens.After(now)
	f.Warnings.NextWindow = opens
	f.Warnings.OwnHours, f.Warnings.Pace = len(c.WorkingHours) > 0, c.CallsPerMinute
	f.Frequency = frequencyCaps(org, pkg, c)
	return f, nil
}

// addRoute adds the state of the campaign's agent and route.
func (k checker) addRoute(ctx context.Context, q db.Querier, c campaigns.Campaign, f *launchcheck.Facts) error {
	id, version, err := k.store.Agent(ctx, q, c.OrgID, c.AgentName)
	if err != nil {
		return err
	}
	f.AgentPublished = version > 0
	if k.agent != nil && f.AgentPublished {
		state, fault := k.agent(ctx, q, c.OrgID, id, version)
		if fault != nil {
			return fault
		}
		f.NoProvider, f.Warnings.ProviderFailures = state.NoProvider != nil, state.Warnings
		if state.Refused != nil {
			f.ProviderRefusal = state.Refused.Error()
		}
	}
	if f.RouteAvailable, f.Warnings.Recording, err = k.store.Route(ctx, q, c); err != nil || id == "" {
		return err
	}
	all, err := admission.Routes(ctx, q, c.OrgID, c.AgentName)
	if err != nil {
		return err
	}
	for _, t := range all {
		i := slices.IndexFunc(t.Subgroups, func(g admission.Subgroup) bool { return g.ID == c.Binding.RouteID })
		if t.ID != c.Binding.TrunkID || i < 0 {
			continue
		}
		f.AgentAttached = true
		f.CallerNumber = slices.ContainsFunc(t.Subgroups[i].CallerNumbers, func(n string) bool {
			return control.Digits(n) == control.Digits(c.Binding.FromNumber)
		})
		f.Warnings.RouteLimit = t.Subgroups[i].CallsPerMinute
	}
	return nil
}

// stricter returns the smaller of two caps; a cap of 0 is not set.
func stricter(before, most int) int {
	if before == 0 {
		return most
	}
	return min(before, most)
}

// frequencyCaps returns the frequency caps that apply in every state of the country.
func frequencyCaps(org store.Organization, pkg *market.Package, c campaigns.Campaign) launchcheck.Frequency {
	f := launchcheck.Frequency{Source: market.FromMarket, Disabled: org.Caps.Enabled != nil && !*org.Caps.Enabled}
	if pkg != nil {
		for _, x := range pkg.Caps(market.Location{}, c.Classification) {
			switch x.Kind {
			case market.CapDaily:
				f.Daily = stricter(f.Daily, x.Most)
			case market.CapRolling7d:
				f.Rolling7d = stricter(f.Rolling7d, x.Most)
			}
			if x.Source == market.FromLaw {
				f.Source = market.FromLaw
			}
		}
	}
	if org.Caps.Daily != nil {
		f.Daily, f.Source = *org.Caps.Daily, market.FromOrganization
	}
	if org.Caps.Rolling7d != nil {
		f.Rolling7d, f.Source = *org.Caps.Rolling7d, market.FromOrganization
	}
	return f
}
